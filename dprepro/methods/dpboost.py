"""DPBoost, as its authors' code does it and without its leaks."""

from __future__ import annotations

import inspect
from typing import Any

from dprepro.data.domain import Domain, TaskKind
from dprepro.dpboost import DPBoostClassifier, DPBoostRegressor
from dprepro.dpboost.variants import VARIANTS
from dprepro.methods.registry import Build, Guarantee, Method


def _build(variant: str) -> Build:
    def build(
        *,
        task: TaskKind,
        epsilon: float,
        delta: float,
        domain: Domain,
        seed: int | None,
        **params: Any,
    ) -> Any:
        estimator = DPBoostRegressor if task == "regression" else DPBoostClassifier
        return estimator(epsilon, variant=variant, domain=domain, random_state=seed, **params)

    return build


def _defaults() -> dict[str, Any]:
    excluded = {"epsilon", "variant", "domain", "random_state"}
    parameters = inspect.signature(DPBoostClassifier).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in excluded}


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
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=guarantee,
        adjacency=VARIANTS[variant].adjacency,
        assumes=assumes,
        reference=reference,
        build=_build(variant),
        takes_epsilon=True,
        defaults=_defaults(),
    )


METHODS = [
    _method(
        "dpboost",
        "DPBoost",
        "as-published",
        Guarantee.NONE,
        (
            "reads unpaid: bin edges, mean of the target (regression)",
            "exact gains and counts steer the growth of trees: the promise does not hold",
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
