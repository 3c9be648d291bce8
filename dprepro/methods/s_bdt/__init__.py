"""S-BDT, as its authors' code does it, and with all of its noise paid for."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, Method, private
from dprepro.privacy.budget import Division
from dprepro.privacy.sensitivity import ZERO_OUT

ADJACENCY = ZERO_OUT

_ESTIMATORS = (
    "dprepro.methods.s_bdt.estimator:SBDTClassifier",
    "dprepro.methods.s_bdt.estimator:SBDTRegressor",
)
_DEFAULTS = {
    "n_trees": 200, "max_depth": 6, "learning_rate": 0.1, "residual_bound": 0.3,
    "curvature_bound": 0.1, "denominator_share": 0.1, "sampling": 1.0, "ridge": 10.0,
    "leaf_bound": 2.0, "candidates": 32, "border": None, "constrained": False,
    "initial_share": 0.0, "initial_bound": 0.5, "settings_read_rows": False,
}  # fmt: skip


def _method(
    name: str, title: str, guarantee: Guarantee, as_published: bool, assumes: tuple[str, ...]
) -> Method:
    return private(
        name=name,
        version=1,
        title=title,
        tasks=frozenset({"binary", "regression"}),
        guarantee=guarantee,
        adjacency=ADJACENCY,
        assumes=assumes,
        reference="Peinemann, Kirschte, Stock, Cotrini, Mohammadi 2024, one feature a tree",
        cite=("peinemann2024",),
        build=Made(*_ESTIMATORS, as_published=as_published),
        divides=Division.NONE,
        defaults=_DEFAULTS,
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
