"""Random forests, private and not."""

from __future__ import annotations

from dprepro.methods.entry import Guarantee, Made, not_private, private
from dprepro.privacy.sensitivity import ZERO_OUT

ADJACENCY = ZERO_OUT

METHODS = [
    private(
        name="dp-random-forest",
        version=2,
        title="DP random forest",
        tasks=frozenset({"binary", "multiclass"}),
        guarantee=Guarantee.PURE,
        adjacency=ADJACENCY,
        assumes=("public: bounds, categories, labels, number and order of rows",),
        cite=("fletcher2017", "holohan2019"),
        reference=(
            "Fletcher, Islam 2017, the trees of diffprivlib 0.6.6, with exact permute-and-flip"
        ),
        build=Made("dprepro.methods.forests.estimator:DPRandomForest"),
        encoding="one-hot",
        defaults={"n_estimators": 10, "max_depth": 5},
    ),
    not_private(
        name="random-forest",
        title="Random forest",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        cite=("breiman2001", "pedregosa2011"),
        reference="Breiman 2001, scikit-learn defaults (100 trees) on one-hot categories",
        build=Made(
            "sklearn.ensemble:RandomForestClassifier",
            "sklearn.ensemble:RandomForestRegressor",
            scaled=True,
            n_jobs=1,
        ),
        encoding="one-hot",
        defaults={"n_estimators": 100, "max_depth": None, "min_samples_leaf": 1},
    ),
]
