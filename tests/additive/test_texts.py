"""Texts of new rows are read as a card reads those of a fit."""

from __future__ import annotations

import math
import sys

import pandas as pd
import pytest

from dprepro.additive.texts import (
    BLANKS,
    ignores_blanks,
    missing_numbers,
    missing_texts,
    number_of,
    read_categories,
)
from dprepro.data.domain import CategoricalFeature

MISSING = ("", "?", "NA")


def read(values: list, *categories: str, missing: tuple[str, ...] = MISSING) -> list:
    column = pd.Series(pd.Categorical(values), name="c")
    found = read_categories(column, CategoricalFeature("c", categories), missing)
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


def test_marks_that_are_numbers_stand_for_every_spelling() -> None:
    marks = ("", "-200", "99.0", "inf", "1")
    assert missing_numbers(marks) == (-200.0, 99.0, 1.0)
    texts = ["-200", " -2e2", "099", "1", "1.0", "98", "inf"]
    assert read(texts, "1", missing=marks) == [None, None, None, "1", "1.0", "98", None]
    assert read([-200, 99, 1, 98], "1", missing=marks) == [None, None, 1, 98]
    assert read([-200.0, 1.5], "-200.0", missing=marks) == [-200.0, 1.5]
    assert read([True, False], "a", missing=marks) == [True, False]


@pytest.mark.parametrize("text", ["0", "-1", "+1.50", ".5", " 1e5\t", "\u00a01E-5", "-.5e+3"])
def test_what_reads_as_a_number(text: str) -> None:
    assert number_of(text) == float(text)


@pytest.mark.parametrize(
    "text", ["", "a", "5.", "5.e3", "1e", "1_000", "0x10", "inf", "nan", "\u0661", "1,5", "1 2"]
)
def test_what_does_not_read_as_a_number(text: str) -> None:
    assert math.isnan(number_of(text))


def test_blanks_are_those_that_python_strips() -> None:
    blanks = [c for c in map(chr, range(sys.maxunicode + 1)) if not c.strip()]
    assert sorted(BLANKS) == blanks
