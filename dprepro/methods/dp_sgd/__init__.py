"""A small dense network by DP-SGD."""

from __future__ import annotations

from dprepro.methods.entry import REPEATS_EPOCHS, Guarantee, Made, private
from dprepro.privacy.budget import Division
from dprepro.privacy.sensitivity import ADD_REMOVE

ADJACENCY = ADD_REMOVE

METHODS = [
    private(
        name="dp-sgd-mlp",
        version=2,
        title="DP-SGD network (tables)",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, target range or labels",),
        cite=("abadi2016",),
        reference="Abadi et al. 2016, Algorithm 1, with exact noise and Adam",
        build=Made(
            "dprepro.methods.dp_sgd.estimator:DPSGDClassifier",
            "dprepro.methods.dp_sgd.estimator:DPSGDRegressor",
        ),
        divides=Division.NONE,
        repeats_within=REPEATS_EPOCHS,
        defaults={
            "width": 16, "knots": None, "steps": 400, "sampling": 0.1, "clip_norm": 0.3,
            "learning_rate": 0.12,
        },
    )
]  # fmt: skip
