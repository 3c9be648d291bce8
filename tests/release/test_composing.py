from __future__ import annotations

import math

import pytest

from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from dprepro.release.book import total_of
from tests.release.ledgers import gaussian_ledger


def test_gaussian_releases_compose_exactly() -> None:
    """mu of Gaussian DP adds up in squares: Dong, Roth, Su 2022, Corollary 3.3."""
    total = total_of([gaussian_ledger(1.0), gaussian_ledger(0.5)], delta=1e-6)
    wanted = epsilon_of(math.hypot(mu_of(1.0, 1e-6), mu_of(0.5, 1e-6)), 1e-6)
    assert total.budget.epsilon == pytest.approx(wanted, rel=1e-3)
    assert wanted <= total.budget.epsilon + 1e-9
    assert total.by_accountant
    assert total.adjacency is ADD_REMOVE


def test_one_release_spends_what_its_ledger_says() -> None:
    ledger = gaussian_ledger(2.0)
    assert total_of([ledger]).budget == pytest.approx((ledger.spent_epsilon(), 1e-6), rel=1e-6)


def test_at_the_sum_of_the_deltas_it_is_never_more_than_basic_composition() -> None:
    ledgers = [gaussian_ledger(e) for e in (0.1, 0.5, 1.0)]
    total = total_of(ledgers)
    assert total.budget.delta == pytest.approx(3e-6)
    assert total.budget.epsilon <= sum(ledger.spent_epsilon() for ledger in ledgers)


def test_two_relations_are_counted_under_replace_one() -> None:
    ledgers = [gaussian_ledger(1.0), gaussian_ledger(1.0, adjacency=ZERO_OUT)]
    total = total_of(ledgers, delta=1e-6)
    assert total.adjacency is REPLACE_ONE
    assert total.budget.epsilon > total_of([ledgers[0]] * 2, delta=1e-6).budget.epsilon


def test_no_delta_leaves_gaussian_noise_without_a_bound() -> None:
    assert total_of([gaussian_ledger()], delta=0.0).budget.epsilon == math.inf


def test_units_add_up_among_themselves_and_for_rows() -> None:
    patients = [gaussian_ledger(1.0, unit="patient", rows=5)] * 2
    as_rows = [gaussian_ledger(1.0)] * 2
    of_patients = total_of(patients, "patient", 1e-6).budget.epsilon
    assert of_patients == pytest.approx(total_of(as_rows, delta=1e-6).budget.epsilon, rel=1e-3)
    of_row = total_of(patients, "row", 1e-6).budget.epsilon
    assert of_row < of_patients / 2
    alone = [ledger.spent_epsilon_of_row() for ledger in patients]
    assert alone[0] < of_row <= sum(alone) + 1e-6
    assert total_of(patients[:1], "row").budget.epsilon == pytest.approx(alone[0], rel=1e-6)


def test_releases_for_rows_say_nothing_of_patients() -> None:
    ledgers = [gaussian_ledger(), gaussian_ledger(unit="patient", rows=5)]
    assert total_of(ledgers, "patient").budget.epsilon == math.inf
    assert math.isfinite(total_of(ledgers, "row").budget.epsilon)


def test_releases_for_other_units_of_the_same_name_say_nothing_of_these() -> None:
    ledgers = [gaussian_ledger(unit="patient", rows=5)] * 2
    assert total_of(ledgers, "patient", same_units=False).budget.epsilon == math.inf
    assert total_of(ledgers, "row", same_units=False) == total_of(ledgers, "row")
