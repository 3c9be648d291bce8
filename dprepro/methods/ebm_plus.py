"""DP-EBM+, our own: see `dprepro.ebm_plus.estimator`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ADD_REMOVE
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division


def _estimator(task: TaskKind = "binary") -> Callable[..., Estimator]:
    from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor

    return DPEBMPlusRegressor if task == "regression" else DPEBMPlusClassifier


def _build(setting: Setting, **params: Any) -> Estimator:
    return _estimator(setting.task)(
        setting.epsilon,
        setting.delta,
        domain=setting.domain,
        random_state=setting.seed,
        **params,
    )


METHODS = [
    Method(
        name="dp-ebm-plus",
        version=21,
        title="DPEBM+",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADD_REMOVE,
        assumes=(
            "public: bounds, categories, target range or labels; an observed domain is refused",
        ),
        cite=("dprepro",),
        reference="ours, from no paper: functions from averaged, smoothed, noisy sums of residuals",
        build=_build,
        takes_epsilon=True,
        noise=Noise.EXACT,
        divides=Division.GAUSSIAN,
        keeps_ledger=True,
        takes_tables=True,
        defaults=defaults_of(_estimator, "epsilon", "delta", "domain", "random_state"),
    )
]
