"""The toy DP-EBM of the 2025 replication, which promises nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.standing import Noise


def _estimator(task: TaskKind = "binary") -> Callable[..., Estimator]:
    from dprepro.baselines.toy_ebm import ToyDPEBMClassifier, ToyDPEBMRegressor

    return ToyDPEBMRegressor if task == "regression" else ToyDPEBMClassifier


def _build(setting: Setting, **params: Any) -> Estimator:
    return _estimator(setting.task)(
        setting.epsilon, setting.delta, random_state=setting.seed, **params
    )


METHODS = [
    Method(
        name="toy-dp-ebm",
        version=2,
        title="Toy DP-EBM (no guarantee)",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=ZERO_OUT,
        assumes=(
            "not covered by epsilon: quantiles of the numeric features, which are the bin edges; "
            "categories that occur; "
            "number of rows in every bin, by which its sum of residuals is divided",
            "every bin, feature and epoch uses the noise of a single release: no guarantee",
        ),
        cite=("chatziloizos2025report",),
        reference="Chatziloizos, Zhang, Behaegel 2025, section 7",
        build=_build,
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        defaults=defaults_of(
            _estimator,
            "epsilon",
            "delta",
            "random_state",
            written="dprepro.baselines.toy_ebm.estimator._ToyDPEBM",
        ),
    )
]
