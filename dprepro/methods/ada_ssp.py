"""AdaSSP: linear regression from noisy second moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import REPEATS_PRODUCTS, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division


def _estimator() -> Callable[..., Estimator]:
    from dprepro.baselines.ada_ssp import AdaSSPRegressor

    return AdaSSPRegressor


def _build(setting: Setting, **params: Any) -> Estimator:
    return _estimator()(
        epsilon=setting.epsilon, delta=setting.delta, domain=setting.domain,
        random_state=setting.seed, **params,
    )  # fmt: skip


METHODS = [
    Method(
        name="ada-ssp",
        title="AdaSSP",
        tasks=frozenset({"regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADD_REMOVE,
        assumes=("public: bounds, categories, target range",),
        reference="Wang 2018, Algorithm 2, with one release and the eigenvalue of the noisy X'X",
        cite=("wang2018",),
        build=_build,
        takes_epsilon=True,
        noise=Noise.EXACT,
        divides=Division.GAUSSIAN,
        keeps_ledger=True,
        repeats_within=REPEATS_PRODUCTS,
        defaults=defaults_of(_estimator, "epsilon", "delta", "domain", "random_state"),
    )
]
