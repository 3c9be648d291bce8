"""Encoded rows have a norm of at most 1 in whole numbers, and piecewise linear columns."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.bounded_norm_encoding import BITS, UNIT, UnitRows

LETTERS = CategoricalFeature("c", ("a", "b", "z"))


def numbers(count, rows=200):
    """Return numeric features, and rows at, between and beyond their bounds."""
    features = tuple(NumericFeature(f"x{k}", -1.0, 3.0) for k in range(count))
    rng = np.random.default_rng(count)
    values = rng.choice([-9.0, -1.0, 0.37, 1.0, 2.999, 3.0, 9.0, np.nan], (rows, count))
    values[0] = 3.0
    return features, pd.DataFrame(values, columns=[f.name for f in features])


@pytest.mark.parametrize("knots", [2, 3, 10])
@pytest.mark.parametrize("count", [1, 2, 8, 47])
def test_no_row_is_longer_than_one(count, knots):
    features, frame = numbers(count)
    frame["c"] = np.resize(["a", "b", "z", "?"], len(frame))
    rows = UnitRows(Domain((*features, LETTERS), ("0", "1")), knots).encode(frame)
    assert rows.dtype == np.int64
    squares = np.asarray(rows.multiply(rows).sum(axis=1))
    assert squares.max() <= 2 ** (2 * BITS)
    assert squares.max() > 0.99 * 2 ** (2 * BITS)


def test_no_entry_is_larger_than_its_part():
    features, frame = numbers(3)
    encoder = UnitRows(Domain(features, ("0", "1")), 5)
    rows = encoder.encode(frame)
    assert encoder.parts == 4
    assert abs(rows).max() == encoder.largest == 2**BITS // 2


@pytest.mark.parametrize("knots", [2, 5])
def test_weights_at_the_knots_make_a_piecewise_linear_function(knots):
    encoder = UnitRows(Domain((NumericFeature("x", 0.0, 4.0),), ("0", "1")), knots)
    x = np.linspace(0, 4, 101)
    weights = np.array([2.0, 1.0]) if knots == 2 else np.array([3.0, -1.0, 0.0, 5.0, 2.0, 1.0])
    heights = [-1.0, 3.0] if knots == 2 else weights[:-1] + 1.0
    function = np.interp(x, np.linspace(0, 4, knots), heights)
    scores = encoder.scores(pd.DataFrame({"x": x}), weights)
    np.testing.assert_allclose(scores, function * encoder.largest * UNIT, atol=6 * UNIT)


def test_values_outside_the_bounds_are_those_at_the_bounds():
    encoder = UnitRows(Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1")), 4)
    rows = encoder.encode(pd.DataFrame({"x": [-5.0, 0.0, 1.0, 7.0]})).toarray()
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[2], rows[3])
    assert rows[0, 0] == rows[2, 3] == encoder.largest


@pytest.mark.parametrize("knots", [2, 4])
def test_a_missing_value_and_an_unseen_category_add_nothing(knots):
    encoder = UnitRows(Domain((NumericFeature("x", 0.0, 1.0), LETTERS), ("0", "1")), knots)
    row = encoder.encode(pd.DataFrame({"x": [np.nan], "c": ["?"]})).toarray()[0]
    assert row[:-1].tolist() == [0] * (encoder.columns - 1)
    assert row[-1] == encoder.largest


def test_a_feature_whose_bounds_coincide_has_no_columns():
    encoder = UnitRows(Domain((NumericFeature("x", 1.0, 1.0), LETTERS), ("0", "1")), 10)
    assert (encoder.columns, encoder.parts) == (4, 2)
