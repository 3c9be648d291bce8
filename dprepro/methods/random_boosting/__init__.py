"""Private boosting with totally random trees, the rival of Maddock et al. 2022."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, private
from dprepro.privacy.budget import Division
from dprepro.privacy.sensitivity import ADD_REMOVE

ADJACENCY = ADD_REMOVE

METHODS = [
    private(
        name="dp-random-boosting",
        title="DP boosting with random trees",
        tasks=frozenset({"binary"}),
        guarantee=Guarantee.APPROXIMATE,
        adjacency=ADJACENCY,
        assumes=(
            "bounds, categories and labels are public",
            'not covered by epsilon if asked for: quantiles (candidates="quantile"), ranks '
            "(from_ranks), a delta of one over the number of rows (delta_from_rows)",
        ),
        reference="Maddock, Cormode, Wang, Maple, Jha 2022, Federated boosted decision trees",
        cite=("maddock2022",),
        form="functions",
        build=Made("dprepro.methods.random_boosting.estimator:DPRandomBoostingClassifier"),
        divides=Division.GAUSSIAN,
        defaults={
            "n_trees": 100, "max_depth": 4, "additive": True, "full_cycles": False,
            "update": "newton", "batches": 4, "candidates": "adaptive_hessian", "n_candidates": 32,
            "sketch_rounds": 5, "histograms": "own", "separate": False, "learning_rate": 0.3,
            "ridge": 1.0, "largest_value": 2.0, "composition": "gdp", "delta_from_rows": False,
            "from_ranks": False,
        },
    )
]  # fmt: skip
