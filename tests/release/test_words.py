from __future__ import annotations

import pytest

from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency
from dprepro.release.words import factor, is_bounded, neighbours_in_words, number, unit_in_words


def test_a_unit_is_named_with_its_rows() -> None:
    assert unit_in_words("row", 1) == "one row"
    assert unit_in_words("patient", 3) == "one patient, of which up to 3 rows are used"


@pytest.mark.parametrize("adjacency", Adjacency)
def test_bounded_is_where_the_number_of_rows_is_public(adjacency: Adjacency) -> None:
    said = neighbours_in_words(adjacency, "row")
    assert ("number of rows is public" in said) == is_bounded(adjacency)
    assert {ADD_REMOVE: "without", ZERO_OUT: "in their place", REPLACE_ONE: "differ"}[
        adjacency
    ] in said


@pytest.mark.parametrize("adjacency", [ZERO_OUT, REPLACE_ONE])
def test_of_units_the_number_of_rows_that_are_used_is_public(adjacency: Adjacency) -> None:
    said = neighbours_in_words(adjacency, "patient")
    assert said.endswith("(the number of rows that are used is public)")


def test_factors_are_rounded_up() -> None:
    assert [factor(e) for e in (0.0, 1.0, 2.0, 50.0)] == ["1.00", "2.72", "7.39", "e^50"]
    assert float(factor(0.5)) >= 1.6487
    assert [number(0.98765), number(None)] == ["0.9877", "unbounded"]
