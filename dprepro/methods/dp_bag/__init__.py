"""DP-Bag as the paper runs it, and with a guarantee."""

from __future__ import annotations

from dprepro.methods.entry import REPEATS_SOLVER, Guarantee, Made, Method, private
from dprepro.privacy.sensitivity import REPLACE_ONE

ADJACENCY = REPLACE_ONE


def _method(name: str, title: str, guarantee: Guarantee, inputs: str, assumes: str) -> Method:
    return private(
        name=name,
        version=2,
        title=title,
        tasks=frozenset({"binary"}),
        guarantee=guarantee,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, labels, number of rows", assumes),
        cite=("jordon2019",),
        reference="Jordon, Yoon, van der Schaar 2019, by the authors' code, every vote charged",
        build=Made("dprepro.methods.dp_bag.estimator:DPBagClassifier", inputs=inputs),
        repeats_within=REPEATS_SOLVER,
        defaults={"teachers": 100, "partitions": 50, "rate": None, "limit": 10_000},
    )


METHODS = [
    _method(
        "dp-bag", "DP-Bag", Guarantee.NONE, "rows",
        "not covered by epsilon: the features of half of the rows, which the student learns from",
    ),
    _method(
        "dp-bag-sound", "DP-Bag (sound)", Guarantee.APPROXIMATE, "domain",
        "the student learns from rows drawn from the public domain",
    ),
]  # fmt: skip
