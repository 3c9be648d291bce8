"""The solver: least squares where there is a minimum, and the same bits on every machine."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from dprepro.methods.linear_regression.products import eigen, trim_and_solve
from tests.methods.linear_regression.lab import COLUMNS, rows


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


def symmetric(size, seed=0):
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
    "matrix", [*map(symmetric, (2, 5, 30)), *SPECIAL.values()], ids=["2", "5", "30", *SPECIAL]
)
def test_eigenvalues_and_vectors_are_those_of_lapack(matrix):
    values, vectors = eigen(matrix)
    size = np.abs(matrix).max()
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-12 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(matrix)), atol=1e-13)
    np.testing.assert_allclose(vectors * values @ vectors.T, matrix, atol=1e-12 * size)


def test_the_solution_is_that_of_lapack():
    for seed in range(20):
        gram, products = symmetric(12, seed), np.random.default_rng(seed).normal(0, 1000, 12)
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
    matrix = symmetric(100)
    values, _ = eigen(matrix)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), rtol=1e-10, atol=1e-8)
