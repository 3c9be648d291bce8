"""Where residuals of few rows are clipped: by their median size, which hardly feels the large ones.

Counts of |residual| say how many rows lie in each of 20 half octaves.
"""

import math

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.low_signal import LowSignalBooster
from scipy.stats import norm

from dprepro.methods.dp_ebm_plus.clipping import EDGES, MAGNITUDES, median_deviation, share_within
from dprepro.methods.dp_ebm_plus.losses import SQUARED
from dprepro.privacy.query import NoisyAnswer
from tests.methods.dp_ebm_plus.stub import booster
from tests.methods.dp_ebm_plus.test_residuals import shares_of

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


# --- the bound of few rows ----------------------------------------------------------------------


def chosen(sizes, square, deviation):
    """Return a booster of few rows that has chosen its bound by these sizes."""
    functions = booster(np.zeros((2, 9), int), np.zeros(9), SQUARED).functions
    learner = LowSignalBooster(functions, SQUARED, 2000.0, 0.0, 0.2, deviation, n_epochs=64)
    learner.sizes = lambda: (2000 * sizes / sizes.sum(), square)
    learner.choose_bound(NoisyAnswer(sizes, 1.0))
    return learner


@pytest.mark.parametrize("deviation", [1e-3, 1.0, 30.0, 300.0, 1e5])
@pytest.mark.parametrize("size", [0.003, 0.05, 0.3, 3.0])
def test_the_bound_is_half_a_deviation_at_least_and_half_the_range_at_most(deviation, size):
    sizes = shares_of(norm(0, size))
    learner = chosen(sizes, size**2, deviation)
    assert learner.usual == pytest.approx(median_deviation(sizes), abs=2**-24)
    assert min(0.5 * learner.usual, 0.5) <= learner.bound <= 0.5
    if deviation == 1e5:
        assert learner.bound == min(0.5 * learner.usual, 0.5)
    elif deviation == 1e-3:  # next to no noise: hardly any residual is clipped
        assert learner.bound >= min(2.5 * size, 0.5)
    # No mean square is larger than all residuals at the bound would have, nor far below.
    expected = np.clip(size**2, learner.bound**2 / 30, learner.bound**2)
    assert learner.mean_square == pytest.approx(expected, rel=1e-12)


def test_of_skewed_residuals_the_bounds_follow_the_median_and_bands_the_mean_square():
    """Nine of ten are a twentieth of the range, the others ten times as large."""
    sizes = 0.9 * (np.arange(MAGNITUDES) == 8) + 0.1 * (np.arange(MAGNITUDES) == 1)
    usual = (LOWER[8] + 5 / 9 * (UPPER[8] - LOWER[8])) / 0.6745
    square = 0.9 * 0.05**2 + 0.1 * 0.5**2
    learner = chosen(sizes, square, 1e5)
    assert learner.usual == pytest.approx(usual, rel=1e-6)
    assert learner.root_mean_square == pytest.approx(math.sqrt(square), rel=1e-6)
    assert learner.root_mean_square > 2 * learner.usual
    assert learner.bound == pytest.approx(0.5 * usual, rel=1e-6)
    bound = learner.residuals_of(learner.intercept, 0.2).bound
    assert bound == pytest.approx(2.5 * usual, rel=1e-6)
    assert learner.mean_square == learner.bound**2
