"""The toy DP-EBM of the 2025 replication, which promises nothing."""

from __future__ import annotations

from typing import Any

from dprepro.baselines.toy_ebm import UNPAID, ToyDPEBMClassifier, ToyDPEBMRegressor
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.standing import Noise


def _build(setting: Setting, **params: Any) -> Estimator:
    estimator = ToyDPEBMRegressor if setting.task == "regression" else ToyDPEBMClassifier
    return estimator(setting.epsilon, setting.delta, random_state=setting.seed, **params)


METHODS = [
    Method(
        name="toy-dp-ebm",
        version=2,
        title="Toy DP-EBM (no guarantee)",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=ZERO_OUT,
        assumes=(
            f"not covered by epsilon: {'; '.join(UNPAID)}",
            "every bin, feature and epoch uses the noise of a single release: no guarantee",
        ),
        cite=("chatziloizos2025report",),
        reference="Chatziloizos, Zhang, Behaegel 2025, section 7",
        build=_build,
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        defaults=defaults_of(ToyDPEBMClassifier, "epsilon", "delta", "random_state"),
    )
]
