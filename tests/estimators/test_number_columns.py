"""Which columns of a table are looked into: all but those whose type says that they are numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dprepro.estimators.columns import check_columns, check_numbers


def beside(values: object) -> pd.DataFrame:
    """Return a table whose last column holds these values, after Booleans and whole numbers."""
    return pd.DataFrame({"member": [True, False], "age": np.array([3, 4], np.uint8), "w": values})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, np.nan], "contains NaN"),
        ([1.0, -np.inf], "contains infinity"),
        ([1.0, 1e200], "beyond 1e\\+150"),
        (["1", "a"], "no number"),
        (pd.array([1, None], dtype="Int64"), "contains NaN"),
        (pd.array([True, None], dtype="boolean"), "contains NaN"),
    ],
)
def test_a_wrong_number_is_found_beside_whole_numbers(values, said):
    with pytest.raises(ValueError, match=f"feature 'w' .*{said}"):
        check_numbers(beside(values))


@pytest.mark.parametrize(
    "values",
    [np.array([1, 2], complex), pd.to_datetime(["2020", "2021"]), [b"a", b"b"], [[1], [2]]],
    ids=["complex", "dates", "bytes", "lists"],
)
def test_a_type_that_nothing_reads_is_found_beside_whole_numbers(values):
    with pytest.raises(ValueError, match="feature 'w' holds values of type"):
        check_columns(beside(values))


def test_whole_numbers_and_booleans_pass():
    table = beside(np.array([-(2**63), 2**63 - 1]))
    check_columns(table)
    check_numbers(table)
