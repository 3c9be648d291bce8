"""What a file says of a ledger, and what is made of a file that says nothing."""

from dataclasses import replace

import pytest

from dprepro.additive.record import (
    BEFORE_EXACT_NOISE,
    ledger_from_json,
    ledger_to_json,
    refuse_countless,
)
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.report.ledgers import verdict
from dprepro.runtime.errors import DpreproError

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


def test_the_unit_of_a_ledger_comes_back():
    made = replace(ledger(), unit="patient", rows_per_unit=2)
    assert ledger_from_json(ledger_to_json(made)) == made
    assert made.holds
    assert not replace(made, rows_per_unit=3).holds


def test_the_ledger_of_a_file_written_before_units_is_about_rows():
    values = ledger_to_json(ledger())
    assert (values.pop("unit"), values.pop("rows_per_unit")) == ("row", 1)
    assert ledger_from_json(values) == ledger()


@pytest.mark.parametrize(
    ("unit", "rows", "said"),
    [
        ("patient", 0, "rows_per_unit must be an integer from 1"),
        ("patient", -1, "rows_per_unit must be an integer from 1"),
        ("patient", 10**400, "rows_per_unit"),
        ("patient", True, "rows_per_unit"),
        ("patient", 2.0, "rows_per_unit"),
        ("patient", "2", "rows_per_unit"),
        ("", 1, "unit must name a column"),
        (None, 1, "unit"),
        ("row", 2, "a row is 1 row"),
        ("patient", 1000, "more than any promise"),
    ],
)
def test_a_file_with_an_impossible_unit_is_refused(unit, rows, said):
    values = ledger_to_json(ledger()) | {"unit": unit, "rows_per_unit": rows}
    with pytest.raises(ValueError, match=said):
        ledger_from_json(values)


@pytest.mark.parametrize(
    "change", [{"adjacency": "replace-one"}, {"sampling": 0.5, "mechanism": "gaussian"}]
)
def test_a_file_cannot_claim_several_rows_where_nothing_is_known_of_them(change):
    values = ledger_to_json(ledger()) | {"unit": "patient", "delta": 1e-6}
    target = values if "adjacency" in change else values["entries"][0]
    target |= change
    assert ledger_from_json(values).rows_per_unit == 1
    with pytest.raises(ValueError, match="one row for each unit"):
        ledger_from_json(values | {"rows_per_unit": 2})


def test_keys_are_counted_before_anything_is_read_but_not_within_a_text():
    many = 1_500_001
    refuse_countless('["' + '\\":' * many + '"]', "file")
    with pytest.raises(DpreproError, match="file: more than 1,500,000 keys"):
        refuse_countless('{"a":1}' * many, "file")
