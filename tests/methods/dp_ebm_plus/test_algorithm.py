"""DP-EBM+ as it is to be read: the page with a plain curator does what the estimator does."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm, classes
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.counts import CountBooster
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, POISSON, SQUARED, Softmax
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Residuals,
    Totals,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.mechanisms import NoiseSource
from tests.methods.dp_ebm_plus import pair_table
from tests.methods.dp_ebm_plus.plain import PlainCurator
from tests.methods.dp_ebm_plus.stub import BOTH

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("money", 0, 1e5),
    CategoricalFeature("c", ("a", "b", "unused"), missing=True),
    NumericFeature("same", 3, 3),
)
BUDGET, EPOCHS, SEED = PrivacyBudget(2.0, 1e-6), 5, 3
ATOL = 5e-6
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
    if loss is POISSON:
        return X, rng.poisson(3 * np.exp(signal)) * 1.0, Domain(FEATURES, (0.0, 40.0))
    if isinstance(loss, Softmax):
        y = np.digitize(signal + 0.5 * rng.logistic(size=rows), [-0.5, 1.0])
        return X, y, Domain(FEATURES, ("p", "q", "r"))
    return X, signal + rng.normal(0, 0.3, rows), Domain(FEATURES, (-1.5, 2.0))


def page(loss, curator_type=PlainCurator):
    """Run the page with a plain curator; return it, and what the page returns."""
    X, y, domain = problem(loss)
    plain = curator_type(X, y, domain, loss, np.random.default_rng(SEED))
    if isinstance(loss, Softmax):
        return plain, *classes.learn(plain, domain, BUDGET, EPOCHS), None
    kind = CountBooster if loss is POISSON else Booster
    return plain, *algorithm.learn(plain, domain, loss, BUDGET, EPOCHS, kind=kind)[:4]


def with_noise_of(seed, fit):
    """Return what `fit` returns, its noise drawn as a plain curator draws it."""
    generator = np.random.default_rng(seed)

    def add_same(_, exact, scale, unit=1.0):
        return exact * unit + scale * generator.normal(size=exact.shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoiseSource, "add_gaussian", add_same)
        return fit()


def fit(loss):
    X, y, domain = problem(loss)
    kind = DPEBMPlusRegressor if loss in (SQUARED, POISSON) else DPEBMPlusClassifier
    more = {"loss": "poisson"} if loss is POISSON else {}
    model = kind(*BUDGET, n_epochs=EPOCHS, domain=domain, **more)
    return with_noise_of(SEED, lambda: model.fit(X, y))


def agree(model, bins, functions, intercept, sizes):
    """Say whether a fitted estimator is what the page made, in the unit of the targets.

    Its functions have the mean 0 over the counts, also if they are of logarithms.
    """
    lower, upper = getattr(model, "range_", (-0.5, 0.5))
    width, middle = upper - lower, (lower + upper) / 2
    if getattr(model, "log_link_", False):
        width, middle = 1.0, math.log(upper)
    means = [np.average(f.values, axis=0, weights=f.counts) for f in functions]
    pairs = [
        *zip((b.cuts for b in model.bins_), (b.cuts for b in bins), strict=True),
        *zip(model.bin_counts_, (f.counts for f in functions), strict=True),
        *((values, width * (f.values - mean))
          for values, f, mean in zip(model.shape_functions_, functions, means, strict=True)),
        *zip(model.shape_noise_, (width * f.band for f in functions), strict=True),
        (np.atleast_1d(model.intercept_), np.atleast_1d(middle + width * (intercept + sum(means)))),
    ]  # fmt: skip
    found = getattr(model, "residual_sizes_", None)
    if (found is None) != (sizes is None):
        return False
    if sizes is not None:
        pairs.append((found.sizes, width * sizes))
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=ATOL) for a, b in pairs)


@pytest.mark.parametrize(
    "loss", [LOGISTIC, SQUARED, POISSON, Softmax(3)], ids=["labels", "numbers", "counts", "classes"]
)
def test_the_estimator_does_what_a_curator_in_plain_numpy_does(loss):
    plain, found, functions, *rest = page(loss)
    model = fit(loss)
    assert agree(model, found, functions, *rest)
    assert (rest[-1] is None) == (loss is not SQUARED)
    sizes = [np.abs(values).max() for values in model.shape_functions_]
    assert min(sizes[:3]) > 0.2
    assert sizes[3] == 0
    assert [b.missing_bin for b in found[:2]] == [functions[0].counts.size - 1, -1]
    # Every row has the score that the functions say.
    parts = [f.values[plain.bins[k]] for k, f in enumerate(functions)]
    gap = plain.scores - rest[0] - sum(parts)
    np.testing.assert_allclose(gap - gap.mean(axis=-1, keepdims=gap.ndim > 1), 0, atol=1e-5)


@BOTH
def test_with_pairs_it_does_too(loss):
    budget, epochs = PrivacyBudget(4.0, 1e-6), 12
    model = with_noise_of(
        5, lambda: pair_table.fit(loss, budget.epsilon, random_state=None, n_epochs=epochs)
    )
    X, y, domain, _ = pair_table.drawn(loss)
    plain = PlainCurator(X, y, domain, loss, np.random.default_rng(5))
    _, effects, _, _, kept = algorithm.learn(plain, domain, loss, budget, epochs, 3)
    width = 1.0 if loss is LOGISTIC else domain.target[1] - domain.target[0]
    assert len(model.pairs_) == len(kept) > 0
    for term, effect in zip(model.pairs_, kept, strict=True):
        assert term.pair == effect.pair
        np.testing.assert_allclose(term.values.ravel(), width * effect.values, atol=2e-5)
        np.testing.assert_allclose(term.noise.ravel(), width * effect.band, atol=2e-5)
    for values, effect in zip(model.shape_functions_, effects, strict=True):
        np.testing.assert_allclose(values, width * effect.values, atol=2e-5)


@BOTH
def test_the_page_asks_in_the_order_of_its_docstring(loss):
    plain, _, functions, *_ = page(loss)
    totals, *others = plain.queries
    histograms, epochs = others[:4], np.reshape(others[4:], (EPOCHS, -1))
    assert isinstance(totals, Totals)
    assert all(isinstance(each, CodedHistogram) for each in histograms)
    assert [histogram.code.feature for histogram in histograms] == [0, 1, 2, 3]
    for asked in epochs:
        *first, features = asked
        assert [type(query) for query in first] == [Magnitudes, Residuals][: len(first)]
        assert len(first) == (0 if loss is LOGISTIC else 2)
        assert isinstance(features, CodedResiduals)
        # The last feature has a single bin.
        assert [code.feature for code in features.codes] == [INTERCEPT, 0, 1, 2]
        assert all(query.charged == query.enforced for query in asked)
        assert sum(query.share for query in asked) == pytest.approx(1, rel=1e-12)
    assert functions[3].counts.size == 1


@BOTH
def test_all_mu_is_spent_in_the_parts_that_the_docstring_names(loss):
    opened = []

    class Opening(PlainCurator):
        def open_totals(self, mu, budget):
            opened.append((mu, budget))
            super().open_totals(mu, budget)

        def open_histograms(self, mu, n_features, budget):
            opened.append((mu, budget))
            return super().open_histograms(mu, n_features, budget)

        def open_epochs(self, mu, n_epochs, budget, **phase):
            opened.append((mu, budget))
            return super().open_epochs(mu, n_epochs, budget, **phase)

    page(loss, Opening)
    shares = np.array([mu for mu, _ in opened]) ** 2 / mu_of(*BUDGET) ** 2
    expected = [0.01, 0.1, 0.89] if loss is LOGISTIC else [0.02, 0.1, 0.88]
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    for mu, budget in opened:
        assert mu_of(*budget) == pytest.approx(mu, rel=1e-6)


@BOTH
def test_an_answer_counts_by_the_number_of_its_epoch(loss, monkeypatch):
    boosters = []
    learn = Booster.learn

    def learning(booster, *told):
        boosters.append(booster)
        return learn(booster, *told)

    monkeypatch.setattr(Booster, "learn", learning)
    page(loss)
    booster = boosters[0]
    assert booster.weights.size == EPOCHS
    assert booster.weights.sum() == pytest.approx(1)
    assert (np.diff(booster.weights) > 0).all()
    scale = booster.deviation / math.sqrt(1 - booster.level_share - booster.sizes_share)
    for effect in booster.effects:  # the noise of an average, for a bound that changes little
        bounds = effect.answers.deviation / (scale * np.sqrt((booster.weights**2).sum()))
        assert bounds == pytest.approx(booster.coded_residuals().bound, rel=0.5)
