"""The grid: targets never grow by rounding, and values on it are exact."""

import numpy as np

from dprepro.methods.dpboost.kernel import LARGEST, UNIT, on_grid, truncated, whole


def test_targets_are_rounded_towards_zero():
    targets = np.array([-1.0, -0.3, -UNIT * 0.99, 0.0, 0.3, np.nextafter(1.0, 0), 1.0])
    found = truncated(targets)
    assert found.dtype == np.int64
    exact = targets / UNIT
    assert (np.abs(found) <= np.abs(exact)).all()
    assert (np.abs(found - exact) < 1).all()
    assert found[[0, 2, 5, 6]].tolist() == [-(2**24), 0, 2**24 - 1, 2**24]


def test_released_values_are_rounded_to_the_nearest_and_keep_their_bits():
    values = np.random.default_rng(0).normal(0, 1e3, 1000)
    rounded = on_grid(values)
    assert np.abs(rounded - values).max() <= UNIT / 2
    np.testing.assert_array_equal(on_grid(rounded), rounded)
    np.testing.assert_array_equal(whole(rounded) * UNIT, rounded)


def test_huge_values_are_clipped_so_that_sums_of_scores_fit():
    np.testing.assert_array_equal(whole(np.array([1e300, -1e300])), [LARGEST, -LARGEST])
    assert 2000 * LARGEST < 2**63
