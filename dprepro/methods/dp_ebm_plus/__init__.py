"""DP-EBM+, our own: see `dprepro.methods.dp_ebm_plus.estimator`."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, private
from dprepro.privacy.budget import Division
from dprepro.privacy.sensitivity import ADD_REMOVE

ADJACENCY = ADD_REMOVE

_ASSUMES = ("public: bounds, categories, target range or labels; an observed domain is refused",)

METHODS = [
    private(
        name="dp-ebm-plus",
        version=22,
        title="DPEBM+",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=_ASSUMES,
        cite=("dprepro",),
        form="functions",
        gist="ours: averaged, smoothed noisy sums",
        reference="ours, from no paper: functions from averaged, smoothed, noisy sums of residuals",
        build=Made(
            "dprepro.methods.dp_ebm_plus.estimator:DPEBMPlusClassifier",
            "dprepro.methods.dp_ebm_plus.estimator:DPEBMPlusRegressor",
        ),
        divides=Division.GAUSSIAN,
        takes_tables=True,
        defaults={
            "n_epochs": None,
            "pairs": 0,
            "monotone": None,
            "observed": False,
            "largest_weight": 1.0,
            "loss": "squared_error",
        },
    ),
]
