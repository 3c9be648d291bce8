"""DP-EBM on one feature a category, as the 2025 replication ran the library on Adult."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Build, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division


def _estimator(task: TaskKind = "binary") -> Callable[..., Estimator]:
    from dprepro.ebm import DPEBMClassifier, DPEBMRegressor

    return DPEBMRegressor if task == "regression" else DPEBMClassifier


def _build(composition: str) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        from dprepro.data.encode import IndicatorEncoder  # imports pandas

        return _estimator(setting.task)(
            setting.epsilon,
            setting.delta,
            domain=IndicatorEncoder(setting.domain).domain,
            random_state=setting.seed,
            **({"composition": composition} | params),
        )

    return build


def _method(name: str, title: str, composition: str) -> Method:
    defaults = defaults_of(_estimator, "epsilon", "delta", "domain", "random_state")
    return Method(
        name=name,
        version=2,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ZERO_OUT,
        assumes=(
            "public: bounds, categories, target range or labels, number of rows",
            "regression: the proof has a gap, since residuals can exceed the label range",
        ),
        cite=("nori2021",),
        reference="Nori et al. 2021, Algorithm 2, on one-hot categories: more features, more noise",
        build=_build(composition),
        takes_epsilon=True,
        noise=Noise.EXACT,
        divides=Division.GAUSSIAN,
        keeps_ledger=True,
        encoding="indicators",
        defaults=defaults | {"composition": composition},
    )


METHODS = [
    _method("dp-ebm-gdp-indicators", "DPEBM-GDP (one-hot)", "gdp"),
    _method("dp-ebm-classic-indicators", "DPEBM-Classic (one-hot)", "classic"),
]
