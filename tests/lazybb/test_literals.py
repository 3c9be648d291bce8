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
    for values in (RNG.normal(size=30), RNG.normal(size=(30, 2))):
        np.testing.assert_allclose(literals.sums(values), X.T @ values, atol=1e-13)
    for column in range(7):
        np.testing.assert_array_equal(literals.true_rows(column), np.flatnonzero(X[:, column]))
