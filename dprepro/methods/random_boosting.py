"""Private boosting with totally random trees, the rival of Maddock et al. 2022."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division


def _estimator() -> Callable[..., Estimator]:
    from dprepro.baselines.random_boosting import DPRandomBoostingClassifier

    return DPRandomBoostingClassifier


def _build(setting: Setting, **params: Any) -> Estimator:
    return _estimator()(
        epsilon=setting.epsilon,
        delta=setting.delta,
        domain=setting.domain,
        random_state=setting.seed,
        **params,
    )


METHODS = [
    Method(
        name="dp-random-boosting",
        title="DP boosting with random trees",
        tasks=frozenset({"binary"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADD_REMOVE,
        assumes=(
            "bounds, categories and labels are public",
            'not covered by epsilon if asked for: quantiles (candidates="quantile"), ranks '
            "(from_ranks), a delta of one over the number of rows (delta_from_rows)",
        ),
        reference="Maddock, Cormode, Wang, Maple, Jha 2022, Federated boosted decision trees",
        cite=("maddock2022",),
        build=_build,
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        divides=Division.GAUSSIAN,
        defaults=defaults_of(_estimator, "epsilon", "delta", "domain", "random_state"),
    )
]
