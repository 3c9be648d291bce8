"""DP-EBM+ as it is to be read: the page with a plain curator does what the estimator does."""

import math

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.function import Function

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    CodedResiduals,
    Magnitudes,
    Residuals,
    Totals,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.mechanisms import NoiseSource
from tests.methods.dp_ebm_plus.plain import PlainCurator
from tests.methods.dp_ebm_plus.test_booster import BOTH

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("money", 0, 1e5),
    CategoricalFeature("c", ("a", "b", "unused"), missing=True),
    NumericFeature("same", 3, 3),
)
BUDGET, EPOCHS, SEED = PrivacyBudget(2.0, 1e-6), 5, 3
ATOL = 2e-6
"""The rows' scores and residuals are multiples of 2^-24; functions are of size 1."""


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
    """Run the page with a plain curator; return it, and what the page returns."""
    X, y, domain = problem(loss)
    plain = curator_type(X, y, domain, loss, np.random.default_rng(SEED))
    return plain, *algorithm.learn(plain, domain, loss, BUDGET, EPOCHS)


def fit(loss):
    X, y, domain = problem(loss)
    estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
    generator = np.random.default_rng(SEED)

    def add_same(_, exact, scale, unit=1.0):
        return exact * unit + scale * generator.normal(size=exact.shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoiseSource, "add_gaussian", add_same)
        return estimator(*BUDGET, n_epochs=EPOCHS, domain=domain).fit(X, y)


def agree(model, bins, functions, intercept, sizes):
    """Say whether a fitted estimator is what the page made, in the unit of the targets."""
    lower, upper = getattr(model, "range_", (-0.5, 0.5))
    width, middle = upper - lower, (lower + upper) / 2
    pairs = [
        *zip((b.cuts for b in model.bins_), (b.cuts for b in bins), strict=True),
        *zip(model.bin_counts_, (f.counts for f in functions), strict=True),
        *zip(model.shape_functions_, (width * f.values for f in functions), strict=True),
        *zip(model.shape_noise_, (width * f.band for f in functions), strict=True),
        (np.array([model.intercept_]), np.array([middle + width * intercept])),
    ]
    found = getattr(model, "residual_sizes_", None)
    if (found is None) != (sizes is None):
        return False
    if sizes is not None:
        pairs.append((found.sizes, width * sizes))
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=ATOL) for a, b in pairs)


@BOTH
def test_the_estimator_does_what_the_page_says(loss):
    _, found, functions, *rest = page(loss)
    model = fit(loss)
    assert agree(model, found, functions, *rest)
    assert (rest[-1] is None) == (loss is LOGISTIC)
    sizes = [np.abs(values).max() for values in model.shape_functions_]
    assert min(sizes[:3]) > 0.2
    assert sizes[3] == 0
    assert [b.missing_bin for b in found[:2]] == [functions[0].counts.size - 1, -1]


@BOTH
def test_the_page_asks_in_the_order_of_its_docstring(loss):
    plain, _, functions, *_ = page(loss)
    totals, *others = plain.queries
    histograms, epochs = others[:4], np.reshape(others[4:], (EPOCHS, -1))
    assert isinstance(totals, Totals)
    assert [histogram.feature for histogram in histograms] == [0, 1, 2, 3]
    for asked in epochs:
        if loss is LOGISTIC:
            (query,) = of_residuals = asked
            assert isinstance(query, CodedResiduals)
            functions_asked = query.codes
        else:
            assert isinstance(asked[0], Magnitudes)
            intercept, *features = of_residuals = asked[1:]
            assert isinstance(intercept, Residuals)
            assert all(isinstance(query, CodedResiduals) for query in features)
            functions_asked = [intercept, *(code for query in features for code in query.codes)]
        # The last feature has a single bin.
        assert [function.feature for function in functions_asked] == [INTERCEPT, 0, 1, 2]
        assert all(query.charged == query.bound for query in of_residuals)
        assert sum(query.share for query in asked) == pytest.approx(1, rel=1e-12)
    assert functions[3].counts.size == 1


@BOTH
def test_every_row_has_the_score_that_the_functions_say(loss):
    plain, _, functions, intercept, _ = page(loss)
    bins = [plain.bins[k][0] for k in range(len(functions))]
    parts = [function.values[codes] for function, codes in zip(functions, bins, strict=True)]
    np.testing.assert_allclose(plain.scores, intercept + sum(parts), atol=1e-5)


@BOTH
def test_all_mu_is_spent_in_the_parts_that_the_docstring_names(loss):
    opened = []

    class Opening(PlainCurator):
        def open_totals(self, mu, budget):
            opened.append((mu, budget))
            super().open_totals(mu, budget)

        def open_histograms(self, mu, n_features, budget, is_low_signal=False):
            opened.append((mu, budget))
            super().open_histograms(mu, n_features, budget, is_low_signal)

        def open_epochs(self, mu, n_epochs, budget, **phase):
            opened.append((mu, budget))
            return super().open_epochs(mu, n_epochs, budget, **phase)

    page(loss, Opening)
    shares = np.array([mu for mu, _ in opened]) ** 2 / mu_of(*BUDGET) ** 2
    expected = [0.01, 0.12, 0.87] if loss is LOGISTIC else [0.02, 0.2, 0.78]
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    for mu, budget in opened:
        assert mu_of(*budget) == pytest.approx(mu, rel=1e-6)


def part_of(code, counts):
    """Return the mean squared weight that a code gives to a row, of a mix the squared norm."""
    squares = code.weights**2 if code.mix is None else code.squared_norms()
    return np.average(squares, weights=counts)


def of_one_bin_each(code, counts, loss):
    """Return a code's mean squared weight, or of a mix that of a code as long without a mix."""
    if code.mix is None:
        return part_of(code, counts)
    shares = counts / counts.sum()
    squares = np.maximum(shares, 1 / 256) ** -(0.5 if loss is LOGISTIC else 0.0)
    centred = (shares * (1 - shares) * squares).sum() / (shares * squares).sum()
    return part_of(code, counts) / centred


@BOTH
def test_an_answer_counts_by_its_share_and_by_the_number_of_its_epoch(loss, monkeypatch):
    weights, boosters = [], []
    remember, learn = Function.remember, Booster.learn

    def learning(booster, *told):
        boosters.append(booster)
        return learn(booster, *told)

    def noting(function, release, expected, weight):
        weights.append(weight)
        remember(function, release, expected, weight)

    monkeypatch.setattr(Function, "remember", noting)
    monkeypatch.setattr(Booster, "learn", learning)
    plain, _, functions, *_ = page(loss)
    numbers, shares, spent = np.arange(1.0, EPOCHS + 1), [], []
    counts = {INTERCEPT: np.ones(1)} | {k: functions[k].counts for k in range(3)}
    for query in plain.queries:
        if isinstance(query, Residuals):
            shares.append(query.share)
        elif isinstance(query, CodedResiduals):
            parts = [part_of(code, counts[code.feature]) for code in query.codes]
            shares += [query.share * part for part in parts]
            spent.append(sum(of_one_bin_each(c, counts[c.feature], loss) for c in query.codes))
    # Weights are rounded down to powers of 2^(1/4): their squares by the root of 2 at most.
    assert 0.7 < min(spent) <= max(spent) < 1 + 1e-9
    if loss is SQUARED:
        # Three features are learned; 78 % of mu^2 is for the epochs.
        clear = boosters[0].rows * math.sqrt(0.78 / 3) * mu_of(*BUDGET) / 2600
        assert 0.01 < clear < 1
        numbers *= 1 - clear + clear * (numbers / EPOCHS) ** 2
    np.testing.assert_allclose(weights, np.repeat(numbers, 4) * shares)
