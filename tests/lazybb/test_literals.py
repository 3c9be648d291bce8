"""Boolean columns: sums and true rows are those of the dense matrix, in any dtype."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.lazybb.literals import Literals

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (30, 7))
X[:, 2], X[:, 5] = 0, 1


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_sums_and_rows(dtype: type) -> None:
    literals = Literals(X.astype(dtype))
    assert (literals.rows, literals.columns) == (30, 7)
    for shape in ((30,), (30, 2)):
        # Their sums need all bits of int64: doubles would lose the last ones.
        values = RNG.integers(-(2**58), 2**58, shape)
        assert literals.sums(values).dtype == np.int64
        np.testing.assert_array_equal(literals.sums(values), X.T @ values)
    for column in range(7):
        np.testing.assert_array_equal(literals.true_rows(column), np.flatnonzero(X[:, column]))


def test_sums_that_depend_on_the_order_of_rows_are_refused() -> None:
    with pytest.raises(TypeError, match="whole numbers"):
        Literals(X).sums(np.full(30, 0.1))
