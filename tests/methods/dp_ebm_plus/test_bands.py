"""Bands hold the noise in counts, and what few rows leave unknown; no function depends on them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer, deviations
from dprepro.methods.dp_ebm_plus.low_signal import LowSignalBooster, likely_counts, likely_error

from dprepro.additive.describe import had_few_rows
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import booster as booster_module
from dprepro.methods.dp_ebm_plus import low_signal
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.strategy import autoregressive_strategy
from tests.methods.dp_ebm_plus.stub import BINS, booster, learn

CODES = np.repeat(np.arange(BINS), [40, 400, 400])
TARGETS = np.repeat([0.4, -0.1, 0.06], [40, 400, 400])
DOMAIN = Domain((NumericFeature("x", -4, 4), NumericFeature("step", 0, 1)), (-8.0, 8.0))


def learned(counts, uncertainty, epochs=3):
    learner = booster(CODES[None], TARGETS, SQUARED, counts=np.array(counts), deviation=1e-4)
    (function,) = learner.functions
    function.uncertainty = np.array(uncertainty)
    learn(learner, epochs)
    return function, learner.mean_square


def test_a_count_that_may_be_too_large_widens_the_band_of_its_bin():
    """The first bin has 40 rows, its count says 85, three quarters of its noise more."""
    function, square = learned([85.0, 400.0, 400.0], [60.0, 1.0, 1.0])
    truth = TARGETS[[0, 40, 440]]
    gap = function.values - function.values[1] - (truth - truth[1])
    assert gap[0] < -4 * function.deviations[0]
    wide = deviations(function, square)
    assert abs(gap[0]) < 2 * wide[0]
    assert wide[0] > 3 * function.deviations[0]
    np.testing.assert_allclose(wide[1:], function.deviations[1:], rtol=0.02)


def test_the_widening_is_what_the_docstring_says():
    function, square = learned([140.0, 300.0, 410.0], [80.0, 20.0, 1e9])
    error = np.array([60 / 140, 15 / 300, 0.8])
    asked_at = function.averages()[0][1]
    more = (error / (1 - error)) ** 2 * ((function.values - asked_at) ** 2 + function.deviations**2)
    found = deviations(function, square) ** 2 - function.deviations**2
    # What a bin's own sum leaves unsure is more than what all sums do.
    noise = function.averages()[1]
    own = square / function.counts + noise / function.counts**2
    assert (function.deviations**2 < own).all()
    np.testing.assert_allclose(found, more * function.deviations / np.sqrt(own), rtol=1e-9)


def test_a_value_that_follows_from_its_own_sum_alone_is_widened_in_full():
    """And by no more, though its deviation be larger than its sum leaves it."""
    function, square = learned([140.0, 300.0, 410.0], [80.0, 20.0, 1e9])
    error = np.array([60 / 140, 15 / 300, 0.8])
    noise = function.averages()[1]
    own = np.sqrt(square / function.counts + noise / function.counts**2)
    gap = function.values - function.averages()[0][1]
    for times in (1.0, 3.0):
        function.deviations = times * own
        more = (error / (1 - error)) ** 2 * (gap**2 + function.deviations**2)
        expected = function.deviations**2 + more
        np.testing.assert_allclose(deviations(function, square) ** 2, expected)


def test_of_sums_that_share_noise_it_is_that_of_each_that_counts():
    function, square = learned([140.0, 300.0, 410.0], [80.0, 20.0, 0.0])
    decay = autoregressive_strategy(function.counts, np.ones(BINS), 0.0)
    shared = replace(function, decay=decay)
    shared.values, shared.deviations = function.values, function.deviations
    shared.remember(Answer(np.ones(BINS), np.full(BINS, 3.0)), np.zeros(BINS), 1.0)
    variance = np.array([9 * (1 + k**2) for k in decay.following])
    own = square / shared.counts + variance / shared.counts**2
    error = np.array([60 / 140, 15 / 300, 0.0])
    more = (error / (1 - error)) ** 2 * (shared.values**2 + shared.deviations**2)
    expected = shared.deviations**2 + more * shared.deviations / np.sqrt(own)
    assert (shared.deviations**2 < own).all()
    np.testing.assert_allclose(deviations(shared, square) ** 2, expected)


def test_exact_counts_keep_their_deviations():
    exact, square = learned([40.0, 400.0, 400.0], [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(deviations(exact, square), exact.deviations)


def fits(epsilon, rows=3000, seeds=range(20, 26)):
    """Yield models, and the true function's mean in each bin that has rows."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"x": rng.standard_normal(rows).clip(-4, 4), "step": rng.random(rows)})
        truth = np.stack([np.sin(1.5 * X["x"]), 1.5 * (X["step"] > 0.7)], axis=1)
        y = (truth.sum(axis=1) + rng.standard_normal(rows)).clip(-8, 8)
        yield DPEBMPlusRegressor(epsilon, domain=DOMAIN, random_state=seed).fit(X, y), X, truth


def held(model, X, truth):
    """Return, for every bin with rows, whether its band holds the truth; bool (bins,)."""
    found = []
    for k, bins in enumerate(model.bins_):
        codes = bins.encode(X.iloc[:, k])
        rows = np.bincount(codes, minlength=bins.n_bins)
        means = np.bincount(codes, truth[:, k], bins.n_bins) / np.maximum(rows, 1)
        learned = model.shape_functions_[k]
        gap = learned - np.average(learned, weights=rows) - means
        gap += np.average(means, weights=rows)
        found.append((np.abs(gap) <= 2 * model.shape_noise_[k])[rows > 0])
    return np.concatenate(found)


def test_bands_hold_the_truth_where_counts_are_noisy(monkeypatch):
    new = np.concatenate([held(*fit) for fit in fits(0.3)]).mean()
    shapes = [model.shape_functions_ for model, *_ in fits(0.3)]
    monkeypatch.setattr(booster_module, "deviations", lambda f, _: f.deviations)
    old = np.concatenate([held(*fit) for fit in fits(0.3)]).mean()
    assert 0.92 < new < 0.995
    assert old < new - 0.02
    for before, (model, *_) in zip(shapes, fits(0.3), strict=True):
        for a, b in zip(before, model.shape_functions_, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("largest", [0.5, 0.9])
def test_no_relative_error_beyond_the_largest_is_believed(monkeypatch, largest):
    function, square = learned([140.0, 400.0, 400.0], [1e6, 0.0, 0.0])
    monkeypatch.setattr("dprepro.methods.dp_ebm_plus.function._MOST", largest)
    gaps = (function.values - function.averages()[0][1]) ** 2 + function.deviations**2
    more = deviations(function, square)[0] ** 2 - function.deviations[0] ** 2
    own = square / 140 + function.averages()[1] / 140**2
    part = function.deviations[0] / np.sqrt(own)
    assert more == pytest.approx(part * (largest / (1 - largest)) ** 2 * gaps[0])


# --- few rows -----------------------------------------------------------------------------------


def of_labels(epsilon, rows=3000, seeds=range(40, 48)):
    """Yield classifiers, and the true function's mean in each bin that has rows."""
    domain = Domain(DOMAIN.features, ("0", "1"))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"x": rng.standard_normal(rows).clip(-4, 4), "step": rng.random(rows)})
        truth = np.stack([np.sin(1.5 * X["x"]), 1.5 * (X["step"] > 0.7)], axis=1)
        y = (truth.sum(axis=1) + rng.logistic(size=rows) > 0.5).astype(int)
        yield DPEBMPlusClassifier(epsilon, domain=domain, random_state=seed).fit(X, y), X, truth


@pytest.mark.parametrize(
    ("found", "epsilon", "most"),
    [
        (of_labels, 0.1, 0.92),
        (of_labels, 0.05, 0.9),
        (of_labels, 0.03, 0.8),
        (fits, 0.05, 0.93),
        (fits, 0.03, 0.9),
    ],
)
def test_bands_hold_the_truth_where_rows_are_few(monkeypatch, found, epsilon, most):
    """Functions end short of the effects there, the farther the fewer rows are.

    Bands of the noise alone hold 0.88, 0.82 and 0.61 of them for labels, from the largest epsilon
    to the smallest, and 0.91 and 0.86 for numbers.
    """
    cases = list(found(epsilon))
    assert all(had_few_rows(model) for model, *_ in cases)
    assert np.concatenate([held(*case) for case in cases]).mean() > 0.93
    monkeypatch.setattr(LowSignalBooster, "band_of", lambda _, function: function.deviations)
    others = list(found(epsilon))
    assert np.concatenate([held(*case) for case in others]).mean() < most
    # Functions and the intercept do not depend on them.
    for (model, *_), (other, *_) in zip(cases, others, strict=True):
        assert model.intercept_ == other.intercept_
        for a, b in zip(model.shape_functions_, other.shape_functions_, strict=True):
            np.testing.assert_array_equal(a, b)


def few(uncertainty):
    """Return a booster of few rows that has learned a function of labels, and the function."""
    targets = np.tile([0.0, 0.0, 1.0], CODES.size // 3)
    plain = booster(CODES[None], targets, LOGISTIC, counts=np.array([40.0, 400.0, 400.0]))
    learner = LowSignalBooster(plain.functions, LOGISTIC, 840.0, 0.0, 0.2, 20.0, n_epochs=4)
    learner.curator = plain.curator
    (function,) = learner.functions
    function.uncertainty = np.array(uncertainty)
    learn(learner, 4)
    learner.set_bands()
    return learner, function


def test_a_bin_whose_rows_are_unknown_has_a_wider_band():
    known, some, nothing = (few([0.0, noise, 0.0])[1].band for noise in (0.0, 400.0, 1e9))
    assert known[1] < 0.98 * nothing[1]
    assert known[1] < 0.98 * some[1]
    assert np.all(known[[0, 2]] < nothing[[0, 2]])
    assert np.all(nothing[[0, 2]] < 1.2 * known[[0, 2]])


def test_a_band_is_the_error_to_expect_of_what_was_learned():
    learner, function = few([0.0, 30.0, 0.0])
    path = learner.path(function)
    found = likely_error(function, path, 840.0, size=0.75, sampling=1.0)
    np.testing.assert_array_equal(function.band, found)
    assert np.all(np.abs(found - likely_error(function, path, 840.0, 1.0, 1.0)) > 1e-4)


def test_effects_of_numbers_are_in_units_of_the_deviation_of_targets():
    learner = booster(CODES[None], TARGETS, SQUARED)
    few_rows = LowSignalBooster(learner.functions, SQUARED, 840.0, 0.0, 0.2, 20.0, n_epochs=2)
    few_rows.curator = learner.curator
    learn(few_rows, 2)
    (function,) = few_rows.functions
    few_rows.set_bands()
    size = np.sqrt(few_rows.sizes()[1])  # of what no function explains, large residuals included
    assert size > 1.1 * few_rows.usual
    found = likely_error(
        function, few_rows.path(function), 840.0, 0.36 * size, few_rows.mean_square
    )
    np.testing.assert_allclose(function.band, found, rtol=1e-6)


@pytest.mark.parametrize("found", [of_labels, fits])
def test_bands_take_counts_as_they_were_released(monkeypatch, found):
    """And the number of all rows, which is released, too."""
    seen = []

    def spy(function, path, rows, size, sampling):
        seen.append((function, rows))
        return likely_error(function, path, rows, size, sampling)

    monkeypatch.setattr(low_signal, "likely_error", spy)
    list(found(0.03, seeds=[1]))
    assert len(seen) == 2
    for function, rows in seen:
        assert function.noisy.min() < 0 < function.counts.min()
        likely = likely_counts(function.noisy, function.uncertainty, rows)
        np.testing.assert_allclose(function.counts, likely)


def test_without_few_rows_labels_have_the_posterior_deviation():
    learner = booster(CODES[None], (TARGETS > 0).astype(float), LOGISTIC)
    learn(learner, 2)
    learner.set_bands()
    np.testing.assert_array_equal(learner.functions[0].band, learner.functions[0].deviations)
