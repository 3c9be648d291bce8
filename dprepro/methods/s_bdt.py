"""S-BDT, as its authors' code does it, and with all of its noise paid for."""

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
    from dprepro.baselines.s_bdt import SBDTClassifier, SBDTRegressor

    return SBDTRegressor if task == "regression" else SBDTClassifier


def _build(as_published: bool) -> Build:
    def build(setting: Setting, **params: Any) -> Estimator:
        return _estimator(setting.task)(
            as_published=as_published, epsilon=setting.epsilon, delta=setting.delta,
            domain=setting.domain, random_state=setting.seed, **params,
        )  # fmt: skip

    return build


def _method(
    name: str, title: str, guarantee: Guarantee, as_published: bool, assumes: tuple[str, ...]
) -> Method:
    return Method(
        name=name,
        version=1,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=guarantee,
        adjacency=ZERO_OUT,
        assumes=assumes,
        reference="Peinemann, Kirschte, Stock, Cotrini, Mohammadi 2024, one feature a tree",
        cite=("peinemann2024",),
        build=_build(as_published),
        takes_epsilon=True,
        noise=Noise.EXACT,
        keeps_ledger=True,
        divides=Division.NONE,
        defaults=defaults_of(
            _estimator,
            "as_published",
            "epsilon",
            "delta",
            "domain",
            "random_state",
            written="dprepro.baselines.s_bdt.estimator._SBDT",
        ),
    )


METHODS = [
    _method(
        "s-bdt", "S-BDT", Guarantee.NONE, True,
        (
            "not covered by epsilon: the settings, chosen by scores on the test rows",
            "the noise of curvatures is half of what the authors' accountant counts",
        ),
    ),
    _method(
        "s-bdt-sound", "S-BDT (sound)", Guarantee.APPROXIMATE, False,
        ("public: bounds, categories, target range or labels, number of rows",),
    ),
]  # fmt: skip
