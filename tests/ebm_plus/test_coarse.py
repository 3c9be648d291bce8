"""The coarse way: when it is taken, its public bins, and that it learns where noise is large."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bands import had_few_rows
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor, algorithm, coarse
from dprepro.ebm_plus.coarse import CoarseBooster, is_coarse, likely_counts, public_bins
from dprepro.ebm_plus.function import Answer, Function
from dprepro.ebm_plus.grid import grid_edges
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.ebm_plus.paths import Path
from dprepro.ebm_plus.queries import INTERCEPT, Code, CodedResiduals, Magnitudes, Residuals
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from tests.ebm_plus import test_algorithm
from tests.ebm_plus.stub import booster, gaussian, learn
from tests.ebm_plus.test_booster import BOTH

LITTLE = PrivacyBudget(0.02, 1e-6)
"""Of this the 2,000 rows of `test_algorithm` are few."""


@BOTH
def test_the_estimator_does_what_the_page_says(loss, monkeypatch):
    monkeypatch.setattr(test_algorithm, "BUDGET", LITTLE)
    _, *learned = test_algorithm.page(loss)
    model = test_algorithm.fit(loss)
    assert test_algorithm.agree(model, *learned)
    assert [function.counts.size for function in learned[1]] == [31, 30, 4, 1]


@BOTH
def test_all_mu_is_spent_and_the_ledger_says_so(loss, monkeypatch):
    monkeypatch.setattr(test_algorithm, "BUDGET", LITTLE)
    plain, *_ = test_algorithm.page(loss)
    first, *_ = asked = [query for query in plain.queries if isinstance(query, CodedResiduals)]
    charged = [query.share for query in plain.queries[5:]]
    assert sum(charged) == pytest.approx(test_algorithm.EPOCHS, rel=1e-12)
    assert len(asked) == test_algorithm.EPOCHS
    kinds = [type(query) for query in plain.queries[5 : 5 + len(charged) // len(asked)]]
    # All numbers of a feature are asked alike, though few rows lie in some bins.
    if loss is SQUARED:
        assert kinds == [Magnitudes, Residuals, CodedResiduals]
        assert charged[1] == pytest.approx(0.3)
        assert [code.feature for code in first.codes] == [0, 1, 2]
        squares = np.full(3, 1 / 3)
    else:
        assert kinds == [CodedResiduals]
        assert [code.feature for code in first.codes] == [INTERCEPT, 0, 1, 2]
        # The intercept's is a power of the root of 2, the next one below.
        squares = np.array([2.0 ** (math.floor(2 * math.log2(0.5 / 3.5)) / 2), *3 * [1 / 3.5]])
    for code, square in zip(first.codes, squares, strict=True):
        np.testing.assert_allclose(code.weights**2, square)
    ledger = test_algorithm.fit(loss).ledger_
    expected = [0.02, 0.02, 0.96] if loss is SQUARED else [0.01, 0.02, 0.97]
    mus = [np.sqrt(entry.uses) / entry.noise_multiplier for entry in ledger.entries]
    np.testing.assert_allclose(np.square(mus) / mu_of(*LITTLE) ** 2, expected, rtol=1e-9)


@pytest.mark.parametrize(("rows", "expected"), [(999, True), (1001, False)])
def test_rows_are_few_below_so_many_deviations_of_the_noise(rows, expected):
    # The noise is sqrt(16) / 0.6.
    assert is_coarse(rows, 16, 0.6, 150) is expected


def test_rows_of_targets_at_both_ends_of_their_range_are_not_as_soon_few():
    assert [LOGISTIC.few(0.5), SQUARED.few(0.3), SQUARED.few(0.31)] == [150, 150, 40]
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(4000), "z": rng.random(4000)})
    domain = Domain(tuple(NumericFeature(name, 0, 1) for name in "xz"), (0.0, 1.0))
    for y, few in ((rng.integers(0, 2, 4000) * 1.0, False), (0.5 + 0.1 * X["x"], True)):
        model = DPEBMPlusRegressor(0.2, 1e-6, domain=domain, random_state=0).fit(X, y)
        assert had_few_rows(model) is few


@pytest.mark.parametrize("missing", [False, True])
def test_numeric_bins_have_alike_many_cells_of_the_public_grid(missing):
    feature = NumericFeature("x", 0, 1e5, missing=missing)
    bins, bin_of_cell = public_bins(feature)
    assert bins.n_bins == 30 + missing
    sizes = np.bincount(bin_of_cell[:-1])
    assert sizes.size == 30
    assert np.ptp(sizes) <= 1
    assert bin_of_cell[-1] == (30 if missing else 0)
    assert bins.missing_bin == (30 if missing else -1)
    cells = np.searchsorted(bins.cuts, grid_edges(feature), side="right")
    np.testing.assert_array_equal(cells, bin_of_cell[1:-1])


def test_categories_are_bins_as_far_as_codes_number_them():
    few, many = (tuple(map(str, range(n))) for n in (5, 400))
    bins, bin_of_cell = public_bins(CategoricalFeature("c", few, missing=True))
    assert bins.n_bins == 6
    np.testing.assert_array_equal(bin_of_cell, np.arange(6))
    bins, bin_of_cell = public_bins(CategoricalFeature("c", many))
    assert bins.n_bins == 251
    assert bin_of_cell.max() == 250


def test_a_feature_of_one_value_has_one_bin():
    assert public_bins(NumericFeature("x", 3, 3))[0].n_bins == 1


def test_counts_that_are_lost_in_noise_are_even_and_others_are_kept():
    noisy = np.array([100.0, 300.0, 600.0, 0.0])
    np.testing.assert_allclose(likely_counts(noisy, np.full(4, 1e9), 1000.0), 250, rtol=1e-6)
    np.testing.assert_allclose(
        likely_counts(noisy, np.full(4, 1e-6), 1000.0)[:3] / 1000, noisy[:3] / 1012.5, rtol=1e-6
    )
    assert likely_counts(-1e6 * np.ones(4), np.full(4, 100.0), 1000.0).min() > 0
    # Noise as large as an even count: halfway between what was released and that.
    between = likely_counts(noisy, np.full(4, 250.0), 1000.0)
    np.testing.assert_allclose(between, (noisy + 250) / 2)


def coarse_booster(loss, deviation):
    """Return a coarse booster of two features of three bins, and the log odds or targets."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 4000))
    signal = np.array([-1.0, 0.0, 1.0])[codes[0]]
    labels = (rng.logistic(size=4000) < 2 * signal).astype(float)
    targets = labels if loss is LOGISTIC else 0.2 * signal
    plain = booster(codes, targets, loss, noise=gaussian(deviation), deviation=deviation)
    learner = CoarseBooster(
        plain.functions, loss, plain.rows, 0.0, plain.typical, deviation, n_epochs=16
    )
    learner.curator = plain.curator
    return learner


def test_the_bound_of_labels_rises_with_the_signal_to_that_where_rows_are_no_longer_few():
    functions = coarse_booster(LOGISTIC, 1.0).functions
    bounds = {}
    for signal in (1e-9, 75.0, 150.0, 1e9):
        # Two features share an epoch: its noise in the sums of one is sqrt(2) as large.
        rows = signal * math.sqrt(2 / 8)
        learner = CoarseBooster(functions, LOGISTIC, rows, 0.0, 0.5, 1.0, n_epochs=8)
        assert learner.signal == pytest.approx(signal)
        bounds[signal] = learner.bound
    assert bounds == pytest.approx({1e-9: 0.4, 75.0: 0.6, 150.0: 0.8, 1e9: 0.8})
    assert CoarseBooster(functions, SQUARED, 1e-9, 0.0, 0.5, 1.0, n_epochs=8).bound == 1


def test_the_bound_of_labels_is_that_of_a_row_whose_code_is_of_typical_length():
    """Without noise rows of all bins are known, and the bound in a bin is for its rows' codes."""
    learner = coarse_booster(LOGISTIC, deviation=100.0)
    query = learner.coded_residuals()
    assert len(query.codes) == 3
    codes = learner.curator.exact._columns.codes
    norms = sum(code.squared_norms()[codes.get(code.feature, 0)] for code in query.codes)
    allowed = query.bound / np.sqrt(norms)
    assert allowed.min() < learner.bound < allowed.max()
    assert np.mean(allowed**-2.0) ** -0.5 == pytest.approx(learner.bound, rel=0.01)


def first_steps(deviation):
    """Return a coarse booster of labels, and what one answer of ones makes of each path."""
    learner = coarse_booster(LOGISTIC, deviation)
    steps = []
    for function in learner.functions:
        learner.learn(function, Answer(np.array([1.0, 0.0, -1.0]), deviation), 0.01, 0)
        steps.append(np.ptp(learner.path(function).values))
    return learner, np.array(steps)


def test_a_bound_that_falls_shortens_no_step():
    """Noise is drawn for the bound: steps have the length that they have without `LEAST`."""
    (weak, long), (strong, short) = first_steps(4e6), first_steps(50.0)
    assert weak.bound == pytest.approx(0.4, abs=1e-3)
    assert strong.bound == pytest.approx(0.8)
    # The gain is that of one noise over another, and twice as much for half of the bound.
    assert long == pytest.approx(short * (50.0 / 4e6) * (0.8 / weak.bound))


@BOTH
def test_it_learns_and_says_what_noise_it_has(loss):
    learner = coarse_booster(loss, deviation=100.0)
    learn(learner, 16)
    first, second = learner.functions
    unit = 1.0 if loss is LOGISTIC else 0.2
    assert np.ptp(first.values) > 0.3 * unit
    assert np.all(np.diff(first.values) > 0)
    assert np.all(second.deviations > 0)
    assert np.abs(second.values).max() < 4 * second.deviations.max()


def path(counts, values, variances):
    """Return what the steps of a function have added up to."""
    way = Path(np.asarray(counts), 256 * np.eye(len(counts), dtype=int))
    way.values, way.variances = np.asarray(values), np.asarray(variances)
    return way


@BOTH
def test_a_function_is_its_path_less_what_noise_explains(loss):
    learner = coarse_booster(loss, deviation=100.0)
    learn(learner, 16)
    for function, way in zip(learner.functions, learner._paths, strict=True):
        assert way.trust() < 1
        np.testing.assert_allclose(function.values, way.trust() * way.values, atol=1e-6)
        np.testing.assert_allclose(function.deviations, way.trust() * np.sqrt(way.variances))
    assert learner._paths[0].trust() > learner._paths[1].trust()
    # The slope of an expected label is at most 1/4, that of a number is 1.
    slopes = learner._paths[0].slopes
    assert np.all(slopes <= 0.25) if loss is LOGISTIC else np.all(slopes == 1)


def test_trust_goes_from_a_half_to_one():
    """Three quarters of the rows lie in the first bin; the noise there counts as much more."""
    counts, variances = [75.0, 25.0], [2.0, 6.0]
    noise = 0.75 * 2 + 0.25 * 6
    square = 0.75 * 1 + 0.25 * 9
    assert path(counts, [1.0, -3.0], variances).trust() == pytest.approx(square / (square + noise))
    alone = path(counts, [1.0, -3.0], np.array(variances))
    assert alone.trust() == pytest.approx(1 / 2)
    assert path(counts, [100.0, -300.0], variances).trust() > 0.999
    assert path(counts, [0.0, 0.0], [0.0, 0.0]).trust() == 1.0  # no step was made


@BOTH
def test_without_a_feature_the_intercept_is_learned(loss):
    """Also where rows are few: no share is divided by zero, and all of the budget is spent."""
    domain = Domain((NumericFeature("x", 3, 3),), ("0", "1") if loss is LOGISTIC else (-1.0, 1.0))
    estimator = DPEBMPlusClassifier if loss is LOGISTIC else DPEBMPlusRegressor
    X, y = pd.DataFrame({"x": np.full(300, 3.0)}), np.arange(300) % 4 == 0
    model = estimator(1.0, 1e-6, domain=domain, random_state=0).fit(X, y.astype(int))
    assert had_few_rows(model)
    assert model.ledger_.spent_epsilon() == pytest.approx(1.0, abs=1e-3)
    assert -3 < model.intercept_ < 1


@BOTH
def test_steps_are_stable_without_noise(loss):
    """Also where all rows lie in one bin, and a step of the full gain would overshoot."""
    learner = coarse_booster(loss, deviation=1e-6)
    learn(learner, 16)
    assert np.abs(learner.functions[0].values).max() < 5


# --- what is asked about neighbouring bins ------------------------------------------------------


def mix_of(bins, ordered=True, missing=False):
    """Return `decaying_sums` of a function of so many bins, the last one of missing values."""
    extents = np.full(bins, 1 / bins)
    extents[bins - missing :] = 0
    function = Function(0, np.ones(bins), np.zeros(bins), extents, ordered)
    return coarse.decaying_sums(function)


@pytest.mark.parametrize("bins", [2, 3, 30, 250])
def test_effects_are_alike_in_neighbouring_bins_and_a_code_is_as_long_as_without(bins):
    """Covariances are exp(-d / 6), less what all bins share, times a constant."""
    mix = mix_of(bins)
    assert mix.dtype == np.int64
    apart = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    centring = np.eye(bins) - 1 / bins
    covariance = centring @ np.exp(-apart / 6) @ centring
    covariance *= (bins - 1) / np.trace(covariance)
    np.testing.assert_allclose(mix.T @ mix / 2**16, covariance, atol=0.02)
    lengths = Code(0, np.ones(bins), np.zeros(bins, int), mix).squared_norms()
    assert lengths.mean() == pytest.approx(1 - 1 / bins, abs=0.01)


def test_number_c_adds_up_interval_c_and_those_after_it():
    """Counted from their mean: before c all are alike, and from c on they decay."""
    mix = mix_of(30)
    for c in range(1, 30):
        assert np.ptp(mix[c, :c]) == 0
        after = mix[c, c:] - mix[c, 0]
        np.testing.assert_allclose(after, after[0] * np.exp(-np.arange(30 - c) / 6), atol=1)
        assert after[0] > 100


def test_missing_values_and_categories_have_a_number_of_their_own():
    mix = mix_of(31, missing=True)
    assert np.ptp(mix[30, :30]) == 0
    assert np.abs(np.diff(mix[:30, 30] - mix[:30].min(axis=1))).max() <= 1  # as before c
    assert mix_of(4, ordered=False) is None


def noise_of_a_slope(mix):
    """Return the noise in the slope over 30 bins, from an answer for codes of the same bound."""
    function = np.linspace(-1, 1, 30)
    code = Code(0, np.ones(len(mix)), np.zeros(len(mix), int), mix)
    length = math.sqrt(code.squared_norms().mean())
    # The best linear estimate of the slope from M sums + noise, where sums are slope times this.
    return length / np.linalg.norm(mix / 256 @ function)


def test_a_slope_has_less_noise_than_if_each_bin_is_asked_about():
    apart = 256 * np.eye(30, dtype=int) - round(256 / 30)
    assert noise_of_a_slope(mix_of(30)) < 0.6 * noise_of_a_slope(apart)


@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED])
@pytest.mark.parametrize("epsilon", [0.02, 0.2])
def test_all_steps_add_noise_to_a_row_as_stated(loss, epsilon):
    """In units of the bound that is charged, or less where a step would be too long."""
    learner = coarse_booster(loss, deviation=60.0 / epsilon)
    learner.bound = 0.7
    query, way = learner.coded_residuals(), learner.path(learner.functions[0])
    way.steepest = 1e-9
    variance, longest = 0.0, 0.0
    for asked in query.codes[-2:]:
        part = asked.weights[0] ** 2
        gain = learner.gain(query.share * part, way)
        # A row's bins have codes of norm 1 - 1 / 3, and 16 steps have this noise in each number.
        variance += 16 * gain**2 * learner.deviation**2 / (query.share * part)
        longest += gain * learner.rows * loss.largest_curvature
    stated = loss.coarse_noise * (0.8 / 0.7 if loss is LOGISTIC else 1.0)
    if longest < 0.999 * loss.longest_step:
        assert math.sqrt(variance) == pytest.approx(stated)
    else:
        assert longest == pytest.approx(loss.longest_step)
        assert math.sqrt(variance) < stated
    assert (longest > 1.9) == (loss is SQUARED and epsilon == 0.2)


def test_numbers_of_few_rows_take_64_epochs_unless_told_otherwise(monkeypatch):
    X, y, domain = test_algorithm.problem(SQUARED)
    fits = [
        DPEBMPlusRegressor(*LITTLE, n_epochs=told, domain=domain).fit(X, y) for told in (None, 3)
    ]
    assert [model.ledger_.entries[2].uses for model in fits] == [64, 3]
    assert "times numbers that depend on a row's category or interval" in (
        fits[0].ledger_.entries[2].releases
    )


def test_rows_decide_which_way_is_taken(monkeypatch):
    taken = []
    rule = algorithm.is_coarse
    monkeypatch.setattr(
        algorithm, "is_coarse", lambda *told: taken.append(rule(*told)) or taken[-1]
    )
    for budget in (LITTLE, PrivacyBudget(2.0, 1e-6)):
        monkeypatch.setattr(test_algorithm, "BUDGET", budget)
        test_algorithm.page(LOGISTIC)
    assert taken == [True, False]
