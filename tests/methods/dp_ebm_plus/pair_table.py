"""A table for tests of pairs: two features act together, and one on its own."""

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC

FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("y", 0, 1, missing=True),
    CategoricalFeature("c", ("a", "b", "d")),
)
SPAN = (-2.0, 2.0)


def table(rows=6000, seed=0, effect=1.0):
    """Rows in which x and c act together, by `effect`, and y on its own."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(rows), "y": rng.random(rows)})
    X["c"] = rng.choice(["a", "b", "d"], rows)
    signal = X["y"] - 0.5 + effect * np.where(X["c"] == "a", 1, -1) * (X["x"] - 0.5)
    X.loc[rng.random(rows) < 0.1, "y"] = np.nan
    return X, signal.fillna(0).to_numpy(), rng


def drawn(loss, rows=6000, effect=1.0):
    """Return rows, targets, domain, and an estimator."""
    X, signal, rng = table(rows, effect=effect)
    if loss is LOGISTIC:
        y = (rng.logistic(size=rows) < 4 * signal).astype(int)
        return X, y, Domain(FEATURES, ("0", "1")), DPEBMPlusClassifier
    return X, signal + rng.normal(0, 0.2, rows), Domain(FEATURES, SPAN), DPEBMPlusRegressor


def fit(loss, epsilon=4.0, rows=6000, effect=1.0, **params):
    """Return a fit that keeps three pairs at most."""
    X, y, domain, kind = drawn(loss, rows, effect)
    return kind(epsilon, domain=domain, **{"random_state": 0, "pairs": 3} | params).fit(X, y)
