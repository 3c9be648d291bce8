"""Texts of new rows are read as a card reads those of a fit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dprepro.additive.texts import ignores_blanks, missing_texts, read_categories
from dprepro.data.cells import Marks
from dprepro.data.domain import CategoricalFeature

MISSING = ("", "?", "NA", "-9")


def read(values: list[Any], *categories: str, **relabelled: str) -> list[Any]:
    column = pa.chunked_array([pa.array(values)])
    feature = CategoricalFeature("c", categories)
    found = read_categories(column, feature, Marks(MISSING), relabelled)
    return [None if pd.isna(value) else value for value in found]


def test_texts_for_missing_values_are_missing_unless_they_are_categories() -> None:
    assert read(["a", "?", "NA", None, " a", ""], "a", "NA") == ["a", None, "NA", None, "a", None]
    assert read(["\t?", "\u00a0 NA", "-9.0", "-9"], "a", "-9") == [None, None, None, "-9"]
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


def test_what_a_card_maps_to_a_category_is_it() -> None:
    assert read(["w", "v", "x"], "a", "b", w="a", v="b") == ["a", "b", "x"]
