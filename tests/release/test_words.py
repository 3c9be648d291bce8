from __future__ import annotations

from typing import get_args

import pytest

from dprepro.privacy.ledger_entry import Mechanism
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency
from dprepro.release.statement import (
    factor,
    is_bounded,
    mechanism_in_words,
    mixed_in_words,
    neighbours_in_words,
    number,
    releases_in_words,
    spent_in_words,
    unit_in_words,
)


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


def test_neighbours_differ_in_a_row_or_in_all_rows_of_a_unit() -> None:
    assert neighbours_in_words(ADD_REMOVE, "row") == "one with and one without a certain row"
    said = "one with and one without all rows of a certain patient"
    assert neighbours_in_words(ADD_REMOVE, "patient") == said


def test_a_release_is_the_first_or_has_earlier_ones() -> None:
    book = "the budget book of the publisher's machine"
    assert releases_in_words(0) == f"the first release of these rows in {book}"
    assert releases_in_words(1) == f"{book} has 1 earlier release of these rows"
    assert releases_in_words(2) == f"{book} has 2 earlier releases of these rows"


def test_only_relations_that_differ_are_told() -> None:
    assert mixed_in_words([], ADD_REMOVE) == mixed_in_words([ADD_REMOVE] * 2, ADD_REMOVE) == ""
    said = mixed_in_words([ZERO_OUT, ADD_REMOVE], ADD_REMOVE)
    assert said.startswith("earlier releases have add/remove-one and zero-out neighbours and this")


def test_every_mechanism_has_words() -> None:
    for mechanism in get_args(Mechanism):
        assert mechanism.split("-")[0] in mechanism_in_words(mechanism).lower().replace(
            "as the cited", "cited"
        )


def test_factors_are_rounded_up() -> None:
    assert [factor(e) for e in (0.0, 1.0, 2.0, 10.0, 10.5, 50.0)] == [
        "1.00", "2.72", "7.39", "22,026.47", "e^10.5", "e^50"
    ]  # fmt: skip
    assert float(factor(0.5)) >= 1.6487
    assert [number(0.98765), number(None)] == ["0.9877", "unbounded"]


def test_epsilons_that_alarm_are_explained() -> None:
    """Of a row and under replace-one, epsilon is larger than what stands beside it."""
    row, exchanged = spent_in_words("patient", ADD_REMOVE, 1e-6)
    assert "another of the same patient may train in its place" in row
    assert "not the stated guarantee" in exchanged
    assert spent_in_words("row", ADD_REMOVE, 1e-6) == [exchanged.replace("patient", "row")]
    assert spent_in_words("row", REPLACE_ONE, 1e-6) == []
    (large,) = spent_in_words("row", REPLACE_ONE, 1e-3)
    assert "publish each row as it is with the probability 0.001" in large
