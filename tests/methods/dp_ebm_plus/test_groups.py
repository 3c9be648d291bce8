"""Counts in two levels: what a row moves, what fits both best, and the error that is left."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.dp_ebm_plus.grid import (
    GROUP,
    agreeing_counts,
    cell_extents,
    exact_answers,
    fine_cells,
    merge_fine,
    sum_deviations,
    variance_steps,
)

NUMBER = NumericFeature("x", -5, 1000, missing=True)
CATEGORY = CategoricalFeature("x", ("a", "b", "c"), missing=True)
CELLS = cell_extents(NUMBER).size - 1


def answers_of(feature, counts):
    return exact_answers(feature, counts).value


def column(feature, rows=50):
    rng = np.random.default_rng(0)
    if feature is CATEGORY:
        return pd.Series([*rng.choice(["a", "b", "c"], rows), None], name="x")
    return pd.Series([*rng.uniform(-5, 1000, rows), -5, 1000, 0.0, np.nan], name="x")


@pytest.mark.parametrize("feature", [NUMBER, CATEGORY], ids=["numeric", "categorical"])
def test_a_row_moves_the_answers_by_one(feature):
    """Brute force: every row of the table in turn is left out."""
    values = column(feature)
    whole = answers_of(feature, fine_cells(values, feature)[1])
    moves = [
        np.linalg.norm(whole - answers_of(feature, fine_cells(values.drop(row), feature)[1]))
        for row in values.index
    ]
    np.testing.assert_allclose(moves, 1.0)


@pytest.mark.parametrize("cells", [1, 2, GROUP, GROUP + 1, 2 * GROUP, 5 * GROUP + 3])
def test_counts_are_the_least_squares_fit_to_both_levels(cells):
    counts = np.random.default_rng(cells).integers(0, 50, cells + 1)
    exact = answers_of(NUMBER, counts)
    noisy = exact + np.random.default_rng(1).normal(0, 5, exact.size)
    design = np.stack([answers_of(NUMBER, one) for one in np.eye(cells + 1, dtype=int)], axis=1)
    expected = np.linalg.lstsq(design, noisy, rcond=None)[0]
    np.testing.assert_allclose(agreeing_counts(NUMBER, noisy, 5.0)[0], expected, atol=1e-9)
    np.testing.assert_allclose(agreeing_counts(NUMBER, exact, 5.0)[0], counts, atol=1e-9)


def test_counts_of_categories_stay_as_they_are():
    counts = np.array([9, 4, 0, 1])
    found, deviation = agreeing_counts(CATEGORY, answers_of(CATEGORY, counts), 3.0)
    np.testing.assert_array_equal(found, counts)
    assert deviation == 3.0


@pytest.mark.parametrize("missing", [True, False])
def test_the_error_of_sums_is_that_of_the_fit(missing):
    """Against the covariance of least squares with noise of deviation 2 in each answer."""
    feature = NumericFeature("x", -5, 1000, missing=missing)
    design = np.stack([answers_of(feature, one) for one in np.eye(CELLS + 1)], axis=1)
    covariance = 4.0 * np.linalg.inv(design.T @ design)
    _, deviation = agreeing_counts(feature, design.sum(axis=1), 2.0)
    bin_of_cell = np.append(np.sort(np.random.default_rng(0).integers(0, 9, CELLS)), 4)
    found = sum_deviations(feature, bin_of_cell, 9, deviation)
    for bin_ in range(9):
        chosen = (bin_of_cell == bin_).astype(float)
        chosen[-1] *= missing
        assert found[bin_] ** 2 == pytest.approx(chosen @ covariance @ chosen)


def test_the_error_of_a_run_of_cells_adds_up_step_by_step():
    steps = variance_steps(CELLS)
    for first, last in ((0, 5), (0, GROUP), (3, GROUP + 7), (GROUP - 1, CELLS)):
        together = [min(i % GROUP, i - first) for i in range(first, last)]
        bin_of_cell = np.ones(CELLS + 1, int)
        bin_of_cell[first:last] = 0
        whole = sum_deviations(NUMBER, bin_of_cell, 2, 1.0)[0] ** 2
        assert sum(steps[range(first, last), together]) == pytest.approx(whole)


def test_categories_add_their_errors():
    found = sum_deviations(CATEGORY, np.array([0, 1, 1, 1]), 2, 3.0)
    np.testing.assert_allclose(found, [3.0, 3 * np.sqrt(3)])


def test_a_long_stretch_of_cells_is_known_better_than_one_by_one():
    stretch = np.append(np.repeat([0, 1, 2], [1, 64, CELLS - 65]), 0)
    _, deviation = agreeing_counts(NUMBER, np.zeros(CELLS + 1 + -(-CELLS // GROUP)), 1.0)
    assert sum_deviations(NUMBER, stretch, 3, deviation)[1] < 0.5 * np.sqrt(64)


def test_values_behind_a_stretch_of_empty_cells_get_bins_of_their_own():
    """What is mostly 0, and else far from it: 7 % of the rows, 25 deviations of a cell's noise."""
    feature = NumericFeature("x", 0, 99_999)
    rng = np.random.default_rng(0)
    values = np.where(rng.random(30_000) < 0.07, rng.choice([5178, 7688, 15_024], 30_000), 0)
    exact = answers_of(feature, fine_cells(pd.Series(values, name="x"), feature)[1])
    for _ in range(20):
        noisy = exact + rng.normal(0, 60, exact.size)
        counts, deviation = agreeing_counts(feature, noisy, 60.0)
        bins, _, _ = merge_fine(feature, counts, deviation, 30_000, seen=3.0)
        assert bins.n_bins >= 2
        assert 0 < bins.cuts[0] <= 5178
