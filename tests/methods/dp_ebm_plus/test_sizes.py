"""How residuals are distributed by size, from noisy counts of |residual| in 20 half octaves."""

import math

import numpy as np
import pytest
from scipy.stats import laplace, multivariate_normal, norm

from dprepro.additive.model import LEVELS
from dprepro.methods.dp_ebm_plus import clipping
from dprepro.methods.dp_ebm_plus.clipping import (
    EDGES,
    HALF_CELL,
    MAGNITUDES,
    best_bound,
    likely_shares,
    mean_counts,
    median_deviation,
    quantiles,
    share_within,
    typical_deviation,
)
from dprepro.methods.dp_ebm_plus.kernel import UNIT
from dprepro.methods.dp_ebm_plus.losses import SQUARED
from dprepro.privacy.query import NoisyAnswer
from tests.methods.dp_ebm_plus.stub import booster

ROWS = 20_000
NORMAL, LAPLACE = norm(0, 0.07), laplace(0, 0.05)


def shares_of(distribution):
    """Return the share of each cell of |residual|: 20 cells, the last one down to 0."""
    above = 2 * distribution.sf(np.append(EDGES[:-1], 0.0))
    return np.diff(above, prepend=0.0)


# --- shares and quantiles ----------------------------------------------------------------------


@pytest.mark.parametrize("distribution", [NORMAL, LAPLACE])
def test_exact_counts_give_the_quantiles_of_the_residuals(distribution):
    found = likely_shares(ROWS * shares_of(distribution), 1e-3, ROWS, 1e-3)
    np.testing.assert_allclose(found, shares_of(distribution), atol=2e-3)
    covered = 1 - 2 * distribution.sf(quantiles(found, LEVELS))
    assert np.abs(covered - LEVELS).max() < 0.012
    assert abs(covered[LEVELS == 0.9][0] - 0.9) < 0.006


@pytest.mark.parametrize(("noise", "allowed"), [(100.0, 0.012), (400.0, 0.03)])
@pytest.mark.parametrize("distribution", [NORMAL, LAPLACE])
def test_noisy_counts_give_them_on_average(noise, allowed, distribution):
    """At 400 the noise of a cell is 2 % of the rows."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(100):
        noisy = ROWS * shares_of(distribution) + rng.normal(0, noise, MAGNITUDES)
        rows = ROWS + rng.normal(0, noise)
        size = quantiles(likely_shares(noisy, noise, rows, noise), np.array([0.9]))
        covered.append(1 - 2 * distribution.sf(size[0]))
    assert abs(np.mean(covered) - 0.9) < allowed
    assert np.std(covered) < 8e-5 * noise + 0.004


def test_what_is_lost_in_noise_is_a_guess_within_the_range():
    rng = np.random.default_rng(1)
    found = likely_shares(rng.normal(0, 1e6, MAGNITUDES), 1e6, 100.0, 1e6)
    sizes = quantiles(found, LEVELS)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert 0 < sizes[0] < sizes[-1] <= 1


def test_quantiles_of_normal_residuals_are_exact_between_edges_and_never_fall():
    within = NORMAL.cdf(EDGES[2:12]) - NORMAL.cdf(-EDGES[2:12])
    assert quantiles(shares_of(NORMAL), within) == pytest.approx(EDGES[2:12], rel=1e-9)
    between = np.array([0.55, 0.7, 0.8, 0.9, 0.95])
    assert quantiles(shares_of(NORMAL), between) == pytest.approx(NORMAL.ppf((1 + between) / 2))
    gaps = np.zeros(MAGNITUDES)
    gaps[[4, 9]] = 0.49, 0.51
    sizes = quantiles(gaps, LEVELS)
    assert (np.diff(sizes) >= 0).all()
    assert EDGES[9] <= sizes[0] <= EDGES[8]
    assert EDGES[4] <= sizes[-1] <= EDGES[3]


def test_the_shares_are_those_of_dense_algebra():
    """The sum over cells is done with a rank-one update: here with whole covariance matrices."""
    noise, rows, rows_noise = 60.0, 5000.0, 300.0
    noisy = 1.05 * rows * shares_of(LAPLACE) + np.random.default_rng(3).normal(0, noise, MAGNITUDES)
    weights, found = [], []
    for misfit in clipping._MISFITS:
        for q in clipping._densities():
            own = rows * q + (misfit * rows * q) ** 2
            covariance = np.diag(own + noise**2) + rows_noise**2 * np.outer(q, q)
            gap = noisy - rows * q
            weights.append(multivariate_normal(np.zeros(MAGNITUDES), covariance).logpdf(gap))
            n = max(rows + rows_noise**2 * q @ np.linalg.solve(covariance, gap), rows / 4)
            likely = np.maximum(n * q + own / (own + noise**2) * (noisy - n * q), 0)
            found.append(likely / likely.sum())
    weights = np.exp(np.array(weights) - np.max(weights))
    expected = weights @ np.array(found) / weights.sum()
    found = likely_shares(noisy, noise, rows, rows_noise)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_every_density_has_the_deviation_that_is_stated():
    shares = clipping._densities()
    stated = np.tile(clipping._DEVIATIONS, len(clipping._MIXTURES) + 1)
    assert shares.shape == (stated.size, MAGNITUDES)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    inside = (stated > 0.01) & (stated < 0.1)  # neither cut off at 1, nor in the last cell
    squares = shares @ (EDGES * HALF_CELL) ** 2
    np.testing.assert_allclose(np.sqrt(squares[inside]), stated[inside], rtol=0.06)
    flat = shares[: clipping._DEVIATIONS.size][clipping._DEVIATIONS > 0.05][0]
    assert flat[EDGES > 3 * 0.06].sum() < 1e-4


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_rows_without_a_residual_do_not_hide_how_far_the_others_lie(share):
    """Of half as many rows in the last cell, a family without them makes residuals too small."""
    rng = np.random.default_rng(3)
    rows, noise = 10_000, 120.0
    normal = clipping.within_normal(np.append(np.inf, EDGES[:-1]) / 0.1)
    others = normal - np.append(clipping.within_normal(EDGES[:-1] / 0.1), 0.0)
    truth = (1 - share) * others + share * (np.arange(MAGNITUDES) == MAGNITUDES - 1)
    needed = quantiles(truth, np.array([0.9]))[0]
    found = {True: [], False: []}
    for _ in range(40):
        noisy = rows * truth + rng.normal(0, noise, MAGNITUDES)
        for exact, widths in found.items():
            shares = likely_shares(noisy, noise, rows, 0.0, exact=exact)
            widths.append(quantiles(shares, np.array([0.9]))[0] / needed)
    assert abs(np.mean(found[True]) - 1) < 0.05
    if share:
        assert abs(np.mean(found[False]) - 1) > abs(np.mean(found[True]) - 1)


# --- what is expected of the deviation ----------------------------------------------------------


FEWER, TRUE = 2000.0, 0.05
COUNTS = FEWER * shares_of(norm(0, TRUE))


def deviation_of(shares):
    return math.sqrt(shares @ (EDGES * HALF_CELL) ** 2)


def found_by(noise, *typicals):
    """Return the deviation found from the counts of residuals of `TRUE`, for each `typical`."""
    return [deviation_of(likely_shares(COUNTS, noise, FEWER, noise, t)) for t in typicals]


def test_what_is_expected_decides_where_noise_is_large():
    small, unknown, large = found_by(1e6, TRUE / 4, None, 4 * TRUE)
    assert small < TRUE
    assert 3 * small < unknown < 0.7 * large


def test_what_is_expected_does_not_matter_where_noise_is_small():
    found = found_by(1.0, TRUE / 4, None, 4 * TRUE)
    assert found == pytest.approx([deviation_of(COUNTS / FEWER)] * 3, rel=0.005)
    np.testing.assert_allclose(found, found[0], rtol=1e-5)


def test_between_the_two_it_matters_less_and_less():
    gaps = [np.ptp(np.log(found_by(noise, TRUE / 4, 4 * TRUE))) for noise in (1e6, 1e3, 100, 10)]
    assert np.all(np.diff(gaps) < 0)


@pytest.mark.parametrize("typical", [0.01, 0.2])
def test_without_any_counts_the_deviation_is_what_is_expected_give_or_take(typical):
    """Its binary logarithm has the standard deviation 1.5; all shapes are alike."""
    deviations = np.geomspace(0.001, 0.5, 40)
    weights = norm.pdf(np.log2(deviations), math.log2(typical), 1.5)
    shares = clipping._densities().reshape(-1, 40, MAGNITUDES).mean(axis=0)
    expected = weights @ shares / weights.sum()
    found = likely_shares(np.zeros(MAGNITUDES), 1e9, FEWER, 1.0, typical)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# --- medians ------------------------------------------------------------------------------------

UPPER, LOWER = np.append(1.0, EDGES[:-1]), np.append(EDGES[:-1], 0.0)


def some_sizes(seed):
    """Return whole numbers of rows in each cell, an odd number in all, some of them 0."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 200, MAGNITUDES) * (rng.random(MAGNITUDES) < 0.6)
    counts[rng.integers(MAGNITUDES)] += 100
    return counts + (np.arange(MAGNITUDES) == counts.argmax()) * (1 - counts.sum() % 2)


def row_by_row(sizes):
    """Return |residual| of so many rows, evenly spread over each cell."""
    return np.concatenate(
        [
            lower + (upper - lower) * (np.arange(n) + 0.5) / max(n, 1)
            for lower, upper, n in zip(LOWER, UPPER, sizes, strict=True)
        ]
    )


@pytest.mark.parametrize("seed", range(6))
def test_shares_and_medians_are_those_of_rows_spread_evenly_over_cells(seed):
    sizes = some_sizes(seed)
    rows = row_by_row(sizes)
    for size in (*EDGES, *np.random.default_rng(seed).random(50) ** 3):
        expected = np.mean(rows <= size)
        assert share_within(sizes, size) == pytest.approx(expected, abs=0.51 / rows.size)
    median = 0.6745 * median_deviation(sizes)
    around = np.sort(rows)[[rows.size // 2 - 1, rows.size // 2 + 1]]
    assert around[0] < median < around[1]
    assert median_deviation(7.5 * sizes) == pytest.approx(median_deviation(sizes), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_half_of_the_rows_lie_within_the_median(seed):
    sizes = some_sizes(seed)
    median = norm.ppf(0.75) * median_deviation(sizes)
    assert share_within(sizes, median) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("deviation", np.geomspace(0.004, 0.3, 9))
def test_of_normal_residuals_it_is_the_deviation(deviation):
    """Up to what a line within a half octave is off.

    From x to x + h a share is off by h^2 / 8 times its second derivative 2 x exp(-x^2 / 2) /
    sqrt(2 pi), so by 0.02 at most; about the median by 0.005, where a hundredth more adds as much.
    """
    sizes = 3000 * shares_of(norm(0, deviation))
    assert median_deviation(sizes) == pytest.approx(deviation, rel=0.015)
    for size in deviation * np.array([0.3, 0.7, 1.0, 2.0]):
        expected = 2 * norm.cdf(size / deviation) - 1
        assert share_within(sizes, size) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("cell", range(MAGNITUDES))
def test_of_rows_that_lie_in_one_cell_it_is_the_middle(cell):
    sizes = 40.0 * (np.arange(MAGNITUDES) == cell)
    lower, upper = LOWER[cell], UPPER[cell]
    middle = (lower + upper) / 2
    assert median_deviation(sizes) == pytest.approx(middle / 0.6745, rel=1e-9)
    found = [share_within(sizes, size) for size in (lower, (lower + middle) / 2, middle, upper)]
    assert found == pytest.approx([0, 0.25, 0.5, 1])


def test_no_row_lies_within_0_and_all_lie_within_1():
    for seed in range(3):
        sizes = some_sizes(seed)
        assert [share_within(sizes, size) for size in (0.0, 1.0, 1.7)] == [0, 1, 1]


def test_how_large_the_large_ones_are_does_not_matter():
    sizes = shares_of(norm(0, 0.05))
    larger = np.where(EDGES < 0.05, sizes, 0.0)
    larger[0] = 1 - larger.sum()
    assert larger[0] > 0.2
    assert median_deviation(larger) == pytest.approx(median_deviation(sizes), rel=1e-12)


# --- where they are clipped ---------------------------------------------------------------------


def test_a_variance_that_is_lost_in_noise_is_what_is_expected_of_any_table():
    found = [typical_deviation(0.01, noise) for noise in (0.0, 1e-5, 0.04, 1e3)]
    assert found[0] == pytest.approx(0.1)
    assert found[1] == pytest.approx(0.1, rel=1e-4)
    assert found[1] < found[2] < found[3]
    # The root mean square a priori, between the median deviation and the largest.
    assert 0.2 < found[3] < 0.25
    assert typical_deviation(-1e6, 1e6) == pytest.approx(found[3], rel=0.2)


@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.04, 1.0])
def test_a_variance_that_noise_took_below_zero_does_not_make_residuals_tiny(noise):
    """Without it all residuals are taken to be small, and clipped at far too small a bound."""
    deviations = [typical_deviation(variance * noise, noise) for variance in (-3, -1, 0, 1, 3)]
    assert deviations == sorted(deviations)
    # What a variance below 0 leaves likely are variances up to a part of the noise.
    assert deviations[0] > min(0.3 * math.sqrt(noise), 0.1)


def test_a_bound_is_where_noise_and_bias_are_least_together():
    """By brute force over the edges: the variance of noise, and a quarter of the bias squared."""
    sizes = 2000 * shares_of(norm(0, 0.1))
    for noise in (1.0, 100.0, 3000.0):
        errors = [
            0.25 * (sizes * np.clip(EDGES * HALF_CELL - c, 0, None)).sum() ** 2
            + 16 * (noise * c) ** 2
            for c in EDGES
        ]
        assert best_bound(sizes, noise) == EDGES[np.argmin(errors)]


def test_a_mean_of_counts_is_told_with_its_noise():
    counts = [NoisyAnswer(np.full(MAGNITUDES, value), scale) for value, scale in ((3, 30), (6, 40))]
    mean, noise = mean_counts(counts, np.array([2.0, 4.0]))
    np.testing.assert_allclose(mean, (3 + 2 * 6) / 3)
    assert noise == pytest.approx(math.hypot(30, 2 * 40) / 3)


def chosen(size, deviation, epochs=1):
    """Return a booster that has chosen its bound by exact counts of normal residuals."""
    learner = booster(np.zeros((2, 2000), int), norm(0, 0.2).rvs(2000, 0), SQUARED, n_epochs=64)
    learner.deviation = deviation
    for _ in range(epochs):
        learner.choose_bound(NoisyAnswer(2000 * shares_of(norm(0, size)), 1e-3))
    return learner


@pytest.mark.parametrize("deviation", [1e-3, 1.0, 30.0, 300.0, 1e6])
@pytest.mark.parametrize("size", [0.003, 0.05, 0.3])
def test_the_bound_is_half_a_deviation_at_least_and_half_the_range_at_most(deviation, size):
    learner = chosen(size, deviation)
    assert learner._usual == pytest.approx(size, rel=0.1)
    assert (learner._usual / UNIT).is_integer()  # queries follow from it
    assert min(0.5 * learner._usual, 0.5) <= learner.bound <= 0.5
    if deviation == 1e6:
        assert learner.bound == min(0.5 * learner._usual, 0.5)
    elif deviation == 1e-3:  # next to no noise: hardly any residual is clipped
        assert learner.bound >= min(2.5 * size, 0.5)
        assert learner.within > 0.85
    # No mean square is larger than all residuals at the bound would have, nor far below.
    expected = np.clip(size**2, learner.bound**2 / 30, learner.bound**2)
    assert learner.mean_square == pytest.approx(expected, rel=0.1)
    bound = learner.of_level().bound
    assert bound == pytest.approx(min(1, max(3 * learner._usual, learner.bound)))


def test_what_was_found_before_does_not_matter_and_later_counts_count_more():
    """All follows from the answers: nothing from the bounds that were chosen in between."""
    large, small = (NoisyAnswer(2000 * shares_of(norm(0, size)), 1e-3) for size in (0.1, 0.05))
    found = []
    for first in (0, 5):
        learner, asked = chosen(0.1, 100.0, epochs=0), [large] * 5 + [small] * 5
        learner._sizes = asked[:first]
        for answer in asked[first:]:
            learner.choose_bound(answer)
        found.append([learner.bound, learner.mean_square, learner._usual])
    assert found[0] == found[1]
    late = sum(k**2 for k in range(6, 11)) / sum(k**2 for k in range(1, 11))
    expected = (1 - late) * large.value + late * small.value
    np.testing.assert_allclose(learner._likely_sizes(exact=False), expected / 2000, atol=2e-3)


def test_of_skewed_residuals_the_bound_follows_the_median():
    """Nine of ten are a twentieth of the range, the others ten times as large."""
    sizes = 0.9 * (np.arange(MAGNITUDES) == 8) + 0.1 * (np.arange(MAGNITUDES) == 1)
    learner = chosen(0.2, 1e6, epochs=0)
    learner.choose_bound(NoisyAnswer(2000 * sizes, 1e-3))
    usual = (LOWER[8] + 5 / 9 * (UPPER[8] - LOWER[8])) / 0.6745
    assert learner._usual == pytest.approx(usual, rel=0.02)
    assert learner.bound == 0.5 * learner._usual
    assert learner.mean_square == learner.bound**2
