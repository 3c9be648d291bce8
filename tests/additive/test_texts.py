"""Texts of new rows are read as a card reads those of a fit."""

from __future__ import annotations

import pandas as pd
import pytest

from dprepro.additive.texts import ignores_blanks, missing_texts, read_categories
from dprepro.data.domain import CategoricalFeature

MISSING = ("", "?", "NA")


def read(values: list, *categories: str) -> list:
    column = pd.Series(pd.Categorical(values), name="c")
    found = read_categories(column, CategoricalFeature("c", categories), MISSING)
    assert found.name == "c"
    return [None if pd.isna(value) else value for value in found]


def test_texts_for_missing_values_are_missing_unless_they_are_categories() -> None:
    assert read(["a", "?", "NA", None, " a", ""], "a", "NA") == ["a", None, "NA", None, "a", None]
    assert missing_texts(CategoricalFeature("c", ("NA",)), MISSING) == ("", "?")


def test_blanks_count_where_a_category_has_some() -> None:
    assert read([" a", "a", " ? "], " a") == [" a", "a", " ? "]
    assert not ignores_blanks(CategoricalFeature("c", ("a ",)))


@pytest.mark.parametrize("values", [[1, 2, 1], [1.5, None, 2.0], [True, False, True], []])
def test_what_is_no_text_stays_as_it_is(values: list) -> None:
    assert read(values, "1") == values
