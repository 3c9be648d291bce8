"""DP-EBM as published, with both of its accountings, and EBM without privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import Estimator
from dprepro.methods.registry import REPEATS_FLOATS, Build, Guarantee, Method, Setting, defaults_of
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.standing import Noise
from dprepro.privacy.units import Division

_WRITTEN = "dprepro.ebm.dp_ebm._DPEBM"


def _private_estimator(task: TaskKind = "binary") -> Callable[..., Estimator]:
    from dprepro.ebm import DPEBMClassifier, DPEBMRegressor

    return DPEBMRegressor if task == "regression" else DPEBMClassifier


def _plain_estimator(task: TaskKind = "binary") -> Callable[..., Estimator]:
    from dprepro.ebm import EBMClassifier, EBMRegressor

    return EBMRegressor if task == "regression" else EBMClassifier


def _build_private(**settings: str | bool) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        return _private_estimator(setting.task)(
            setting.epsilon,
            setting.delta,
            domain=setting.domain,
            random_state=setting.seed,
            **(settings | params),
        )

    return build


def _build_plain(setting: Setting, **params: Any) -> Estimator:
    return _plain_estimator(setting.task)(random_state=setting.seed, **params)


def _private(
    name: str,
    title: str,
    reference: str,
    *assumes: str,
    version: int = 2,
    **settings: str | bool,
) -> Method:
    excluded = ("epsilon", "delta", "domain", "random_state")
    return Method(
        name=name,
        version=version,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ZERO_OUT,
        assumes=(
            "public: bounds, categories, target range or labels, number of rows",
            *assumes,
        ),
        cite=("nori2021",),
        reference=reference,
        build=_build_private(**settings),
        takes_epsilon=True,
        noise=Noise.EXACT,
        divides=Division.GAUSSIAN,
        keeps_ledger=True,
        takes_tables=True,
        defaults=defaults_of(_private_estimator, *excluded, written=_WRITTEN) | settings,
    )


_GAP = "regression: the proof has a gap, since residuals can exceed the label range"
_PAPER = "Nori et al. 2021"

METHODS = [
    _private(
        "dp-ebm-gdp",
        "DPEBM-GDP, the formula",
        f"{_PAPER}, Algorithm 2, Theorems 5 and 7",
        _GAP,
        composition="gdp",
    ),
    _private(
        "dp-ebm-classic",
        "DPEBM-Classic, the formula",
        f"{_PAPER}, Theorem 2",
        _GAP,
        composition="classic",
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
    ),
    _private(
        "dp-ebm-gdp-2021",
        "DPEBM-GDP (2021 code)",
        f"{_PAPER}, Theorems 5 and 7, and cuts beside an empty bin: the authors' code of that time",
        _GAP,
        composition="gdp",
        empty_first_bin=True,
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
        cite=("nori2021",),
        reference="Nori et al. 2021, Algorithm 1",
        build=_build_plain,
        takes_epsilon=False,
        repeats_within=REPEATS_FLOATS,
        defaults=defaults_of(_plain_estimator, "random_state"),
    ),
]
