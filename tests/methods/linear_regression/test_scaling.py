"""Bounds of the target go to -1 and 1, and nothing lies beyond the limit."""

import numpy as np
import pytest

from dprepro.methods.linear_regression.products import scaled


@pytest.mark.parametrize("limit", [1.0, 0.25])
def test_the_bounds_become_one_and_all_is_clipped(limit):
    X, y = scaled(np.array([[-3.0, 0.1]]), np.array([10.0, 30.0, 20.0, 1e9]), (10.0, 30.0), limit)
    np.testing.assert_array_equal(X, [[-limit, 0.1]])
    np.testing.assert_array_equal(y, [-limit, limit, 0.0, limit])
