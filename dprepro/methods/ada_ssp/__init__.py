"""AdaSSP: linear regression from noisy second moments."""

from __future__ import annotations

from dprepro.methods.entry import REPEATS_PRODUCTS, Guarantee, Made, private
from dprepro.privacy.budget import Division
from dprepro.privacy.sensitivity import ADD_REMOVE

ADJACENCY = ADD_REMOVE

METHODS = [
    private(
        name="ada-ssp",
        title="AdaSSP",
        tasks=frozenset({"regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, target range",),
        reference="Wang 2018, Algorithm 2, with one release and the eigenvalue of the noisy X'X",
        cite=("wang2018",),
        form="functions",
        build=Made("dprepro.methods.ada_ssp.estimator:AdaSSPRegressor"),
        divides=Division.GAUSSIAN,
        repeats_within=REPEATS_PRODUCTS,
        defaults={"knots": 2, "strength": 0.3},
    )
]
