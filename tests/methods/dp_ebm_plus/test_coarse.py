"""The coarse way: when it is taken, its public bins, and that it learns where noise is large."""

import math

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer, Function
from dprepro.methods.dp_ebm_plus.low_signal import (
    AccumulatedSteps,
    LowSignalBooster,
    is_low_signal,
    likely_counts,
    public_bins,
    reach_of,
    smooth_sums,
)

from dprepro.additive.describe import had_few_rows
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.grid import grid_edges
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    Code,
    CodedResiduals,
    Magnitudes,
    Residuals,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.query import NoisyAnswer
from tests.methods.dp_ebm_plus import test_algorithm
from tests.methods.dp_ebm_plus.stub import booster, gaussian, learn
from tests.methods.dp_ebm_plus.test_booster import BOTH

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
        assert charged[1] == pytest.approx(0.2)
        parts = [0.05, *3 * [0.95 / 3]]
    else:
        assert kinds == [CodedResiduals]
        parts = [0.5 / 3.5, *3 * [1 / 3.5]]
    assert [code.feature for code in first.codes] == [INTERCEPT, 0, 1, 2]
    # That of the intercept, or the middle, is a power of the root of 2, the next one below.
    squares = np.array([2.0 ** (math.floor(2 * math.log2(parts[0])) / 2), *parts[1:]])
    for code, square in zip(first.codes, squares, strict=True):
        np.testing.assert_allclose(code.weights**2, square)
    ledger = test_algorithm.fit(loss).ledger_
    expected = [0.02, 0.02, 0.96] if loss is SQUARED else [0.01, 0.02, 0.97]
    mus = [np.sqrt(entry.uses) / entry.noise_multiplier for entry in ledger.entries]
    np.testing.assert_allclose(np.square(mus) / mu_of(*LITTLE) ** 2, expected, rtol=1e-9)


@pytest.mark.parametrize(("rows", "expected"), [(999, True), (1001, False)])
def test_rows_are_few_below_so_many_deviations_of_the_noise(rows, expected):
    # The noise is sqrt(16) / 0.6.
    assert is_low_signal(rows, 16, 0.6, 150) is expected


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
    learner = LowSignalBooster(
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
        learner = LowSignalBooster(functions, LOGISTIC, rows, 0.0, 0.5, 1.0, n_epochs=8)
        assert learner.signal == pytest.approx(signal)
        bounds[signal] = learner.bound
    assert bounds == pytest.approx({1e-9: 0.4, 75.0: 0.6, 150.0: 0.8, 1e9: 0.8})
    assert LowSignalBooster(functions, SQUARED, 1e-9, 0.0, 0.5, 1.0, n_epochs=8).bound == 1


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
    way = AccumulatedSteps(np.asarray(counts), 256 * np.eye(len(counts), dtype=int))
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
    slopes = learner._paths[0].slopes
    if loss is LOGISTIC:
        assert np.all(slopes <= 0.25)
    else:
        # That of a number is 1, but for those beyond the bound, which do not follow the function.
        assert learner._within < 0.9
        np.testing.assert_array_equal(slopes, learner._within)


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

REACHES = pytest.mark.parametrize("reach", [0.5, 1.8, 5.0, 12.0])
BINS = pytest.mark.parametrize(
    ("intervals", "missing"),
    [(1, True), *((n, missing) for n in (2, 3, 30) for missing in (False, True))],
)
"""One interval alone would be a single bin, of which nothing is learned."""

NARROWER = (12.0, 8.0, 5.0, 3.0, 1.8, 0.5, 0.01)


def mix_of(intervals, reach, ordered=True, missing=False):
    """Return `smooth_sums` of a function of so many intervals, and of missing values at the end."""
    extents = np.append(np.full(intervals, 1 / intervals), np.zeros(int(missing)))
    function = Function(0, np.ones(extents.size), np.zeros(extents.size), extents, ordered)
    return smooth_sums(function, reach)


def matern(intervals, reach):
    """Return the correlation of each interval with each: Matern 3/2."""
    apart = np.sqrt(3) / reach * np.abs(np.subtract.outer(range(intervals), range(intervals)))
    return (1 + apart) * np.exp(-apart)


def plainly(intervals, reach, missing):
    """Return the mix before it is rounded, by LAPACK."""
    mix = np.eye(intervals + missing)
    mix[:intervals, :intervals] = np.linalg.cholesky(matern(intervals, reach)).T
    mix -= mix.mean(axis=1)[:, None]
    return mix * np.sqrt((len(mix) - 1) / np.sum(mix**2))


def restored(intervals, reach):
    """Return the numbers of intervals before centring: missing values have none of them.

    Each is the difference of two that are rounded to 1/256, so it is off by 1/256 at most.
    """
    mix = mix_of(intervals, reach, missing=True) / 256
    return mix[:-1, :-1] - mix[:-1, -1:]


@REACHES
@BINS
def test_the_mix_is_the_rounded_root_of_a_covariance(intervals, missing, reach):
    mix = mix_of(intervals, reach, missing=missing)
    assert mix.dtype == np.int64
    expected = 256 * plainly(intervals, reach, missing)
    np.testing.assert_allclose(mix, expected, rtol=0, atol=0.5 + 1e-6)


@REACHES
@pytest.mark.parametrize("intervals", [1, 2, 3, 30])
def test_squares_of_the_mix_are_the_covariance_of_curves_whose_slopes_drift(intervals, reach):
    """Without a root: L' L, over its mean diagonal, as all effects have the same variance."""
    root = restored(intervals, reach)
    square = root.T @ root
    # With R for what is rounded, (L - R)' (L - R) is off by |R' L| + |L' R| + |R' R| at most.
    sums = np.abs(root).sum(axis=0)
    off = np.add.outer(sums, sums) / 256 + intervals / 256**2
    size = np.diag(square).mean()
    expected = size * matern(intervals, reach)
    assert np.all(np.abs(square - expected) <= off + np.diag(off).mean())


@REACHES
@BINS
def test_a_code_is_on_average_as_long_as_without_a_mix(intervals, missing, reach):
    """The root of the sum of all squares is off by the root of B^2 / 512^2 at most."""
    mix = mix_of(intervals, reach, missing=missing)
    bins = len(mix)
    lengths = Code(0, np.ones(bins), np.zeros(bins, int), mix).squared_norms()
    assert math.sqrt(lengths.sum()) == pytest.approx(math.sqrt(bins - 1), abs=bins / 512)
    apart = Code(0, np.ones(bins), np.rint(np.full(bins, 256 / bins)).astype(int))
    assert apart.squared_norms().mean() == pytest.approx(1 - 1 / bins, abs=1e-4)


@pytest.mark.parametrize("reach", [1e-6, 1.8, 12.0])
@BINS
def test_no_code_holds_a_number_beyond_4(intervals, missing, reach):
    """Nor does its centre, whichever bin all rows lie in."""
    mix = mix_of(intervals, reach, missing=missing)
    assert np.abs(mix).max() <= 4 * 256
    for full in range(len(mix)):
        counts = np.full(len(mix), 1e-3)
        counts[full] = 1e6
        way = AccumulatedSteps(counts, mix)
        Code(0, np.ones(len(mix)), way.centre, way.mix).check()
        np.testing.assert_allclose(way.centre, mix[:, full], atol=1)


@REACHES
def test_number_c_adds_up_interval_c_and_those_after_it(reach):
    """Counted from their mean: before c all are alike. The first weighs all by their covariance."""
    mix, root = mix_of(30, reach), restored(30, reach)
    for c in range(1, 30):
        assert np.ptp(mix[c, :c]) == 0
        assert mix[c, c] > mix[c, 0]
    within = (1 + matern(30, reach)[0]) / 256
    assert np.all(np.abs(root[0] - root[0, 0] * matern(30, reach)[0]) <= within)


@REACHES
@pytest.mark.parametrize("intervals", [1, 2, 3, 30])
def test_missing_values_have_a_number_of_their_own(intervals, reach):
    """Of an effect as large as those of intervals, and of none of these."""
    mix = mix_of(intervals, reach, missing=True)
    assert mix.shape == (intervals + 1, intervals + 1)
    assert np.ptp(mix[-1, :-1]) == 0
    own, first = mix[-1, -1] - mix[-1, 0], mix[0, 0] - mix[0, -1]
    assert abs(own - first) <= 2  # either is the difference of two rounded numbers
    assert own > 100
    # In the numbers of intervals they weigh what intervals before c do: nothing.
    np.testing.assert_array_equal(mix[1:-1, -1], mix[1:-1, 0])


def test_missing_values_may_have_any_bin():
    extents = np.array([0.0, 0.25, 0.25, 0.25, 0.25])
    first = smooth_sums(Function(0, np.ones(5), np.zeros(5), extents, ordered=True), 5.0)
    expected = 256 * np.roll(plainly(4, 5.0, missing=True), 1, axis=(0, 1))
    np.testing.assert_allclose(first, expected, rtol=0, atol=0.5 + 1e-6)


def test_categories_are_asked_about_one_by_one():
    assert mix_of(4, 5.0, ordered=False) is None
    assert mix_of(4, 5.0, ordered=False, missing=True) is None


def test_with_next_to_no_reach_each_bin_is_asked_about():
    apart = np.rint(256 * (np.eye(30) - 1 / 30))
    np.testing.assert_array_equal(mix_of(30, 1e-6), apart)


def test_a_longer_reach_asks_more_about_what_changes_slowly():
    """Most about a function that rises or falls, and changes its sign once."""
    parts = []
    for reach in NARROWER:
        mix = mix_of(30, reach) / 256
        values, vectors = np.linalg.eigh(mix.T @ mix)
        parts.append(values[-1] / values.sum())
        if reach > 1:
            assert np.count_nonzero(np.diff(np.sign(vectors[:, -1]))) == 1
    assert np.all(np.diff(parts) < 0)
    assert parts[0] > 0.5
    assert parts[-1] == pytest.approx(1 / 29, rel=0.01)  # all functions of mean 0 alike


def noise_of(function, mix):
    """Return the noise in the size of a function, from an answer for codes of the same bound."""
    code = Code(0, np.ones(len(mix)), np.zeros(len(mix), int), mix)
    length = math.sqrt(code.squared_norms().mean())
    # The best linear estimate of the size from M sums + noise, where sums are size times this.
    return length / np.linalg.norm(mix / 256 @ function)


def test_a_slope_has_less_noise_than_if_each_bin_is_asked_about_and_what_jumps_has_more():
    apart = 256 * np.eye(30, dtype=int) - round(256 / 30)
    slope, jumps = np.linspace(-1, 1, 30), np.tile([-1.0, 1.0], 15)
    slopes, others = (
        [
            noise_of(function, mix)
            for mix in (*(mix_of(30, reach) for reach in NARROWER[:-1]), apart)
        ]
        for function in (slope, jumps)
    )
    assert np.all(np.diff(slopes) > 0)
    # What hardly changes within a reach R has the variance of noise over the sum of correlations,
    # about 4 R / sqrt(3): 4.2 at 1.8. With a longer one some of it lies beyond both ends.
    sums = 4 / math.sqrt(3) * np.array([1.8, 3.0])
    found = [(slopes[-1] / slopes[NARROWER.index(reach)]) ** 2 for reach in (1.8, 3.0)]
    np.testing.assert_allclose(found, sums, rtol=0.1)
    # For what jumps they count with signs in turn: 1 - 2 (0.75 - 0.43 + 0.22 - ...) < 1 / 9 at 1.8.
    signs = np.cos(np.pi * np.arange(30))
    assert 2 * signs @ matern(30, 1.8)[0] - 1 < 1 / 9
    assert min(others[: NARROWER.index(1.8) + 1]) > 3 * others[-1]


def test_the_reach_falls_with_the_signal_as_its_power_of_two_thirds():
    assert reach_of(1.8, 1.0) == pytest.approx(1.8)
    for part in (0.06, 0.1, 0.4, 1.0, 3.0):
        for factor in (2.0, 8.0, 27.0):
            ratio = reach_of(0.1, part) / reach_of(0.1, part * factor)
            assert ratio == pytest.approx(factor ** (2 / 3))


def test_the_reach_is_12_at_most():
    last = (1.8 / 12) ** 1.5
    assert [reach_of(1.8, part) for part in (1e-12, 0.01, last * (1 - 1e-6))] == [12.0] * 3
    assert 11.99 < reach_of(1.8, last * (1 + 1e-6)) < 12


@pytest.mark.parametrize(
    ("loss", "typical", "few", "shortest"),
    [(LOGISTIC, 0.5, 150, 4.0), (SQUARED, 0.2, 150, 1.8), (SQUARED, 0.45, 40, 1.8)],
)
@pytest.mark.parametrize(("part", "times"), [(1.0, 1), (27 / 64, 16 / 9), (1e-3, np.inf)])
def test_the_less_rows_say_the_smoother_are_the_functions_asked_about(
    loss, typical, few, shortest, part, times
):
    reach = min(shortest * times, 12.0)
    extents = np.append(np.full(30, 1 / 30), 0.0)
    functions = [
        Function(k, np.full(31, 9.0), np.zeros(31), extents, ordered)
        for k, ordered in enumerate((True, False))
    ]
    # Two features share an epoch: its noise in the sums of one is sqrt(2) as large.
    rows = part * few * math.sqrt(2 / 8)
    learner = LowSignalBooster(functions, loss, rows, 0.0, typical, 1.0, n_epochs=8)
    ordered, other = (learner.path(function).mix for function in functions)
    assert other is None
    expected = 256 * plainly(30, reach, missing=True)
    np.testing.assert_allclose(ordered, expected, rtol=0, atol=0.5 + 1e-6)
    assert learner.coded_residuals().codes[-2].mix is ordered


@pytest.mark.parametrize("places", [(0, 29), (0, 30), (14, 30), (14, 15)])
def test_many_equal_features_do_not_overshoot_at_the_longest_reach(places):
    """Rows lie in two bins, the last one of missing values, though all bins are taken for equal.

    So codes are longer than assumed. Without noise no epoch makes predictions worse.
    """
    extents = np.append(np.full(30, 1 / 30), 0.0)
    functions = [
        Function(k, np.full(31, 2000 / 31), np.zeros(31), extents, ordered=True) for k in range(50)
    ]
    deviation = 2000 / (3 * math.sqrt(50 / 64))  # a signal of 3
    learner = LowSignalBooster(functions, SQUARED, 2000.0, 0.0, 0.3, deviation, n_epochs=64)
    expected = 256 * plainly(30, 12.0, missing=True)
    np.testing.assert_allclose(learner.path(functions[0]).mix, expected, rtol=0, atol=0.5 + 1e-6)
    bins, targets = np.repeat(places, 1000), np.repeat([-0.3, 0.3], 1000)
    scores, squares = np.zeros(2000), [0.09]
    for number in range(64):
        query = learner.coded_residuals()
        lengths = np.sqrt(sum(code.squared_norms() for code in query.codes))[bins]
        residuals = targets - np.clip(scores, -0.5, 0.5)
        residuals = np.clip(residuals, -query.bound / lengths, query.bound / lengths)
        sums = np.bincount(bins, residuals, 31)
        middle, *codes = query.codes
        numbers = [code.weights * ((code.mix - code.centre[:, None]) @ sums) / 256
                   for code in codes]  # fmt: skip
        release = NoisyAnswer(np.concatenate([middle.weights * sums.sum(), *numbers]), 1e-9)
        learned = learner.learn_all(learner.together, query, release, number)
        for function, values in zip(learner.together, learned, strict=True):
            function.move(values)
        scores = sum(function.values for function in learner.together)[bins]
        squares.append(float(np.mean((targets - np.clip(scores, -0.5, 0.5)) ** 2)))
    assert np.all(np.diff(squares) < 1e-6)
    assert squares[-1] < 0.08


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
    # A twentieth of a regression's query is for the middle, of which no path makes a step.
    stated, most = loss.low_signal_noise * 0.8 / 0.7, loss.longest_step
    if loss is SQUARED:
        stated, most = loss.low_signal_noise * math.sqrt(0.95), 0.95 * 3
    if longest < 0.999 * most:
        assert math.sqrt(variance) == pytest.approx(stated)
    else:
        assert longest == pytest.approx(most)
        assert math.sqrt(variance) < stated
    assert (longest > 2.8) == (loss is SQUARED and epsilon == 0.2)


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
    rule = algorithm.is_low_signal
    monkeypatch.setattr(
        algorithm, "is_low_signal", lambda *told: taken.append(rule(*told)) or taken[-1]
    )
    for budget in (LITTLE, PrivacyBudget(2.0, 1e-6)):
        monkeypatch.setattr(test_algorithm, "BUDGET", budget)
        test_algorithm.page(LOGISTIC)
    assert taken == [True, False]
