"""Learners without privacy, trained on private synthetic rows."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, private
from dprepro.privacy.sensitivity import ADD_REMOVE

ADJACENCY = ADD_REMOVE

METHODS = [
    private(
        name="mst-lightgbm",
        version=1,
        title="MST, LightGBM",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, target range or labels",),
        reference="McKenna, Miklau, Sheldon 2021, Winning the NIST contest, then LightGBM",
        cite=("mckenna2021", "ke2017"),
        build=Made(
            "dprepro.methods.synthetic.estimator:SyntheticClassifier",
            "dprepro.methods.synthetic.estimator:SyntheticRegressor",
        ),
        defaults={"n_bins": 32},
    ),
]
