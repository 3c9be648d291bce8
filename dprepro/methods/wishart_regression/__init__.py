"""Linear regression with Wishart noise."""

from __future__ import annotations

from dprepro.methods.entry import REPEATS_PRODUCTS, Guarantee, Made, private
from dprepro.privacy.guarantee_status import Noise
from dprepro.privacy.sensitivity import REPLACE_ONE

ADJACENCY = REPLACE_ONE

METHODS = [
    private(
        name="dp-linear",
        version=2,
        title="DP linear regression (as published)",
        tasks=frozenset({"regression"}),
        guarantee=Guarantee.NONE,
        adjacency=ADJACENCY,
        assumes=(
            "not covered by epsilon: bounds of all columns and of the target, largest row norm",
            "Wishart noise is not private, and its library withdrew it: no guarantee",
        ),
        cite=("sheffet2015", "imtiaz2016", "holohan2019"),
        form="coefficients",
        reference="Sheffet 2015; Imtiaz, Sarwate 2016; as diffprivlib 0.3 with its defaults",
        build=Made("dprepro.methods.wishart_regression.estimator:WishartLinearRegression"),
        noise=Noise.FLOATING_POINT,
        repeats_within=REPEATS_PRODUCTS,
        encoding="one-hot",
    )
]
