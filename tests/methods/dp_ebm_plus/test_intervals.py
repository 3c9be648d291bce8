"""Prediction intervals, and bands of functions: they hold what they say."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.model import LEVELS
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.clipping import quantiles
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.privacy.curator_base import listening
from tests.methods.dp_ebm_plus.stub import BOTH, Events, ask_for_bound, booster, gaussian, learn

DOMAIN = Domain(
    tuple(NumericFeature(f"x{k}", 0, 1) for k in range(6)),
    (-6.0, 6.0),
)


def problem(rows, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((rows, 6)), columns=[f.name for f in DOMAIN.features])
    y = np.sin(6 * X["x0"]) + 2 * (X["x1"] > 0.5) + rng.standard_normal(rows)
    return X, y.to_numpy().clip(-6, 6)


@pytest.mark.parametrize(("rows", "epsilon", "allowed"), [(3000, 50.0, 0.012), (3000, 1.0, 0.03)])
def test_new_rows_are_covered_as_often_as_stated(rows, epsilon, allowed):
    """At epsilon 50 functions fit their rows; without their freedom 1.4 % too few are covered."""
    covered = {0.5: [], 0.9: []}
    for seed in range(4):
        model = DPEBMPlusRegressor(epsilon, domain=DOMAIN, random_state=seed)
        model.fit(*problem(rows, seed))
        X, y = problem(20_000, 100 + seed)
        for coverage, found in covered.items():
            lower, upper = model.predict_interval(X, coverage).T
            found.append(np.mean((lower <= y) & (y <= upper)))
    for coverage, found in covered.items():
        assert abs(np.mean(found) - coverage) < allowed


def test_the_intervals_ask_nothing_of_the_rows(monkeypatch):
    """What the curator is asked and told is the same for a fit that leaves the sizes out."""
    heard = []
    X, y = problem(400, 0)
    for leave_out in (False, True):
        if leave_out:
            monkeypatch.setattr(Booster, "residual_quantiles", lambda _: None)
        events = Events()
        with listening(events):
            model = DPEBMPlusRegressor(4.0, domain=DOMAIN, n_epochs=3, random_state=0).fit(X, y)
        assert (model.residual_sizes_ is None) == leave_out
        heard.append((len(events.events), model.ledger_.entries, model.intercept_))
    assert heard[0] == heard[1]


def test_one_epoch_says_nothing_of_where_it_led():
    learner = booster(np.zeros((1, 9), int), np.zeros(9), SQUARED)
    ask_for_bound(learner)
    assert learner.residual_quantiles() is None
    ask_for_bound(learner)
    assert learner.residual_quantiles().shape == LEVELS.shape


@pytest.mark.parametrize("freedom", [0.0, 0.1])
def test_sizes_grow_by_the_degrees_of_freedom(freedom):
    learner = booster(np.zeros((1, 12), int), np.linspace(-0.3, 0.3, 12), SQUARED)
    for _ in range(3):
        ask_for_bound(learner)
    learner.effects[0].rise = np.full(3, freedom)
    plain = quantiles(learner._likely_sizes(exact=True), LEVELS)
    np.testing.assert_allclose(learner.residual_quantiles(), math.sqrt(1 + 2 * freedom) * plain)


def test_a_bin_whose_own_rows_decide_its_value_has_one_degree_of_freedom():
    """Effects far larger than what their sums leave unsure are not shrunk, so each bin is free."""
    codes = np.repeat([[0, 1, 2]], 2000, axis=1)
    targets = 0.3 * np.array([1.0, -0.8, 0.3])[codes[0]]
    targets += np.random.default_rng(0).normal(0, 0.02, 6000)
    learner = booster(codes, targets, SQUARED, noise=gaussian(1e-3))
    learn(learner)
    rise = np.average(learner.effects[0].rise, weights=learner.effects[0].counts)
    assert rise == pytest.approx(3 / 6000, rel=0.05)


# --- bands --------------------------------------------------------------------------------------

OF_BANDS = (NumericFeature("x", -4, 4), NumericFeature("step", 0, 1))


def distances(loss, epsilon, seed, rows=3000):
    """Return how far the truth lies from every bin with rows, in its band, float64 (bins,)."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.standard_normal(rows).clip(-4, 4), "step": rng.random(rows)})
    truth = np.stack([np.sin(1.5 * X["x"]), 1.5 * (X["step"] > 0.7)], axis=1)
    score = truth.sum(axis=1)
    if loss is LOGISTIC:
        y, kind, target = rng.logistic(size=rows) < score - 0.5, DPEBMPlusClassifier, ("0", "1")
        y = y.astype(int)
    else:
        y, kind, target = score + rng.standard_normal(rows), DPEBMPlusRegressor, (-8.0, 8.0)
    model = kind(epsilon, domain=Domain(OF_BANDS, target), random_state=seed).fit(X, y)
    found = []
    for k, bins in enumerate(model.bins_):
        codes = bins.encode(X.iloc[:, k])
        rows_in = np.bincount(codes, minlength=bins.n_bins)
        means = np.bincount(codes, truth[:, k], bins.n_bins) / np.maximum(rows_in, 1)
        learned = model.shape_functions_[k]
        gap = learned - np.average(learned, weights=rows_in) - means
        gap += np.average(means, weights=rows_in)
        found.append((np.abs(gap) / model.shape_noise_[k])[rows_in > 0])
    return np.concatenate(found)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 4.0])
@BOTH
def test_bands_hold_the_truth_and_are_no_wider_than_that_needs(loss, epsilon):
    found = np.concatenate([distances(loss, epsilon, seed) for seed in range(20, 25)])
    assert np.mean(found <= 2) > 0.92
    assert np.mean(found <= 0.5) < 0.75
