"""DP-EBM as published, with both of its accountings, and EBM without privacy."""

from __future__ import annotations

from typing import Any

from dprepro.estimators.contract import Estimator
from dprepro.methods.entry import (
    REPEATS_FLOATS,
    Build,
    Guarantee,
    Made,
    Method,
    Setting,
    not_private,
    private,
)
from dprepro.privacy.budget import Division
from dprepro.privacy.sensitivity import ZERO_OUT

ADJACENCY = ZERO_OUT

_ESTIMATORS = (
    "dprepro.methods.dp_ebm.estimator:DPEBMClassifier",
    "dprepro.methods.dp_ebm.estimator:DPEBMRegressor",
)
_DEFAULTS = {
    "composition": "gdp", "max_bins": 32, "learning_rate": 0.01, "n_epochs": 300, "max_leaves": 3,
    "binning_share": 0.1, "empty_first_bin": False, "sensitivity": "published",
    "adjacency": ADJACENCY.value, "monotone": None,
}  # fmt: skip


def _private(
    name: str, title: str, reference: str, *assumes: str, version: int = 2, encoding: str = "frame",
    gist: str, **settings: Any,
) -> Method:  # fmt: skip
    of_rows = encoding == "frame"
    return private(
        name=name,
        version=version,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, target range or labels, number of rows", *assumes),
        cite=("nori2021",),
        form="functions",
        gist=gist,
        reference=reference,
        build=Made(*_ESTIMATORS, **settings) if of_rows else _build_on_indicators(settings),
        divides=Division.GAUSSIAN,
        takes_tables=of_rows,
        encoding=encoding,
        defaults=_DEFAULTS | settings,
    )


def _build_on_indicators(settings: dict[str, Any]) -> Build:
    """Of one feature a category, as the 2025 replication ran the library on Adult."""

    def build(setting: Setting, **params: Any) -> Estimator:
        from dprepro.data.encode import IndicatorEncoder  # imports pandas

        domain = IndicatorEncoder(setting.domain).domain
        return Made(*_ESTIMATORS, domain=domain, **settings)(setting, **params)

    return build


_GAP = "regression: the proof has a gap, since residuals can exceed the label range"
_PAPER = "Nori et al. 2021"
_ON_INDICATORS = f"{_PAPER}, Algorithm 2, on one-hot categories: more features, more noise"

METHODS = [
    _private(
        "dp-ebm-gdp",
        "DPEBM-GDP, the formula",
        f"{_PAPER}, Algorithm 2, Theorems 5 and 7",
        _GAP,
        composition="gdp",
        gist="the formula, composed as Gaussian DP",
    ),
    _private(
        "dp-ebm-classic",
        "DPEBM-Classic, the formula",
        f"{_PAPER}, Theorem 2",
        _GAP,
        composition="classic",
        gist="the formula, by strong composition",
    ),
    _private(
        "dp-ebm-classic-2021",
        "DPEBM-Classic (2021 code)",
        f"{_PAPER}, Theorem 2 for boosting, Theorem 5 for binning, and cuts beside an empty bin: "
        "the authors' code of that time",
        _GAP,
        version=3,
        composition="classic-boosting",
        empty_first_bin=True,
        gist="authors' 2021 code, strong composition",
    ),
    _private(
        "dp-ebm-gdp-2021",
        "DPEBM-GDP (2021 code)",
        f"{_PAPER}, Theorems 5 and 7, and cuts beside an empty bin: the authors' code of that time",
        _GAP,
        composition="gdp",
        empty_first_bin=True,
        gist="authors' 2021 code, Gaussian DP",
    ),
    _private(
        "dp-ebm-joint",
        "DPEBM-Joint",
        f"{_PAPER}, Algorithm 2, with one exact conversion for both phases",
        _GAP,
        composition="joint",
        gist="one exact budget, published sensitivities",
    ),
    _private(
        "dp-ebm-sound",
        "DPEBM-Sound",
        f"{_PAPER}, Algorithm 2, with one exact conversion and sensitivities that are proved",
        composition="joint",
        sensitivity="sound",
        gist="one exact budget, proved sensitivities",
    ),
    _private(
        "dp-ebm-gdp-indicators",
        "DPEBM-GDP (one-hot)",
        _ON_INDICATORS,
        _GAP,
        encoding="indicators",
        composition="gdp",
        gist="Gaussian DP, on one-hot categories",
    ),
    _private(
        "dp-ebm-classic-indicators",
        "DPEBM-Classic (one-hot)",
        _ON_INDICATORS,
        _GAP,
        encoding="indicators",
        composition="classic",
        gist="strong composition, one-hot categories",
    ),
    not_private(
        name="ebm",
        title="EBM",
        tasks=frozenset({"binary", "regression"}),
        cite=("nori2021",),
        form="functions",
        reference="Nori et al. 2021, Algorithm 1",
        build=Made(
            "dprepro.methods.dp_ebm.ebm:EBMClassifier", "dprepro.methods.dp_ebm.ebm:EBMRegressor"
        ),
        repeats_within=REPEATS_FLOATS,
        defaults={
            "max_bins": 256, "learning_rate": 0.05, "n_epochs": 5000, "max_leaves": 3,
            "min_samples_leaf": 2, "ridge": 0.1, "outer_bags": 8, "held_out_share": 0.15,
            "patience": 50, "tolerance": 1e-4,
        },
    ),
]  # fmt: skip
