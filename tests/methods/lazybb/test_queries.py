"""Boolean columns: their sums are those of the table they were made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dprepro.methods.lazybb.estimator import LazyBBClassifier
from dprepro.methods.lazybb.queries import Literals, column_names, read_literals

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


@pytest.mark.parametrize("other", [2, -1, 0.5])
def test_only_0_and_1_are_taken(other: float) -> None:
    model = LazyBBClassifier()
    assert read_literals(model, X.astype(float), reset=True).rows == 30
    assert read_literals(model, X[:1], reset=False).rows == 1
    changed = X.astype(float)
    changed[3, 4] = other
    with pytest.raises(ValueError, match="takes Boolean columns, 0 or 1, but X has other values"):
        read_literals(model, changed, reset=True)
    with pytest.raises(ValueError, match="minimum of 2"):
        read_literals(model, X[:1], reset=True)


def test_columns_are_called_by_feature_and_value_or_by_their_name() -> None:
    assert column_names(X, 2) == [("x0", "1"), ("x1", "1")]
    pairs = pd.DataFrame([[0, 1]], columns=pd.MultiIndex.from_tuples([("age", "a"), ("age", "b")]))
    assert column_names(pairs, 2) == [("age", "a"), ("age", "b")]
    assert column_names(pd.DataFrame({"old": [1]}), 1) == [("old", "1")]
