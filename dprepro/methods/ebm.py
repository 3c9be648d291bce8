"""DP-EBM as published, with both of its accountings, and EBM without privacy."""

from __future__ import annotations

import inspect
from typing import Any

from dprepro.data.domain import Domain, TaskKind
from dprepro.ebm import DPEBMClassifier, DPEBMRegressor, EBMClassifier, EBMRegressor
from dprepro.methods.registry import Build, Guarantee, Method
from dprepro.privacy.sensitivity import ZERO_OUT


def _build_private(**settings: str) -> Build:
    def build(
        *,
        task: TaskKind,
        epsilon: float,
        delta: float,
        domain: Domain,
        seed: int | None,
        **params: Any,
    ) -> Any:
        estimator = DPEBMRegressor if task == "regression" else DPEBMClassifier
        return estimator(epsilon, delta, domain=domain, random_state=seed, **(settings | params))

    return build


def _build_plain(
    *,
    task: TaskKind,
    epsilon: float,
    delta: float,
    domain: Domain,
    seed: int | None,
    **params: Any,
) -> Any:
    estimator = EBMRegressor if task == "regression" else EBMClassifier
    return estimator(random_state=seed, **params)


def _defaults(estimator: type, *excluded: str) -> dict[str, Any]:
    parameters = inspect.signature(estimator).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in excluded}


def _private(name: str, title: str, reference: str, *assumes: str, **settings: str) -> Method:
    excluded = ("epsilon", "delta", "domain", "random_state")
    return Method(
        name=name,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ZERO_OUT,
        assumes=(
            "public: bounds, categories, target range or labels, number of rows",
            *assumes,
        ),
        reference=reference,
        build=_build_private(**settings),
        takes_epsilon=True,
        defaults=_defaults(DPEBMClassifier, *excluded) | settings,
    )


_GAP = "regression: residuals stay within the label range (they need not; see the ledger)"
_PAPER = "Nori et al. 2021"

METHODS = [
    _private(
        "dp-ebm-gdp",
        "DPEBM-GDP",
        f"{_PAPER}, Algorithm 2, Theorems 5 and 7",
        _GAP,
        composition="gdp",
    ),
    _private(
        "dp-ebm-classic", "DPEBM-Classic", f"{_PAPER}, Theorem 2", _GAP, composition="classic"
    ),
    _private(
        "dp-ebm-classic-2021",
        "DPEBM-Classic (2021 code)",
        f"{_PAPER}, Theorem 2 for boosting, Theorem 5 for binning: the authors' code of that time",
        _GAP,
        composition="classic-boosting",
    ),
    _private(
        "dp-ebm-joint",
        "DPEBM-Joint",
        f"{_PAPER}, Algorithm 2, with one exact conversion for both phases",
        _GAP,
        composition="joint",
    ),
    _private(
        "dp-ebm-sound",
        "DPEBM-Sound",
        f"{_PAPER}, Algorithm 2, with one exact conversion and sensitivities that are proved",
        composition="joint",
        sensitivity="sound",
    ),
    Method(
        name="ebm",
        title="EBM",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        reference="Nori et al. 2021, Algorithm 1",
        build=_build_plain,
        takes_epsilon=False,
        defaults=_defaults(EBMClassifier, "random_state"),
    ),
]
