"""A row's code of a category depends on its own value and the domain, never on other rows."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprepro.data.domain import CategoricalFeature, Domain, category_codes, code_of_boolean

CATEGORIES = ("b", "1", "True", "2.0", "1.50", "False", "0", "-3", "nan")
NUMBERS = [0, 1, 1.0, 2, 2.0, 1.5, -3, -0.0, 7, None, float("nan")]
TEXTS = ["b", "1", "1.0", "2.0", "True", "z", "nan", None]
TRUTHS = [True, False, None]
POOLS = {
    "inferred numbers": (NUMBERS, None),
    "inferred texts": (TEXTS, None),
    "inferred truths": (TRUTHS, None),
    "inferred mixture": ([*NUMBERS, *TEXTS, *TRUTHS, np.True_, np.int8(1), np.float32(1)], None),
    "object": ([*NUMBERS, *TEXTS, *TRUTHS, np.True_, np.int8(1), np.float32(1), 10**400], object),
    "string": (TEXTS, "string"),
    "Int64": ([0, 1, 2, -3, 7, None], "Int64"),
    "Float64": ([0.0, 1.0, 2.0, 1.5, None], "Float64"),
    "boolean": (TRUTHS, "boolean"),
    "category of texts": (TEXTS, "category"),
    "category of numbers": (NUMBERS, "category"),
    "category of truths": (TRUTHS, "category"),
}


def alone(value):
    """The code of a value by the rule, worked out without any table."""
    if pd.isna(value):
        return -1
    if isinstance(value, (str, bool, np.bool_)):
        return CATEGORIES.index(str(value)) if str(value) in CATEGORIES else -1
    return {1: 1, 2: 3, 1.5: 4, 0: 6, -3: 7}.get(value, -1)


@pytest.mark.parametrize(("values", "dtype"), POOLS.values(), ids=POOLS)
@given(st.data())
def test_adding_or_removing_a_row_leaves_the_codes_of_the_others(values, dtype, data):
    rows = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=6))
    out = data.draw(st.integers(0, len(rows) - 1))
    table = pd.Series(rows, dtype=dtype)
    codes = category_codes(table, CATEGORIES)
    assert codes.dtype == np.int64
    assert codes.tolist() == [alone(value) for value in rows]
    fewer = pd.Series(
        [*rows[:out], *rows[out + 1 :]], dtype=dtype or ("O" if len(rows) < 2 else None)
    )
    np.testing.assert_array_equal(category_codes(fewer, CATEGORIES), np.delete(codes, out))
    kept_type = category_codes(table.drop(out), CATEGORIES)
    np.testing.assert_array_equal(kept_type, np.delete(codes, out))


@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_value_turns_whole_numbers_into_floats_but_not_their_codes(missing):
    column = pd.Series([2, 1, *([None] if missing else [])])
    assert column.dtype == ("float64" if missing else "int64")
    assert category_codes(column, ("1", "2"))[:2].tolist() == [1, 0]


def test_whole_numbers_beyond_the_precision_of_floats_stay_with_their_category():
    large = 2**53 + 1
    whole, spoilt = pd.Series([large, 5]), pd.Series([large, None])
    codes = {int(category_codes(c, (str(large), "5"))[0]) for c in (whole, spoilt)}
    assert codes == {0}


def test_of_categories_that_read_as_the_same_number_the_first_takes_it():
    assert category_codes(pd.Series([1.0]), ("1", "1.0")).tolist() == [0]
    assert category_codes(pd.Series([1]), ("1.0", "1")).tolist() == [0]
    assert category_codes(pd.Series(["1.0"]), ("1", "1.0")).tolist() == [1]


def test_observed_categories_keep_apart_what_equals_but_reads_differently():
    mixed = pd.DataFrame({"x": pd.Series([1, True, "1", 1.0], dtype=object)})
    domain = Domain.observe(mixed, np.array([0, 1, 0, 1]), "binary")
    assert domain.features == (CategoricalFeature("x", ("1", "1.0", "True")),)


@pytest.mark.parametrize(
    ("categories", "codes"),
    [
        (["False", "True"], [1, 0]), (["Yes", "No"], [0, 1]), (["TRUE", "FALSE", "x"], [0, 1]),
        (["t", "F"], [0, 1]), (["true", "True", "no"], [1, 2]), (["y", "YES", "n"], [-1, 2]),
        (["1", "0"], [-1, -1]), ([" yes "], [0, -1]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [bool, object, "boolean", "category"])
def test_a_boolean_is_the_category_that_spells_it(categories, codes, dtype):
    assert category_codes(pd.Series([True, False], dtype=dtype), categories).tolist() == codes
    assert [code_of_boolean(value, categories) for value in (True, False)] == codes


def test_a_decimal_is_the_category_of_its_number():
    column = pd.Series([Decimal("1.00"), Decimal("2"), Decimal("NaN"), "1.00"], dtype=object)
    assert category_codes(column, ["1", "2.0"]).tolist() == [0, 1, -1, -1]
