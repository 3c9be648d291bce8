"""Domains: what is public, and what was read."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import (
    CategoricalFeature,
    Domain,
    NumericFeature,
    category_codes,
    is_categorical,
    refuse_unseen,
)

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50],
        "income": [1.5, np.nan, -2.0],
        "job": pd.Categorical(["b", "a", None], categories=["a", "b", "c"]),
        "city": ["x", "y", "x"],
        "owner": [True, False, True],
    }
)


def test_observing_names_every_read():
    domain = Domain.observe(FRAME, np.array([0, 1, 1]), "binary")
    assert domain.features == (
        NumericFeature("age", 30, 50),
        NumericFeature("income", -2.0, 1.5, missing=True),
        CategoricalFeature("job", ("a", "b"), missing=True),
        CategoricalFeature("city", ("x", "y")),
        CategoricalFeature("owner", ("False", "True")),
    )
    assert domain.observed == (
        "bounds of age, income",
        "categories of job, city, owner",
        "which features have missing values",
    )
    assert not domain.is_public
    assert domain.target == ("0", "1")


def test_observing_a_regression_reads_the_range_of_the_target():
    domain = Domain.observe(FRAME[["age"]], np.array([3.0, -1.0, 2.0]), "regression")
    assert domain.target == (-1.0, 3.0)
    assert "range of the target" in domain.observed


def test_a_column_without_numbers_has_a_domain_all_the_same():
    domain = Domain.observe(pd.DataFrame({"x": [np.nan, np.nan]}), np.array([0, 1]), "binary")
    assert domain.features == (NumericFeature("x", 0.0, 0.0, missing=True),)


def test_a_given_domain_is_public():
    assert Domain((NumericFeature("x", 0, 1),), ("0", "1")).is_public


@pytest.mark.parametrize("bounds", [(1, 0), (0, np.inf), (np.nan, 1)])
def test_bounds_must_be_finite_and_ordered(bounds):
    with pytest.raises(ValueError, match="'x': bounds must be finite with lower <= upper"):
        NumericFeature("x", *bounds)


def test_categories_must_differ():
    with pytest.raises(ValueError, match="categories repeat"):
        CategoricalFeature("x", ("a", "a"))


@pytest.mark.parametrize("dtype", ["category", object, "str"])
def test_codes_do_not_depend_on_how_categories_are_stored(dtype):
    column = pd.Series(["b", "z", "a", None, "b"], dtype=object).astype(dtype)
    if dtype == "str":  # astype("str") turns None into text before pandas 3
        column = column.mask([False, False, False, True, False])
    np.testing.assert_array_equal(category_codes(column, ["a", "b"]), [1, -1, 0, -1, 1])


def test_codes_of_numbers_and_booleans_go_by_their_text():
    np.testing.assert_array_equal(category_codes(pd.Series([2, 1, 3]), ["1", "2"]), [1, 0, -1])
    np.testing.assert_array_equal(
        category_codes(pd.Series([True, False]), ["False", "True"]), [1, 0]
    )


def test_which_columns_are_categorical():
    assert [name for name in FRAME if is_categorical(FRAME[name])] == ["job", "city", "owner"]


def test_one_category_outside_the_domain_is_refused_and_not_quoted():
    feature, column = CategoricalFeature("job", ("a", "b")), pd.Series(["a", "b", "secret"])
    codes = category_codes(column, feature.categories)
    with pytest.raises(ValueError, match="'job' holds a category that is not in its dom") as caught:
        refuse_unseen(feature, codes < 0)
    assert "secret" not in str(caught.value)
    refuse_unseen(feature, codes[:2] < 0)
