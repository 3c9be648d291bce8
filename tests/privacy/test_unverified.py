import math

import pytest

from dprepro.privacy.guarantee_status import is_unverified
from dprepro.privacy.ledger import Ledger, LedgerEntry


def test_an_empty_ledger_backs_no_finite_epsilon():
    ledger = Ledger(1.0, 0.0, "replace-one")
    assert is_unverified(1.0, ledger.summary())
    assert ledger.is_empty
    assert not ledger.holds
    assert not ledger.summary()["holds"]
    ledger.add(LedgerEntry("laplace", "a count", 1, "l1", scale=1, uses=1, budget=(1, 0)))
    assert not is_unverified(1.0, ledger.summary())
    assert ledger.holds


@pytest.mark.parametrize("ledger", [None, Ledger(math.inf, 0.0, "replace-one").summary()])
def test_without_privacy_there_is_nothing_to_verify(ledger):
    assert not is_unverified(math.inf, ledger)
    assert is_unverified(1.0, ledger)


def test_a_ledger_without_an_epsilon_holds_what_it_says():
    assert Ledger(math.inf, 0.0, "replace-one").holds
