"""What a file says of a ledger, and what is made of a file that says nothing."""

from dataclasses import replace

import pytest

from dprepro.additive.record import BEFORE_EXACT_NOISE, ledger_from_json, ledger_to_json
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.report.write.ledgers import verdict

ENTRY = LedgerEntry("laplace", "a sum", 1.0, "L1", 2.0, 1, (0.5, 0.0))
REAL = "in real arithmetic (it lists floating point)"


def ledger(*floating_point):
    return Ledger(1.0, 0.0, ZERO_OUT, [ENTRY], floating_point=list(floating_point))


@pytest.mark.parametrize("listed", [(), ("a sum: float32",)])
def test_what_is_in_floating_point_comes_back(listed):
    made = ledger(*listed)
    assert ledger_from_json(ledger_to_json(made)) == made
    assert (REAL in verdict(made)) == bool(listed)


def test_the_ledger_of_a_file_written_before_noise_was_exact_says_so():
    """It has no list of what is in floating point, which must not read as none."""
    values = ledger_to_json(ledger())
    assert values.pop("floating_point") == []
    loaded = ledger_from_json(values)
    assert loaded == replace(ledger(), floating_point=[BEFORE_EXACT_NOISE])
    assert loaded.holds
    assert REAL in verdict(loaded)
