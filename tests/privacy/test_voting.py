"""Votes: what they cost by an independent accountant, and that no more could be had."""

import pytest

from dprepro.privacy.composition import affordable_votes
from dprepro.privacy.ledger import Ledger, LedgerEntry


def spent(votes, rate, epsilon, delta):
    entry = LedgerEntry("laplace", "votes", 1.0, "L1", 1 / rate, 2 * votes, (epsilon, delta))
    return Ledger(epsilon, delta, "replace-one", [entry]).spent_epsilon()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_the_votes_keep_within_the_budget_and_half_as_many_more_would_not(epsilon, rate):
    votes = affordable_votes(rate, epsilon, 1e-5)
    # A single vote at rate 0.2 costs 0.4: there a budget of 0.1 buys none.
    assert (votes == 0) == ((epsilon, rate) == (0.1, 0.2))
    paid = spent(votes, rate, epsilon, 1e-5) if votes else 0.0
    assert paid <= epsilon < spent(3 * votes // 2 + 1, rate, epsilon, 1e-5)


def test_without_a_delta_epsilons_add_up():
    assert affordable_votes(0.05, 1.0, 0.0) == 10
    assert affordable_votes(1.0, 1.9, 0.0) == 0
