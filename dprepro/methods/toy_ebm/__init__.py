"""The toy DP-EBM of the 2025 replication, which promises nothing."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, private
from dprepro.privacy.sensitivity import ZERO_OUT

ADJACENCY = ZERO_OUT

METHODS = [
    private(
        name="toy-dp-ebm",
        version=2,
        title="Toy DP-EBM (no guarantee)",
        tasks=frozenset({"binary", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=ADJACENCY,
        assumes=(
            "not covered by epsilon: quantiles of the numeric features, which are the bin edges; "
            "categories that occur; "
            "number of rows in every bin, by which its sum of residuals is divided",
            "every bin, feature and epoch uses the noise of a single release: no guarantee",
        ),
        cite=("chatziloizos2025report",),
        form="functions",
        reference="Chatziloizos, Zhang, Behaegel 2025, section 7",
        build=Made(
            "dprepro.methods.toy_ebm.estimator:ToyDPEBMClassifier",
            "dprepro.methods.toy_ebm.estimator:ToyDPEBMRegressor",
        ),
        defaults={"max_bins": 32, "n_epochs": 300, "learning_rate": 0.01, "sigmoid": True},
    )
]
