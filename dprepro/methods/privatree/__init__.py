"""PrivaTree, a private decision tree, as its authors' code does it, and with a sensitivity."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, Method, private
from dprepro.privacy.sensitivity import ZERO_OUT

ADJACENCY = ZERO_OUT


def _method(
    name: str, title: str, guarantee: Guarantee, as_published: bool, assumes: tuple[str, ...]
) -> Method:
    return private(
        name=name,
        version=1,
        title=title,
        tasks=frozenset({"binary"}),
        guarantee=guarantee,
        adjacency=ADJACENCY,
        assumes=assumes,
        reference="Vos, Vos, Li, Erkin, Verwer 2023, Differentially-private decision trees",
        cite=("vos2023",),
        form="tree",
        build=Made(
            "dprepro.methods.privatree.estimator:PrivaTreeClassifier", as_published=as_published
        ),
        defaults={"max_depth": 4, "n_bins": 10, "accepted_error": 0.01},
    )


METHODS = [
    _method(
        "privatree", "PrivaTree", Guarantee.NONE, True,
        (
            "public: categories, labels, number of rows",
            "not covered by epsilon: ranges of numeric features",
            "the sensitivity of a split follows from a noisy number of rows: no guarantee",
        ),
    ),
    _method(
        "privatree-sound", "PrivaTree (sound)", Guarantee.PURE, False,
        ("public: bounds, categories, labels, number of rows",),
    ),
]  # fmt: skip
