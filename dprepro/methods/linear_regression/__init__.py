"""Linear regression, private and not."""

from __future__ import annotations

from dprepro.data.domain import TaskKind
from dprepro.methods.entry import REPEATS_PRODUCTS, Guarantee, Made, not_private, private
from dprepro.privacy.sensitivity import REPLACE_ONE

ADJACENCY = REPLACE_ONE

_REGRESSION: frozenset[TaskKind] = frozenset({"regression"})
_OURS = "dprepro.methods.linear_regression.estimator:"

METHODS = [
    private(
        name="dp-linear-fair",
        version=2,
        title="DP linear regression (fair)",
        tasks=_REGRESSION,
        guarantee=Guarantee.PURE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, target range, number of rows",),
        cite=("zhang2012", "holohan2019"),
        form="coefficients",
        reference=(
            "Zhang et al. 2012, the mechanism of diffprivlib 0.6.6 with exact noise, on columns "
            "scaled to [-1, 1]"
        ),
        build=Made(_OURS + "DPLinearRegression"),
        repeats_within=REPEATS_PRODUCTS,
        encoding="symmetric",
    ),
    not_private(
        name="linear",
        title="Linear regression (as published)",
        tasks=_REGRESSION,
        cite=("pedregosa2011",),
        form="coefficients",
        reference="scikit-learn defaults on one-hot categories and numeric features as they are",
        build=Made("sklearn.linear_model:LinearRegression"),
        repeats_within=REPEATS_PRODUCTS,
        encoding="one-hot",
    ),
    not_private(
        name="linear-fair",
        title="Linear regression (fair)",
        tasks=_REGRESSION,
        cite=("pedregosa2011",),
        form="coefficients",
        reference="least squares on columns scaled to [-1, 1]",
        build=Made(_OURS + "PlainBoundedLinearRegression"),
        repeats_within=REPEATS_PRODUCTS,
        encoding="symmetric",
    ),
]
