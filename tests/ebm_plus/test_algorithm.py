"""DP-EBM+ as it is to be read: the page with a plain curator does what the estimator does."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm_plus import (
    DPEBMPlusClassifier,
    DPEBMPlusRegressor,
    algorithm,
    curator,
    residuals,
)
from dprepro.ebm_plus import booster as booster_module
from dprepro.ebm_plus.booster import Booster, Function
from dprepro.ebm_plus.clipping import EDGES
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED, LogisticLoss, SquaredLoss
from dprepro.ebm_plus.queries import INTERCEPT, Magnitudes, Residuals, Totals
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.mechanisms import NoiseSource
from tests.ebm_plus.plain import PlainCurator
from tests.ebm_plus.stub import LOSSES
from tests.ebm_plus.test_booster import BOTH

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
        first, residuals = ([], asked) if loss is LOGISTIC else ([asked[0]], asked[1:])
        assert all(isinstance(query, Magnitudes) for query in first)
        # The last feature has a single bin.
        assert [query.feature for query in residuals] == [INTERCEPT, 0, 1, 2]
        assert all(query.charged == loss.part_norm(query.bound) for query in residuals)
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

        def open_histograms(self, mu, n_features, budget, is_coarse=False):
            opened.append((mu, budget))
            super().open_histograms(mu, n_features, budget, is_coarse)

        def open_epochs(self, mu, n_epochs, budget):
            opened.append((mu, budget))
            return super().open_epochs(mu, n_epochs, budget)

    page(loss, Opening)
    shares = np.array([mu for mu, _ in opened]) ** 2 / mu_of(*BUDGET) ** 2
    expected = [0.01, 0.12, 0.87] if loss is LOGISTIC else [0.01, 0.2, 0.79]
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    for mu, budget in opened:
        assert mu_of(*budget) == pytest.approx(mu, rel=1e-6)


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
    plain, *_ = page(loss)
    shares = [query.share for query in plain.queries if isinstance(query, Residuals)]
    numbers = np.arange(1.0, EPOCHS + 1)
    if loss is SQUARED:
        # Three features are learned; 79 % of mu^2 is for the epochs.
        clear = boosters[0].rows * math.sqrt(0.79 / 3) * mu_of(*BUDGET) / 2600
        assert 0.01 < clear < 1
        numbers *= 1 - clear + clear * (numbers / EPOCHS) ** 2
    np.testing.assert_allclose(weights, np.repeat(numbers, 4) * shares)


# --- whatever differs is noticed ----------------------------------------------------------------


def clipping_more(*of):
    return residual_sums(*of[:6], math.floor(0.9 * of[6]), of[7])


def ignoring_moves(*of):
    return residual_sums(*of[:3], np.zeros_like(of[3]), *of[4:])


def no_curvatures(*of):
    return residual_sums(*of) * [[1], [0]]


def groups_in_full(feature, counts):
    answers = exact_answers(feature, counts)
    in_groups = np.arange(answers.numbers.size) >= counts.size
    return replace(answers, unit=answers.unit * np.where(in_groups, math.sqrt(2), 1.0))


def next_cell(*of):
    return np.roll(magnitude_counts(*of), 1)


residual_sums, magnitude_counts = curator.residual_sums, curator.magnitude_counts
exact_answers = curator.exact_answers
remember, largest_residual = Function.remember, Booster.largest_residual

CURATORS = {
    "clips more": (curator, "residual_sums", clipping_more),
    "ignores moves": (curator, "residual_sums", ignoring_moves),
    "groups that are counted in full": (curator, "exact_answers", groups_in_full),
}
PAGES = {
    "more for totals": (algorithm, "START_SHARE", 0.02),
    "all epochs alike": (Function, "remember", lambda f, r, e, w: remember(f, r, e, 1.0)),
    "even shares": (booster_module, "EVEN_SHARE", 1.0),
}
CHANGES = [
    *((loss, *change) for loss in LOSSES for change in [*CURATORS.items(), *PAGES.items()]),
    (LOGISTIC, "no curvatures", (curator, "residual_sums", no_curvatures)),
    (LOGISTIC, "whole steps", (LogisticLoss, "strides", (1.0, 1.0))),
    (LOGISTIC, "a lower bound", (Booster, "largest_residual", lambda b: 0.9 * largest_residual(b))),
    (SQUARED, "sizes in the next cell", (curator, "magnitude_counts", next_cell)),
    (SQUARED, "half steps", (SquaredLoss, "strides", (0.5, 0.5))),
    (SQUARED, "whole steps", (SquaredLoss, "strides", (1.0, 1.0))),
    (SQUARED, "all epochs in a hurry", (Booster, "weight", lambda _, number: (number + 1.0) ** 3)),
    (SQUARED, "one bound for all", (booster_module, "best_bound", lambda *_: EDGES[5])),
    (SQUARED, "fitted rows are new ones", (residuals, "_optimism", lambda *_: 0.0)),
]


@pytest.mark.parametrize(
    ("loss", "change"),
    [
        pytest.param(loss, change, id=f"{type(loss).__name__}: {name}")
        for loss, name, change in CHANGES
    ],
)
def test_a_change_of_one_of_them_is_noticed(loss, change, monkeypatch):
    _, *learned = page(loss)
    with monkeypatch.context() as changed:
        changed.setattr(*change)
        assert not agree(fit(loss), *learned)
