"""Sharing one budget between rounds: each composition is inverted exactly, none loses to adding."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprepro.privacy.composition import (
    ROUND_COMPOSITIONS,
    advanced_epsilon,
    choice_epsilon,
    rho_of,
    tree_epsilons,
    zcdp_epsilon,
)
from dprepro.privacy.ledger import TOLERANCE, Ledger, LedgerEntry
from dprepro.privacy.sensitivity import REPLACE_ONE

DELTA = 1e-5
GRID = pytest.mark.parametrize(
    ("rounds", "epsilon"), [(1, 1.0), (5, 0.05), (9, 0.25), (39, 1.0), (99, 0.1), (99, 5.0)]
)


def ledger(epsilon: float, *entries: tuple[str, float, int]) -> Ledger:
    """Return a ledger of (mechanism, pure epsilon a use, uses)."""
    kept = Ledger(epsilon, DELTA, REPLACE_ONE)
    for mechanism, each, uses in entries:
        scale = (2 if mechanism == "exponential" else 1) / each
        budget = (each * uses, 0.0)
        kept.add(LedgerEntry(mechanism, "x", 1.0, "max", scale, uses, budget))  # type: ignore[arg-type]
    return kept


@GRID
@pytest.mark.parametrize("composition", ROUND_COMPOSITIONS)
def test_choices_keep_within_the_budget(composition: str, rounds: int, epsilon: float) -> None:
    each = choice_epsilon(composition, rounds, epsilon, DELTA)
    assert each * rounds >= epsilon * (1 - 1e-12)
    assert ledger(epsilon, ("exponential", each, rounds)).spent_epsilon() <= epsilon + TOLERANCE


@GRID
@pytest.mark.parametrize("composition", ROUND_COMPOSITIONS)
def test_trees_keep_within_the_budget(composition: str, rounds: int, epsilon: float) -> None:
    split, label = tree_epsilons(composition, rounds, 7, 0.4, epsilon, DELTA)
    spent = ledger(epsilon, ("exponential", split, 7 * rounds), ("laplace", label, rounds))
    assert spent.spent_epsilon() <= epsilon + TOLERANCE


def test_each_composition_is_inverted() -> None:
    assert 99 * choice_epsilon("pure", 99, 1.0, 0.0) == pytest.approx(1.0)
    advanced = choice_epsilon("advanced", 99, 1.0, DELTA)
    assert advanced_epsilon(advanced, 99, DELTA) == pytest.approx(1.0, rel=1e-9)
    ranged = choice_epsilon("zcdp", 99, 1.0, DELTA)
    assert zcdp_epsilon(99 * ranged**2 / 8, DELTA) == pytest.approx(1.0, rel=1e-9)


def test_a_composition_is_never_inverted_beyond_the_budget() -> None:
    for epsilon in np.linspace(0.5, 2.0, 40):
        each = choice_epsilon("advanced", 99, epsilon, DELTA)
        assert advanced_epsilon(each, 99, DELTA) <= epsilon


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 40.0])
def test_rho_of_epsilon_of_rho_is_rho(epsilon: float) -> None:
    assert zcdp_epsilon(rho_of(epsilon, DELTA), DELTA) == pytest.approx(epsilon, rel=1e-9)


def test_zcdp_spends_everything_as_an_independent_accountant_sees_it() -> None:
    each = choice_epsilon("zcdp", 99, 1.0, DELTA)
    assert ledger(1.0, ("exponential", each, 99)).spent_epsilon() == pytest.approx(
        1.0, abs=TOLERANCE
    )


def test_many_rounds_gain_by_better_theorems_and_few_rounds_add() -> None:
    many = [choice_epsilon(c, 99, 1.0, DELTA) for c in ROUND_COMPOSITIONS]
    assert many[0] < many[1] < many[2]
    assert choice_epsilon("advanced", 5, 1.0, DELTA) == 0.2
    assert tree_epsilons("zcdp", 1, 1, 0.5, 0.1, DELTA) == (0.05, 0.05)


def test_an_exponential_choice_is_concentrated_by_its_range() -> None:
    """Renyi divergence of order a is at most a eps^2 / 8, eps the range of the moves."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(300):
        utility, move = rng.normal(0, 3, 4), rng.uniform(0, rng.choice([0.05, 0.5, 3.0]), 4)
        p, q = (np.exp(u) / np.exp(u).sum() for u in (utility, utility + move))
        rho = np.ptp(move) ** 2 / 8
        for order in (1.5, 4.0, 30.0):
            divergence = math.log(np.sum(p**order * q ** (1 - order))) / (order - 1)
            assert divergence <= order * rho + 1e-12
            largest = max(largest, divergence / (order * rho))
    assert largest > 0.7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("best", 5, 1.0, DELTA), "composition must be one of 'pure', 'advanced', 'zcdp'"),
        (("advanced", 5, 1.0, 0.0), "'advanced' needs a delta between 0 and 1, got 0.0"),
        (("zcdp", 5, 1.0, 1.0), "'zcdp' needs a delta between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, int, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choice_epsilon(*arguments)
    composition, rounds, epsilon, delta = arguments
    with pytest.raises(ValueError, match=message):
        tree_epsilons(composition, rounds, 3, 0.5, epsilon, delta)
