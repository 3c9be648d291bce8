"""Cells: between candidates and at them, and a category each."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, NumericFeature
from dprepro.methods.s_bdt.trees import Cells

X = NumericFeature("x", 10, 20)
C = CategoricalFeature("c", ("a", "b"))


def test_candidates_are_equidistant_within_the_bounds_or_below_a_border():
    assert Cells.of(X, 4, None).candidates.tolist() == [10, 12.5, 15, 17.5]
    assert Cells.of(X, 4, 100).candidates.tolist() == [0, 25, 50, 75]
    assert Cells.of(C, 4, None).candidates.tolist() == []


def test_a_candidate_has_a_cell_of_its_own():
    cells = Cells.of(X, 2, None)  # 10 and 15
    values = pd.Series([9, 10, 11, 15, 16, np.nan])
    assert cells.encode(values).tolist() == [0, 1, 2, 3, 4, 0]
    assert cells.count == 5


def test_a_category_has_a_cell_and_all_others_share_one():
    cells = Cells.of(C, 2, None)
    assert cells.encode(pd.Series(["b", "a", "z", None])).tolist() == [1, 0, 2, 2]
    assert cells.count == 3


@pytest.mark.parametrize(
    ("feature", "values", "message"),
    [
        (C, ["a", "z"], "holds a category that is not in its domain"),
        (C, ["a", None], "has missing values"),
        (X, [1.0, np.nan], "has missing values"),
    ],
)
def test_rows_that_train_keep_to_the_domain(feature, values, message):
    cells = Cells.of(feature, 2, None)
    with pytest.raises(ValueError, match=message):
        cells.encode(pd.Series(values), refuse=True)
