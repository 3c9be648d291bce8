"""One entry of a ledger: its budget, and what it says of replace-one neighbours."""

import math
from dataclasses import replace

import pytest

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT
from tests.privacy.entries import cited, exponential, flipped, gaussian, laplace


def test_an_entry_keeps_any_pair_as_a_budget():
    entry = LedgerEntry("laplace", "a count", 1, "L1", scale=2, uses=2, budget=(1, 0))
    assert isinstance(entry.budget, PrivacyBudget)
    assert Ledger(2.0, 1e-6, ZERO_OUT, [entry]).budget == (2.0, 1e-6)
    assert entry.under_replace_one().budget == entry.budget
    cited = replace(entry, mechanism="cited").under_replace_one().budget
    assert cited == PrivacyBudget(2, 0.0)


@pytest.mark.parametrize(
    ("stated", "doubled"),
    [
        ((0.5, 0.0), (1.0, 0.0)),
        ((5000.0, 0.0), (10_000.0, 0.0)),
        ((20.0, 1e-6), (40.0, 1.0)),
        ((5000.0, 1e-6), (10_000.0, 1.0)),
    ],
)
def test_group_privacy_of_two_changes_is_known_at_any_epsilon(stated, doubled):
    """(1 + e^epsilon) delta: no float at 5000, above 1 at 20."""
    assert cited(*stated).under_replace_one().budget == PrivacyBudget(*doubled)


@pytest.mark.parametrize("entry", [gaussian(8.0), laplace(4.0), exponential(4.0), flipped(4.0)])
def test_several_rows_of_one_owner_move_an_answer_by_the_sum_of_their_moves(entry):
    assert entry.for_group(1) is entry
    grouped = replace(entry, replace_one=1.5).for_group(3)
    assert (grouped.sensitivity, grouped.replace_one, grouped.scale) == (3.0, 4.5, entry.scale)
    assert grouped.pure_epsilon == pytest.approx(3 * entry.pure_epsilon)
    assert entry.for_group(3).under_replace_one().sensitivity == 6.0


def test_an_exchanged_owner_may_own_fewer_rows():
    """Rows that have no counterpart come or go, which can cost more than an exchange."""
    entry = replace(laplace(4.0), replace_one=0.5)
    assert entry.for_group(2).under_replace_one().sensitivity == 2.0


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 3.0])
def test_group_privacy_adds_the_delta_of_every_change(epsilon):
    """One change more multiplies what delta was by e^epsilon, and adds its own."""
    delta = 0.0
    for changes in range(1, 6):
        delta = delta * math.exp(epsilon) + 1e-12
        grouped = cited(epsilon, 1e-12).for_group(changes).budget
        assert grouped == pytest.approx((changes * epsilon, delta), rel=1e-6)


def test_group_privacy_of_nothing_and_of_far_too_much():
    assert cited(0.0, 1e-6).for_group(3).budget == pytest.approx((0.0, 3e-6))
    assert cited(2.0, 0.0).for_group(10**6).budget == PrivacyBudget(2e6, 0.0)
    assert cited(2.0, 1e-300).for_group(10**6).budget == PrivacyBudget(2e6, 1.0)
    pairs = cited(0.5, 1e-9).for_group(3).under_replace_one().budget
    assert pairs == pytest.approx(cited(0.5, 1e-9).for_group(6).budget)


def test_the_rho_of_one_use():
    """Gaussian 1 / (2 m^2), pure epsilon^2 / 2, and a quarter of it where losses have a range."""
    entries = gaussian(4.0), laplace(4.0), flipped(4.0), exponential(4.0), cited(0.5)
    assert [entry.rho for entry in entries] == [1 / 32, 1 / 32, 1 / 8, 1 / 32, 1 / 8]
    assert {entry.sampling for entry in entries} == {1.0}
    assert replace(gaussian(4.0), sampling=0.5).rho == cited(0.5, 1e-6).rho == math.inf


def test_rows_that_are_sampled_one_by_one_say_nothing_of_their_owner():
    sampled = replace(gaussian(8.0), sampling=0.1)
    assert sampled.for_group(1) is sampled
    with pytest.raises(ValueError, match="one row for each unit"):
        sampled.for_group(2)
