"""DPBoost, as its authors' code does it and without its leaks."""

from __future__ import annotations

from typing import Any

from dprepro.dpboost import DPBoostClassifier, DPBoostRegressor
from dprepro.dpboost.variants import VARIANTS
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import Build, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.standing import Noise


def _build(variant: str) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        estimator = DPBoostRegressor if setting.task == "regression" else DPBoostClassifier
        return estimator(
            setting.epsilon,
            variant=variant,
            domain=setting.domain,
            random_state=setting.seed,
            **params,
        )

    return build


def _method(
    name: str,
    title: str,
    variant: str,
    guarantee: Guarantee,
    assumes: tuple[str, ...],
    reference: str,
) -> Method:
    return Method(
        name=name,
        version=2,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=guarantee,
        adjacency=VARIANTS[variant].adjacency,
        assumes=assumes,
        reference=reference,
        build=_build(variant),
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        defaults=defaults_of(DPBoostClassifier, "epsilon", "variant", "domain", "random_state"),
    )


METHODS = [
    _method(
        "dpboost",
        "DPBoost",
        "as-published",
        Guarantee.NONE,
        (
            "not covered by epsilon: bin edges, mean of the target (regression)",
            "exact gains and counts decide how trees grow: no guarantee",
        ),
        "Li, Wu, Wen, He 2020, as the authors' code (squared loss on -1/+1 labels)",
    ),
    _method(
        "dpboost-sound",
        "DPBoost (sound)",
        "sound",
        Guarantee.PURE,
        ("public: bounds, categories, target range or labels",),
        "Li, Wu, Wen, He 2020, sections 4.1-4.3",
    ),
]
