"""Version 22 of DP-EBM+, on trial beside version 21.

See `dprepro.methods.dp_ebm_plus_22.algorithm`.
"""

from __future__ import annotations

from dprepro.methods.dp_ebm_plus import ADJACENCY
from dprepro.methods.entry import Guarantee, Made, private
from dprepro.privacy.budget import Division

METHODS = [
    private(
        name="dp-ebm-plus-22",
        version=1,
        title="DPEBM+ (22)",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=(
            "public: bounds, categories, target range or labels; an observed domain is refused",
        ),
        cite=("dprepro",),
        gist="on trial: dp-ebm-plus with one way for all numbers of rows",
        reference="ours, from no paper: DP-EBM+ with one way for few rows and many",
        build=Made(
            "dprepro.methods.dp_ebm_plus_22.estimator:DPEBMPlus22Classifier",
            "dprepro.methods.dp_ebm_plus_22.estimator:DPEBMPlus22Regressor",
        ),
        divides=Division.GAUSSIAN,
        takes_tables=True,
        defaults={"n_epochs": None, "monotone": None, "observed": False},
    )
]
