"""Words about a guarantee say what its definition says, and no more."""

from __future__ import annotations

from typing import get_args

import pytest
from scipy.stats import norm

from dprepro.privacy.gdp import delta_of
from dprepro.privacy.ledger_entry import Mechanism
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency
from dprepro.release.guarantee_words import (
    factor,
    is_bounded,
    mechanism_in_words,
    mixed_in_words,
    neighbours_in_words,
    number,
    odds_in_words,
    recognised,
    releases_in_words,
    unit_in_words,
)


def test_a_unit_is_named_with_its_rows() -> None:
    assert unit_in_words("row", 1) == "one row"
    assert unit_in_words("patient", 3) == "one patient, of whose rows up to 3 are used"
    assert unit_in_words("nr", 1, "patient") == "one patient, of whose rows one is used"
    assert unit_in_words("row", 1, "person") == "one person, to whom one row belongs"


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
    said = "one with and one without all rows of one patient"
    assert neighbours_in_words(ADD_REMOVE, "patient") == said
    assert neighbours_in_words(ADD_REMOVE, "patient_nbr", "patient") == said


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


def test_no_test_of_gaussian_noise_recognises_more_than_is_said() -> None:
    """The line of (epsilon, delta) touches the ROC curve of the mechanism, and is never below."""
    for epsilon, mu in ((0.1, 0.05), (1.0, 0.4), (1.0, 2.0), (4.0, 1.0)):
        delta = delta_of(epsilon, mu)
        touching = float(norm.cdf(-epsilon / mu - mu / 2))
        for wrong in (touching, 1 - float(norm.cdf(norm.ppf(touching) + mu)), 0.01, 0.05, 0.5, 0.9):
            most = float(norm.cdf(norm.ppf(wrong) + mu))
            assert recognised(epsilon, delta, wrong) >= most - 1e-12
        assert recognised(epsilon, delta, touching) == pytest.approx(
            float(norm.cdf(norm.ppf(touching) + mu)), abs=1e-12
        )


def test_without_epsilon_a_test_is_a_guess_and_with_a_large_one_it_may_know_all() -> None:
    assert recognised(0.0, 0.0, 0.05) == 0.05
    assert recognised(0.0, 0.1, 0.05) == pytest.approx(0.15)
    assert recognised(1000.0, 0.0, 0.05) == 1.0


@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_odds_are_those_of_the_definition(adjacency: Adjacency) -> None:
    sentence, example = odds_in_words(1.0, 1e-6, adjacency, "patient_nbr", "patient")
    assert "at most 2.72 times (e^epsilon)" in sentence
    assert "plus 1e-06 (delta, 1 in 1,000,000)" in sentence
    assert "the rows of one patient, whichever, had " in sentence
    assert "at most 13.6\u00a0%. A guess" in example
    assert "(delta, 1 in 100,000)" in odds_in_words(1.0, 1e-5, adjacency, "row")[0]
    assert "(delta, 1 in 33,333)" in odds_in_words(1.0, 3e-5, adjacency, "row")[0]
    assert "delta" not in odds_in_words(1.0, 0.0, adjacency, "row")[0]


def test_a_large_delta_is_warned_of() -> None:
    assert len(odds_in_words(1.0, 1e-4, ADD_REMOVE, "row")) == 2
    large = odds_in_words(1.0, 1e-3, REPLACE_ONE, "row")[-1]
    assert "publish each row as it is with the probability 0.001" in large
