"""Whole numbers: values keep their bound, sums have no order, sums and noise have room."""

import itertools

import numpy as np
import pytest

from dprepro.methods.linear_regression.products import Grid, Moments, symmetric


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
