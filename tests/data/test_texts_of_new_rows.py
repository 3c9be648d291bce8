"""Texts of new rows are read as a card reads those of a fit."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dprepro.data.cell_values import (
    BLANKS,
    Marks,
    ignores_blanks,
    missing_numbers,
    missing_texts,
    read_as_categories,
)
from dprepro.data.domain import CategoricalFeature

MISSING = ("", "?", "NA", "-9")


def read(
    values: list[Any], *categories: str, missing: tuple[str, ...] = MISSING, **relabelled: str
) -> list[Any]:
    column = pa.chunked_array([pa.array(values)])
    feature = CategoricalFeature("c", categories)
    found = read_as_categories(column, feature, Marks(missing), relabelled)
    return [None if pd.isna(value) else value for value in found]


def test_texts_for_missing_values_are_missing_unless_they_are_categories() -> None:
    assert read(["a", "?", "NA", None, " a", ""], "a", "NA") == ["a", None, "NA", None, "a", None]
    assert read(["\t?", "\u00a0 NA", "-9.0", "-9"], "a") == [None] * 4
    assert read(["-9.0", "-9"], "a", "-9") == ["-9.0", "-9"]  # a category is no mark
    assert missing_texts(CategoricalFeature("c", ("NA",)), MISSING) == ("", "?", "-9")


def test_blanks_count_where_a_category_has_some() -> None:
    assert read([" a", "a", " ? "], " a") == [" a", "a", None]
    assert not ignores_blanks(CategoricalFeature("c", ("a ",)))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, 2, 1, -9], ["1", "2", "1", None]),
        ([1.5, None, 1.0], ["1.5", None, "1"]),
        ([True, False], ["True", "False"]),
        ([], []),
    ],
)
def test_what_is_stored_as_no_text_is_read_as_the_text_it_is(values: Any, said: Any) -> None:
    assert read(values, "1") == said


def test_a_boolean_is_the_only_category_that_spells_it() -> None:
    assert read([True, False, None], "No", "Yes") == ["Yes", "No", None]
    assert read([True], "y", "yes") == ["True"]


def test_what_a_card_maps_to_a_category_is_it() -> None:
    assert read(["w", "v", "x"], "a", "b", w="a", v="b") == ["a", "b", "x"]


def test_marks_that_are_numbers_stand_for_every_spelling() -> None:
    marks = ("", "-200", "99.0", "inf", "1")
    assert missing_numbers(marks) == (-200.0, 1.0, 99.0)
    texts = ["-200", " -2e2", "099", "1", "1.0", "98", "inf"]
    assert read(texts, "1", missing=marks) == [None, None, None, "1", "1.0", "98", None]
    assert read([-200, 99, 1, 98], "1", missing=marks) == [None, None, "1", "98"]
    assert read([-200.0, 1.5], "-200.0", missing=marks) == ["-200.0", "1.5"]
    assert read([True, False], "a", missing=marks) == ["True", "False"]


def test_blanks_are_those_that_python_strips() -> None:
    blanks = [c for c in map(chr, range(sys.maxunicode + 1)) if not c.strip()]
    assert sorted(BLANKS) == blanks
