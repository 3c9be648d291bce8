"""Matrices of some bands against dense linear algebra."""

import numpy as np
import pytest

from dprepro.methods.dp_ebm_plus.prior import band_of_inverse, factor, solve

SIZES = pytest.mark.parametrize("size", [*range(1, 9), 40])
WIDTHS = pytest.mark.parametrize("width", [0, 1, 2, 4, 7])
SIZED = {"rtol": 1e-10, "atol": 1e-12}


def dense(size, width):
    """Return a random positive definite matrix with so many bands on either side."""
    rng = np.random.default_rng(10 * size + width)
    root = np.triu(np.tril(rng.normal(size=(size, size)), width))
    return root.T @ root + 0.1 * np.eye(size)


def banded(matrix, width):
    """Return the band of a matrix; places left of its first column are not to be read."""
    found = np.full((len(matrix), width + 1), np.nan)
    for i, row in enumerate(matrix):
        first = max(0, i - width)
        found[i, first - i + width :] = row[first : i + 1]
    return found


def factored(matrix, width):
    """Return what `factor` makes of a matrix, and the logarithm that it returns."""
    found = banded(matrix, width)
    return found, factor.py_func(found)


@WIDTHS
@SIZES
def test_the_factor_is_that_of_the_matrix(size, width):
    matrix = dense(size, width)
    expected = banded(np.linalg.cholesky(matrix), width)
    np.testing.assert_allclose(factored(matrix, width)[0], expected, **SIZED)


@WIDTHS
@SIZES
def test_the_logarithm_is_that_of_the_determinant(size, width):
    matrix = dense(size, width)
    sign, log = np.linalg.slogdet(matrix)
    assert sign == 1
    assert factored(matrix, width)[1] == pytest.approx(log, rel=1e-10, abs=1e-10)


@WIDTHS
@SIZES
def test_the_solution_is_that_of_the_matrix(size, width):
    matrix = dense(size, width)
    right, found = np.random.default_rng(size).normal(size=size), np.full(size, np.nan)
    solve.py_func(factored(matrix, width)[0], right, found)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), **SIZED)


@WIDTHS
@SIZES
def test_the_band_is_that_of_the_inverse(size, width):
    matrix = dense(size, width)
    found, inverse = band_of_inverse.py_func(factored(matrix, width)[0]), np.linalg.inv(matrix)
    assert found.shape == (size, width + 1)
    for i in range(size):
        beside = inverse[i, i : i + width + 1]
        np.testing.assert_allclose(found[i, : beside.size], beside, **SIZED)


@pytest.mark.parametrize("width", [0, 2])
def test_the_factor_of_a_diagonal_is_its_root(width):
    diagonal = np.array([4.0, 0.25, 16.0, 1.0])
    band, log = factored(np.diag(diagonal), width)
    np.testing.assert_array_equal(band, banded(np.diag(np.sqrt(diagonal)), width))
    assert log == pytest.approx(np.log(16))
    found = np.empty(4)
    solve.py_func(band, np.ones(4), found)
    inverse = band_of_inverse.py_func(band)[:, 0]
    np.testing.assert_array_equal([found, inverse], [1 / diagonal] * 2)


def test_nothing_but_what_is_to_be_filled_in_changes():
    known, _ = factored(dense(7, 2), 2)
    before, right = known.copy(), np.ones(7)
    solve.py_func(known, right, np.empty(7))
    band_of_inverse.py_func(known)
    np.testing.assert_array_equal(known, before)
    np.testing.assert_array_equal(right, 1)
