from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data.card_parts import BudgetLimit
from dprepro.errors import DpreproError
from dprepro.release.book import Entry, read_book, reserve
from dprepro.release.limits import limits_of
from tests.release.ledgers import entry, gaussian_ledger

LIMIT = BudgetLimit(epsilon=2, delta=1e-6)
PATIENTS = gaussian_ledger(1.0, unit="patient", rows=2)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def of_patients(
    card: str = "/a", rows: str = "1", values: str = "v", column: str = "id", **fields: object
) -> Entry:
    tokens = (rows, f"unit values {values}", f"unit column {column}")
    return entry(card, tokens, **{"limit": LIMIT, **fields})


@pytest.mark.parametrize(
    "row_release",
    [entry("/b", ("1",)), entry("/b", ("1",), limit=LIMIT), entry("/a", ("1",), limit=LIMIT)],
    ids=["no limit", "limit for rows", "same card, now for rows"],
)
def test_a_limit_for_patients_refuses_a_release_for_rows(row_release: Entry) -> None:
    reserve(of_patients(), PATIENTS)
    with pytest.raises(DpreproError, match=r"for each patient, .*only for each patient"):
        reserve(row_release, gaussian_ledger(0.01))
    assert len(read_book().entries) == 1


def test_an_owner_who_takes_back_all_limits_of_a_card_may_release_for_rows() -> None:
    reserve(of_patients(), PATIENTS)
    reserve(entry("/a", ("1",)), gaussian_ledger(0.01))
    assert limits_of(read_book().entries) == []


def test_a_limit_for_rows_bounds_releases_for_patients() -> None:
    reserve(entry("/a", ("1",), limit=LIMIT), gaussian_ledger(1.0))
    reserve(of_patients("/b", limit=None), PATIENTS)
    with pytest.raises(DpreproError, match=r"for each row, .*would be spent"):
        reserve(of_patients("/b", limit=None), gaussian_ledger(6.0, unit="patient", rows=2))


def test_units_of_one_name_with_other_values_are_other_units() -> None:
    reserve(of_patients(), PATIENTS)
    with pytest.raises(DpreproError, match="nothing bounds"):
        reserve(of_patients("/b", values="w", column="visit"), PATIENTS)
    with pytest.raises(DpreproError, match="nothing bounds"):  # the values decide
        reserve(of_patients("/b", values="w", column="id"), PATIENTS)
    reserve(of_patients("/b", column="renamed"), PATIENTS)


def test_units_of_a_corrected_file_are_the_same_if_they_are_of_the_same_column() -> None:
    reserve(of_patients(), PATIENTS)
    with pytest.raises(DpreproError, match="nothing bounds"):
        reserve(of_patients(rows="2", values="w", column="visit"), PATIENTS)
    total = reserve(of_patients(rows="2", values="w"), PATIENTS)
    assert 1 < total.budget.epsilon < 2


def test_a_limit_whose_delta_is_too_small_says_so() -> None:
    with pytest.raises(DpreproError, match=r"at delta 0 nothing bounds .* holds at this delta"):
        reserve(of_patients(limit=BudgetLimit(epsilon=2)), PATIENTS)
