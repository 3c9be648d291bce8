"""A table for tests of DP-EBM+: two numbers, one of them skewed, and a category."""

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature

FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("money", 0, 1e5),
    CategoricalFeature("c", ("a", "b")),
)
DOMAIN = Domain(FEATURES, ("0", "1"))
RANGE = Domain(FEATURES, (-5.0, 5.0))


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.random(rows),
            "money": np.where(rng.random(rows) < 0.5, 0.0, np.exp(rng.normal(4, 2, rows))),
            "c": rng.choice(["a", "b"], rows),
        }
    )
    signal = np.sin(6 * X["x"]) + (X["money"] > 100) + (X["c"] == "b") - 1
    labels = (rng.logistic(size=rows) < 2 * signal).astype(int)
    return X, labels.to_numpy(), (signal + rng.normal(0, 0.1, rows)).to_numpy()
