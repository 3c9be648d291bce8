"""DP-EBM+ as it is to be read: the page with a plain curator does what the estimator does."""

import math

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor, algorithm
from dprepro.ebm_plus.losses import LOGISTIC
from dprepro.privacy.budget import PrivacyBudget
from tests.ebm_plus.plain import PlainCurator
from tests.ebm_plus.test_booster import BOTH

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("money", 0, 1e5),
    CategoricalFeature("c", ("a", "b", "unused"), missing=True),
    NumericFeature("same", 3, 3),
)
BUDGET, EPOCHS, SEED = PrivacyBudget(2.0, 1e-6), 5, 3
ATOL = 2e-4
"""Scores and changes are float32, residuals multiples of 2^-24; functions are of size 1."""


def problem(loss):
    """Return a table with missing values and categories, targets that leave their range, domain."""
    rng = np.random.default_rng(0)
    rows = 2000
    x, money = rng.random(rows), np.exp(rng.normal(4, 2, rows))
    c = rng.choice(["a", "b"], rows)
    signal = np.sin(6 * x) + (money > 100) + (c == "b") - 1
    X = pd.DataFrame({"x": x, "money": money, "c": c.astype(object), "same": 3.0})
    X.loc[rng.random(rows) < 0.2, "x"] = math.nan
    X.loc[rng.random(rows) < 0.1, "c"] = None
    if loss is LOGISTIC:
        return X, (rng.logistic(size=rows) < 2 * signal).astype(int), Domain(FEATURES, ("0", "1"))
    return X, signal + rng.normal(0, 0.3, rows), Domain(FEATURES, (-1.5, 2.0))


def page(loss, curator_type=PlainCurator):
    """Run the page with a plain curator; return it, the bins, the functions and the intercept."""
    X, y, domain = problem(loss)
    plain = curator_type(X, y, domain, loss, np.random.default_rng(SEED))
    return plain, *algorithm.learn(plain, domain, loss, BUDGET, EPOCHS)


def fit(loss):
    X, y, domain = problem(loss)
    estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
    return estimator(*BUDGET, n_epochs=EPOCHS, domain=domain, random_state=SEED).fit(X, y)


def agree(model, bins, functions, intercept):
    """Say whether a fitted estimator is what the page made, in the unit of the targets."""
    lower, upper = getattr(model, "range_", (-0.5, 0.5))
    width, middle = upper - lower, (lower + upper) / 2
    pairs = [
        *zip((b.cuts for b in model.bins_), (b.cuts for b in bins), strict=True),
        *zip(model.bin_counts_, (f.counts for f in functions), strict=True),
        *zip(model.shape_functions_, (width * f.values for f in functions), strict=True),
        *zip(model.shape_noise_, (width * f.deviations for f in functions), strict=True),
        (np.array([model.intercept_]), np.array([middle + width * intercept])),
    ]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=ATOL) for a, b in pairs)


@BOTH
def test_the_estimator_does_what_the_page_says(loss):
    plain, bins, functions, intercept = page(loss)
    model = fit(loss)
    assert agree(model, bins, functions, intercept)
    sizes = [np.abs(values).max() for values in model.shape_functions_]
    assert min(sizes[:3]) > 0.2
    assert sizes[3] == 0
    assert [b.missing_bin for b in bins[:2]] == [len(functions[0].values) - 1, -1]
    assert all(np.isfinite(f.values).all() for f in functions)
    assert len(plain.queries) > 5 * EPOCHS - 5
