"""Version 22 on trial: priors, strategies and bins against dense algebra, and fits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.one_way.bins import binned, histogram, likely_counts
from dprepro.methods.dp_ebm_plus.one_way.booster import Average, averaging, noise_of_average
from dprepro.methods.dp_ebm_plus.one_way.estimator import (
    DPEBMPlus22Classifier,
    DPEBMPlus22Regressor,
)
from dprepro.methods.dp_ebm_plus.one_way.losses import LOGISTIC, SQUARED, chances
from dprepro.methods.dp_ebm_plus.one_way.prior import (
    SIZES,
    Priors,
    curve,
    independent,
    mixture,
    ornstein_uhlenbeck,
    posteriors,
    with_missing,
)
from dprepro.methods.dp_ebm_plus.one_way.strategy import Strategy
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import multivariate_normal

from dprepro import load
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT, CodedHistogram
from dprepro.privacy.query import NoisyAnswer, SensitivityError

RNG = np.random.default_rng(5)
APART = RNG.uniform(0.02, 0.3, 6)
PRECISIONS = {
    "independent": independent(7),
    "rough": ornstein_uhlenbeck(APART, 0.1),
    "slow": ornstein_uhlenbeck(APART, 1.0),
    "curve": curve(7),
    "missing": with_missing(curve(6)),
}


def dense(parts):
    """Return a precision as a matrix."""
    matrix = np.diag(parts[0]).astype(float)
    for k, part in enumerate(parts[1:], start=1):
        matrix += np.diag(part[:-k], k) + np.diag(part[:-k], -k)
    return matrix


def noise_of(shared):
    """Return the matrix that takes e to the noise a_b e_b - c_b e_(b+1)."""
    return np.diag(shared[0]) - np.diag(shared[1, :-1], 1)


def test_neighbours_of_an_ornstein_uhlenbeck_process_are_alike_by_their_distance():
    places = np.append(0.0, np.cumsum(APART))
    expected = np.exp(-np.abs(np.subtract.outer(places, places)) / 0.1)
    np.testing.assert_allclose(np.linalg.inv(dense(PRECISIONS["rough"])), expected, atol=1e-12)


def test_a_curve_sums_squares_of_second_differences():
    values = RNG.normal(size=7)
    bends = (np.diff(values, 2) ** 2).sum()
    energy = values @ dense(PRECISIONS["curve"]) @ values
    assert energy == pytest.approx(0.05 * 6**3 * bends + 0.3 * (values**2).sum())


@pytest.mark.parametrize("kind", PRECISIONS)
def test_posteriors_and_evidence_are_those_of_normal_vectors(kind):
    v, h, t = RNG.uniform(0.5, 2, 7), RNG.uniform(1, 9, 7), RNG.normal(size=7) * 5
    shared = RNG.uniform(0.2, 2, (2, 7))
    shared[1, -1] = 0.0
    unit = 1.7
    found = posteriors(t, v, shared, h, Priors.of([PRECISIONS[kind]], SIZES), unit)
    spread = noise_of(shared)
    noise = np.diag(v) + spread @ spread.T
    evidence = []
    for m, size in enumerate(SIZES):
        prior = (size * unit) ** 2 * np.linalg.inv(dense(PRECISIONS[kind]))
        both = noise + h[:, None] * prior * h
        gain = prior * h @ np.linalg.inv(both)
        np.testing.assert_allclose(found.means[m], gain @ t, rtol=1e-8, atol=1e-10)
        left = prior - gain @ (h[:, None] * prior)
        np.testing.assert_allclose(found.variances[m], np.diag(left), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(found.rises[m], np.diag(gain), rtol=1e-7, atol=1e-12)
        evidence.append(multivariate_normal(np.zeros(7), both).logpdf(t))
    np.testing.assert_allclose(np.diff(found.evidence), np.diff(evidence), rtol=1e-8, atol=1e-9)


def test_a_mixture_has_the_mean_and_the_variance_of_its_parts():
    priors = Priors.of([PRECISIONS["slow"]], SIZES)
    one = np.ones(7)
    found = posteriors(3 * one, one, np.zeros((2, 7)), one, priors, 1.0)
    weights = np.exp(found.evidence) / np.exp(found.evidence).sum()
    mixed = mixture(found, np.full(SIZES.size, 1 / SIZES.size))
    mean = weights @ found.means
    np.testing.assert_allclose(mixed.mean, mean)
    square = weights @ (found.variances + (found.means - mean) ** 2)
    np.testing.assert_allclose(mixed.variance, square)


COUNTS = np.array([400.0, 90.0, 250.0, 30.0, 800.0, 120.0, 310.0])


@pytest.mark.parametrize("noise", [1e-4, 0.05, 3.0])
def test_a_strategy_asks_for_what_its_page_says(noise):
    parts = PRECISIONS["slow"]
    asked = Strategy.of(0, COUNTS, parts, noise, 0.25)
    shares = COUNTS / COUNTS.sum()
    asked_precision = np.diag(shares) + 7 * noise**2 * dense(parts)
    # U U' is this with U above the diagonal: a Cholesky factor, read from the other end.
    upper = np.linalg.cholesky(asked_precision[::-1, ::-1])[::-1, ::-1]
    ratio = -np.diag(upper, 1) / np.diag(upper)[1:]
    np.testing.assert_allclose(asked.mix.following, np.append(ratio, 0.0), atol=1e-9)
    exact = np.linalg.inv(upper) * np.diag(upper)[:, None]
    np.testing.assert_allclose(asked.code.mix * CENTRE_UNIT, exact, atol=0.5 * CENTRE_UNIT + 1e-9)
    # Weights are rounded down to quarter powers of two.
    scaled = asked.code.weights * np.diag(upper)
    assert scaled.max() / scaled.min() <= 2**0.25
    length = (shares * asked.code.squared_norms()).sum()
    assert 0.6 < length / (0.25 * (1 - (shares**2).sum())) < 1.001


def test_sums_and_their_noise_follow_from_the_numbers():
    asked = Strategy.of(0, COUNTS, PRECISIONS["rough"], 0.3, 1.0)
    exact = np.eye(7)
    for c in range(6):
        exact[c, c + 1 :] = np.cumprod(asked.mix.following[c:-1])
    sums = RNG.normal(size=7)
    np.testing.assert_allclose(asked.mix.sums(exact @ sums), sums, atol=1e-12)
    noise = noise_of(asked.noise(2.0))
    np.testing.assert_allclose(exact @ noise, np.diag(2 / asked.code.weights), atol=1e-12)
    change = RNG.normal(size=7)
    assert asked.mix.along(change) @ (exact @ sums) == pytest.approx(change @ sums)


def test_with_much_noise_a_strategy_does_not_look_at_counts():
    one, other = (
        Strategy.of(0, counts, PRECISIONS["slow"], 100.0, 1.0) for counts in (COUNTS, COUNTS[::-1])
    )
    np.testing.assert_allclose(one.mix.following, other.mix.following, rtol=1e-3)


def answered(feature, counts, deviation, rng=None):
    """Return how cells are asked for, and the answer that these rows in them bring."""
    strategy = histogram(0, feature, deviation, counts.sum())
    scale = deviation * CodedHistogram.of(strategy.code).charged
    numbers = strategy.code.numbers(counts.astype(np.int64)) * CENTRE_UNIT * strategy.code.weights
    noise = 0.0 if rng is None else scale * rng.normal(size=numbers.size)
    return strategy, NoisyAnswer(numbers + noise, scale)


FEATURES = [
    NumericFeature("x", -1.0, 1.0),
    NumericFeature("x", 5.0, 5.0, missing=True),
    NumericFeature("x", 0.0, 1e6, missing=True),
    CategoricalFeature("c", ("a", "b", "c")),
]


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("deviation", [1e-6, 1.0, 30.0, 1e3, 1e9])
def test_a_row_is_charged_for_the_longest_code_of_a_cell(feature, deviation):
    code = histogram(3, feature, deviation, 1000.0).code
    query = CodedHistogram.of(code)
    vectors = code.weights[:, None] * code.mix * CENTRE_UNIT
    longest = np.sqrt((vectors**2).sum(axis=0)).max()
    assert query.charged == query.enforced == pytest.approx(longest)
    assert 0.9 < longest < 1.1  # weights are rounded to powers of 2^(1/4)
    with pytest.raises(SensitivityError, match="charge at least"):
        CodedHistogram(0.99 * query.enforced, 1.0, code)
    code.weights[:] *= 1.01
    with pytest.raises(SensitivityError, match="charge at least"):
        query.check()


def test_numbers_of_cells_say_more_of_all_rows_the_more_noise_there_is():
    feature = NumericFeature("x", 1.0, 2.0)
    counts = np.append(np.full(128, 100.0), 0.0)
    errors = []
    for deviation in (1.0, 100.0, 1e4):
        strategy = histogram(0, feature, deviation, counts.sum())
        own, after = strategy.noise(deviation * CodedHistogram.of(strategy.code).charged)
        # Number c has the noise own_c e_c - after_c e_(c+1) once it is a count.
        total = own - np.append(0.0, after[:-1])
        errors.append(np.sqrt((total[:-1] ** 2).sum()) / deviation)
    assert errors[0] == pytest.approx(np.sqrt(128), rel=0.05)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 3


def test_ranges_of_cells_are_known_better_than_by_counting_each():
    feature = NumericFeature("x", 1.0, 2.0)
    exact = np.append(np.repeat([700.0, 20.0], 64), 0.0)
    rows, rng, errors = exact.sum(), np.random.default_rng(1), []
    for _ in range(20):
        likely, _ = likely_counts(feature, *answered(feature, exact, 2000.0, rng), rows)
        errors.append(likely[:64].sum() - exact[:64].sum())
    # Sixty-four cells that are counted one by one have an error of 16,000 rows.
    assert np.sqrt(np.mean(np.square(errors))) < 8000


@pytest.mark.parametrize("missing", [False, True])
def test_counts_are_even_under_noise_and_as_counted_without(missing):
    feature = NumericFeature("x", 1.0, 2.0, missing=missing)
    cells = 129
    exact = np.append(1000.0 * np.exp(-np.arange(cells - 1) / 9), 70.0 if missing else 0.0)
    rows = exact.sum()
    known, variances = likely_counts(feature, *answered(feature, exact, 0.5), rows)
    np.testing.assert_allclose(known, exact, atol=3)
    assert (variances[:-1] < 1).all()
    even, _ = likely_counts(feature, *answered(feature, exact, 1e8, RNG), rows)
    used = slice(None) if missing else slice(-1)
    np.testing.assert_allclose(even[used], rows / (cells - (not missing)), rtol=0.01)
    assert missing or known[-1] == even[-1] == 0


def test_the_more_noise_the_wider_are_bins():
    feature = NumericFeature("x", 1.0, 2.0)
    exact = np.append(np.full(128, 100.0), 0.0)
    asked = [answered(feature, exact, noise) for noise in (1.0, 200.0, 1e9)]
    found = [binned(feature, *each, 12800.0) for each in asked]
    # 200 rows are .6 deviations of the noise in two cells and more; six cells hold a 24th.
    assert [each.intervals for each in found] == [128, 64, 21]
    assert found[0].counts.sum() == pytest.approx(12800, abs=128 * 2**-11)  # each is rounded


def test_every_category_has_a_bin():
    feature = CategoricalFeature("c", ("a", "b", "c"))
    strategy = histogram(0, feature, 4.0, 92.0)
    answer = NoisyAnswer(np.array([5.0, -3.0, 90.0, 0.0]) * strategy.code.weights, 4.0)
    found = binned(feature, strategy, answer, 92.0)
    assert found.bins.n_bins == 3
    assert found.intervals == 0
    assert (found.counts > 0).all()


def test_an_average_knows_its_noise():
    average = Average()
    assert average.deviation == np.inf
    average.add(np.array([1.0, 2.0]), 3.0, 1.0)
    average.add(np.array([5.0, 4.0]), 1.0, 3.0)
    np.testing.assert_allclose(average.mean, [4.0, 3.5])
    assert average.deviation == pytest.approx(np.sqrt(3**2 + 3**2) / 4)


def test_rates_of_the_bins_add_up_to_the_released_one():
    start = LOGISTIC.start(1000.0, 1.0, np.array([-450.0]), np.array([1.0]))
    shares = np.array([0.5, 0.3, 0.2])
    values = np.array([-2.0, 0.0, 3.0])
    rates, slopes = LOGISTIC.response(values, shares, start, 0.0, others=0.0)
    assert (shares * rates).sum() == pytest.approx(start.rate) == 0.05
    np.testing.assert_allclose(slopes, rates * (1 - rates))
    # With other functions, by drawing them.
    rates, slopes = LOGISTIC.response(values, shares, start, 0.0, others=1.5)
    assert (shares * rates).sum() == pytest.approx(start.rate)
    drawn = np.sqrt(1.5) * RNG.normal(size=100_000)
    level = brentq(lambda a: expit(a + drawn).mean() - rates[1], -9, 9)
    expected = [expit(level + value + drawn).mean() for value in values]
    np.testing.assert_allclose(rates, expected, rtol=0.02)


@pytest.mark.parametrize("bound", [0.5, 0.7, 0.9, 1.0])
def test_clipped_labels_say_of_chances_what_unclipped_ones_say(bound):
    start = replace(
        LOGISTIC.start(1000.0, 1.0, np.array([-200.0]), np.array([1.0])), residual=bound
    )
    shares, values = np.array([0.5, 0.3, 0.2]), np.array([-3.0, 0.5, 3.0])
    expected, slopes = LOGISTIC.response(values, shares, start, 0.0, others=0.0)
    p = chances(values, shares, start, 0.0, 0.0)[0]

    def mean_residual(truth):
        return truth * np.minimum(bound, 1 - p) - (1 - truth) * np.minimum(bound, p)

    # Along the way from 0 to p, a step of the truth moves the clipped mean by k.
    grid = np.linspace(0, 1, 100_001) * p[:, None]
    counted = np.minimum(bound, 1 - grid) + np.minimum(bound, grid)
    gained = np.trapezoid(counted, grid, axis=1)
    np.testing.assert_allclose(expected, gained - mean_residual(p), atol=1e-8)
    # Slightly other effects move the clipped sums by the slope.
    truth = expit(np.log(p / (1 - p)) + 1e-5)
    moved = (mean_residual(truth) - mean_residual(p)) / 1e-5
    np.testing.assert_allclose(slopes, moved, rtol=1e-4)
    if bound == 1.0:
        np.testing.assert_allclose(expected, p)
        np.testing.assert_allclose(mean_residual(p), 0, atol=1e-12)


def test_a_level_is_expected_to_leave_what_clipping_leaves():
    start = replace(LOGISTIC.start(1000.0, 1.0, np.array([-300.0]), np.array([1.0])), residual=0.6)
    scores = -1.0 + 1.3 * RNG.normal(size=200_000)
    p = expit(scores)
    left = p * np.minimum(0.6, 1 - p) - (1 - p) * np.minimum(0.6, p)
    expected, slope = LOGISTIC.of_level(-1.0, 1.3**2, start)
    below = LOGISTIC.of_level(-1.0 - 1e-6, 1.3**2, start)[0]
    area = np.where(p <= 0.6, p**2 / 2, 0.6 * (p - 0.3))
    other = np.where(1 - p <= 0.6, (1 - p) ** 2 / 2, 0.6 * (0.7 - p))
    assert expected == pytest.approx((0.42 + area - other - left).mean(), abs=0.006)
    assert slope > 0
    assert expected > below
    assert SQUARED.of_level(0.2, 1.0, start) == (0.2, 1.0)


def test_the_less_is_lost_in_noise_the_less_do_early_epochs_count():
    shares = [averaging(64, lost)[:32].sum() for lost in (1e9, 0.005, 0.0)]
    assert shares == pytest.approx([0.5**2.5, 0.5**3.75, 0.5**5], rel=0.1)
    for lost in (1e9, 0.0):
        weights = averaging(64, lost)
        assert weights.sum() == pytest.approx(1)
        assert noise_of_average(weights) == pytest.approx(np.sqrt((weights**2).sum()))
    np.testing.assert_array_equal(averaging(5), averaging(5, np.inf))


@pytest.mark.parametrize(("lost", "bound"), [(0.0, 1.0), (1.0, 0.75), (1e9, 0.5)])
def test_the_more_is_lost_in_noise_the_lower_is_the_bound(lost, bound):
    start = LOGISTIC.start(1000.0, 1.0, np.array([0.0]), np.array([1.0]))
    assert LOGISTIC.bound(start, lost) == pytest.approx(bound)
    assert SQUARED.bound(replace(start, residual=0.3), lost) == 0.3


def drawn(numbers, rows=3000):
    """Return a table of two features, one that says much and one that says nothing."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.uniform(size=rows), "c": rng.choice(list("ab"), rows)})
    score = 4 * np.sin(3 * X["x"].to_numpy()) - 2 + 0.5 * rng.normal(size=rows)
    y = np.clip(score, -4, 4) if numbers else (score > 0).astype(int)
    target = (-4.0, 4.0) if numbers else ("0", "1")
    return X, y, Domain((NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b"))), target)


@pytest.mark.parametrize("kind", [DPEBMPlus22Classifier, DPEBMPlus22Regressor])
def test_a_fit_learns_what_is_there_and_spends_what_it_says(kind):
    X, y, domain = drawn(kind is DPEBMPlus22Regressor)
    model = kind(epsilon=1, delta=1e-6, domain=domain, n_epochs=8, random_state=2).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.ledger_.epsilon == 1
    assert [entry.uses for entry in model.ledger_.entries] == [1, 2, 8]
    assert 0.99 < model.ledger_.spent_epsilon() < 1 + 1e-5
    sizes = [np.ptp(shape) for shape in model.shape_functions_]
    assert sizes[0] > 5 * sizes[1]


def test_where_all_is_noise_no_function_is_zero_and_none_is_large():
    X, y, domain = drawn(numbers=False, rows=200)
    model = DPEBMPlus22Classifier(0.01, domain=domain, n_epochs=8, random_state=3).fit(X, y)
    sizes = np.array([np.abs(shape).max() for shape in model.shape_functions_])
    assert ((sizes > 0) & (sizes < 2)).all()


def test_real_rows_are_ranked_well(data_dir):
    data = load("mammography", data_dir)
    X, y = data.X.iloc[::2].reset_index(drop=True), np.asarray(data.y)[::2]
    model = DPEBMPlus22Classifier(1.0, domain=data.domain, n_epochs=16, random_state=0).fit(X, y)
    rest = data.X.iloc[1::2]
    scores = model.decision_function(rest)
    positive = np.asarray(data.y)[1::2] == model.classes_[1]
    ranks = pd.Series(scores).rank().to_numpy()
    n, m = positive.sum(), (~positive).sum()
    assert (ranks[positive].sum() - n * (n + 1) / 2) / (n * m) > 0.85
