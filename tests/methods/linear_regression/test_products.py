"""Whole numbers: values keep their bound, sums have no order, sums and noise have room."""

import itertools
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from dprepro.methods.linear_regression.products import (
    Grid,
    Moments,
    eigen,
    scaled,
    symmetric,
    trim_and_solve,
)
from tests.methods.linear_regression.lab import COLUMNS, rows


@pytest.mark.parametrize("bits", [0, 3, 20])
def test_values_are_rounded_towards_zero(bits):
    values = np.array([0.3, -0.3, 1.0, -1.0, 0.999999999, -1e-12])
    whole = Grid(bits).whole(values)
    back = whole * 2.0**-bits
    assert whole.dtype == np.int64
    assert (np.abs(back) <= np.abs(values)).all()
    assert (np.abs(back - values) < 2.0**-bits).all()


def test_no_exchange_of_values_of_three_bits_moves_a_product_further_than_is_charged():
    """All values on a fine grid, for every pair of rows: squares by 1, other products by 2."""
    grid = Grid(3)
    values = np.linspace(-1, 1, 4 * 2**3 + 1)
    largest = np.zeros(3)
    for limit in (1.0, 0.7):
        found = []
        for x, y in itertools.product(values, values):
            X, target = grid.whole(np.clip([[x, y]], -limit, limit)), grid.whole(np.array([0.0]))
            moments = Moments.of(X, target)
            found.append([*moments.squares, *moments.pairs])
        moved = np.ptp(np.array(found) * grid.unit, axis=0)
        assert (moved <= limit**2 * np.array([1, 1, 2])).all()
        largest = np.maximum(largest, moved)
    np.testing.assert_array_equal(largest, [1, 1, 2])


def test_sums_are_those_of_python_and_have_no_order():
    rng = np.random.default_rng(0)
    grid = Grid(20)
    X, y = grid.whole(rng.uniform(-1, 1, (300, 3))), grid.whole(rng.uniform(-1, 1, 300))
    moments = Moments.of(X, y)
    rows = [tuple(map(int, row)) for row in np.column_stack([X, y])]

    def total(i, j):
        return sum(row[i] * row[j] for row in rows)

    assert moments.target_square.tolist() == [total(3, 3)]
    assert moments.target_products.tolist() == [total(k, 3) for k in range(3)]
    assert moments.squares.tolist() == [total(k, k) for k in range(3)]
    assert moments.pairs.tolist() == [total(0, 1), total(0, 2), total(1, 2)]
    order = rng.permutation(300)
    for one, other in zip(moments, Moments.of(X[order], y[order]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [1, 100, 10**6, 10**9, 2**40])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e5, 2.0**51])
def test_sums_and_noise_have_room(rows, scale):
    grid = Grid.of(rows, scale)
    assert 0 <= grid.bits <= 20
    assert rows * 2 ** (2 * grid.bits) < 2**62
    assert scale / grid.unit <= 2.0**52
    finer = Grid(grid.bits + 1)
    has_room = rows * 2 ** (2 * finer.bits) < 2**62 and scale / finer.unit < 2.0**52
    assert grid.bits == 20 or not has_room


def test_a_symmetric_matrix_of_its_parts():
    matrix = symmetric(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    np.testing.assert_array_equal(matrix, [[1, 4, 5], [4, 2, 6], [5, 6, 3]])
    np.testing.assert_array_equal(symmetric(np.array([7.0]), np.zeros(0)), [[7]])


@pytest.mark.parametrize("limit", [1.0, 0.25])
def test_the_bounds_become_one_and_all_is_clipped(limit):
    X, y = scaled(np.array([[-3.0, 0.1]]), np.array([10.0, 30.0, 20.0, 1e9]), (10.0, 30.0), limit)
    np.testing.assert_array_equal(X, [[-limit, 0.1]])
    np.testing.assert_array_equal(y, [-limit, limit, 0.0, limit])


def test_without_noise_trimming_only_regularises():
    X, y = rows()
    gram, products = X.T @ X, X.T @ y
    np.testing.assert_allclose(
        trim_and_solve(gram, products, 0.0), np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-9
    )
    ridge = np.linalg.solve(gram + 4 * np.sqrt(2) * 10 * np.eye(COLUMNS), products)
    np.testing.assert_allclose(trim_and_solve(gram, products, 10.0), ridge, rtol=1e-9)


def test_directions_without_a_minimum_are_dropped():
    gram, products = np.diag([4.0, -50.0, 0.0]), np.array([8.0, 3.0, 5.0])
    np.testing.assert_allclose(trim_and_solve(gram, products, 0.0), [2, 0, 0])


def random_symmetric(size, seed=0):
    matrix = np.random.default_rng(seed).normal(0, 1000, (size, size))
    return matrix + matrix.T


SPECIAL = {
    "diagonal": np.diag([3.0, -1.0, 0.0]),
    "zero": np.zeros((2, 2)),
    "equal": np.ones((4, 4)),
    "one": np.array([[5.0]]),
    "scales": np.array([[1e12, 1.0, 1e-9], [1.0, 1e-3, 1e-12], [1e-9, 1e-12, 7.0]]),
    "a weak coupling": np.array([[1e-8, 1e-300], [1e-300, 1e8]]),
}


@pytest.mark.parametrize(
    "matrix",
    [*map(random_symmetric, (2, 5, 30)), *SPECIAL.values()],
    ids=["2", "5", "30", *SPECIAL],
)
def test_eigenvalues_and_vectors_are_those_of_lapack(matrix):
    values, vectors = eigen(matrix)
    size = np.abs(matrix).max()
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-12 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(matrix)), atol=1e-13)
    np.testing.assert_allclose(vectors * values @ vectors.T, matrix, atol=1e-12 * size)


def test_the_solution_is_that_of_lapack():
    for seed in range(20):
        gram, products = random_symmetric(12, seed), np.random.default_rng(seed).normal(0, 1000, 12)
        values, vectors = np.linalg.eigh(gram)
        values = values + 4 * np.sqrt(2) * 300
        kept = values > 0
        expected = vectors[:, kept] @ ((vectors[:, kept].T @ products) / values[kept])
        np.testing.assert_allclose(trim_and_solve(gram, products, 300.0), expected, rtol=1e-8)


SOLVE = """
import numpy as np
from dprepro.methods.linear_regression.products import trim_and_solve
matrix = np.random.RandomState(0).normal(0, 1000, (40, 40))
found = trim_and_solve(matrix + matrix.T, matrix[0], 300.0)
print(found.tobytes().hex(), np.linalg.eigh(matrix + matrix.T)[1].tobytes().hex())
"""


@pytest.mark.compiling
def test_another_processor_gives_the_same_bits_which_lapack_does_not():
    def solved(**circumstances):
        environment = {**os.environ, **circumstances}
        done = subprocess.run(
            [sys.executable, "-c", SOLVE],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched)} if dispatched else {}
    old = solved(OPENBLAS_CORETYPE="Prescott", OPENBLAS_NUM_THREADS="1", **plain)
    here = solved(OPENBLAS_NUM_THREADS="2")
    assert here[0] == old[0]
    if platform.machine() == "x86_64":
        assert here[1] != old[1]


def test_a_hundred_columns_are_solved_to_the_end():
    matrix = random_symmetric(100)
    values, _ = eigen(matrix)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), rtol=1e-10, atol=1e-8)
