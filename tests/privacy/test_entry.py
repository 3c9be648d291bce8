"""One entry of a ledger: its budget, and what it says of replace-one neighbours."""

from dataclasses import replace

import pytest

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT
from tests.privacy.entries import cited


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
