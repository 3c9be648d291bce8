"""Matrices of five bands against dense linear algebra."""

import numpy as np
import pytest

from dprepro.ebm_plus.banded import backward, diagonal_of_inverse, factor, forward

SIZES = pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
BANDS = pytest.mark.parametrize("bands", [0, 1, 2])
SIZED = {"rtol": 1e-10, "atol": 1e-12}


def dense(size, bands):
    """Return a random positive definite matrix with so many bands on either side."""
    rng = np.random.default_rng(10 * size + bands)
    root = np.triu(np.tril(rng.normal(size=(size, size)), bands))
    return root.T @ root + 0.1 * np.eye(size)


def banded(matrix):
    """Return the three rows of a matrix; places that lie outside of it are not to be read."""
    found = np.full((3, len(matrix)), np.nan)
    for band in range(min(3, len(matrix))):
        found[band, band:] = np.diagonal(matrix, -band)
    return found


def factors(matrix):
    """Return L, with ones on its diagonal, and D of a matrix, by numpy."""
    root = np.linalg.cholesky(matrix)
    diagonal = np.diagonal(root)
    return root / diagonal, diagonal**2


def factored(matrix):
    """Return what `factor` makes of a matrix."""
    found = banded(matrix)
    factor.py_func(found)
    return found


@BANDS
@SIZES
def test_the_factors_are_those_of_the_matrix(size, bands):
    matrix = dense(size, bands)
    lower, diagonal = factors(matrix)
    expected = banded(lower)
    expected[0] = diagonal
    np.testing.assert_allclose(factored(matrix), expected, **SIZED)


@BANDS
@SIZES
def test_the_determinant_is_the_product_of_the_first_row(size, bands):
    matrix = dense(size, bands)
    sign, log = np.linalg.slogdet(matrix)
    assert sign == 1
    assert np.log(factored(matrix)[0]).sum() == pytest.approx(log, rel=1e-10, abs=1e-10)


@BANDS
@SIZES
def test_forward_and_backward_each_solve_their_half(size, bands):
    matrix = dense(size, bands)
    lower, diagonal = factors(matrix)
    values = np.random.default_rng(size).normal(size=size)
    down, up = values.copy(), values.copy()
    forward.py_func(factored(matrix), down)
    np.testing.assert_allclose(down, np.linalg.solve(lower, values), **SIZED)
    backward.py_func(factored(matrix), up)
    np.testing.assert_allclose(up, np.linalg.solve(diagonal[:, None] * lower.T, values), **SIZED)


@BANDS
@SIZES
def test_one_after_the_other_they_solve_the_whole(size, bands):
    matrix = dense(size, bands)
    values = np.random.default_rng(size).normal(size=size)
    expected = np.linalg.solve(matrix, values)
    forward.py_func(factored(matrix), values)
    backward.py_func(factored(matrix), values)
    np.testing.assert_allclose(values, expected, **SIZED)


@BANDS
@SIZES
def test_the_diagonal_is_that_of_the_inverse(size, bands):
    matrix = dense(size, bands)
    found = np.full(size, np.nan)  # what was there does not matter
    diagonal_of_inverse.py_func(factored(matrix), found)
    np.testing.assert_allclose(found, np.diagonal(np.linalg.inv(matrix)), **SIZED)


def test_a_diagonal_is_its_own_factor():
    diagonal = np.array([4.0, 0.5, 2.0, 8.0])
    matrix = np.zeros((3, 4))
    matrix[0] = diagonal
    factor.py_func(matrix)
    np.testing.assert_array_equal(matrix, [diagonal, np.zeros(4), np.zeros(4)])
    values, inverse = np.ones(4), np.empty(4)
    forward.py_func(matrix, values)
    np.testing.assert_array_equal(values, 1)
    backward.py_func(matrix, values)
    diagonal_of_inverse.py_func(matrix, inverse)
    np.testing.assert_array_equal([values, inverse], [1 / diagonal] * 2)


def test_nothing_but_what_is_to_be_filled_in_changes():
    known = factored(dense(7, 2))
    before = known.copy()
    forward.py_func(known, np.ones(7))
    backward.py_func(known, np.ones(7))
    diagonal_of_inverse.py_func(known, np.ones(7))
    np.testing.assert_array_equal(known, before)
