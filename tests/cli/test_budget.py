from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dprepro.data.card import load_card
from dprepro.data.card_parts import BudgetLimit
from dprepro.data.register import register_path
from dprepro.release.budget_book import reserve, settle
from dprepro.release.rows import files_of, known_rows
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro
from tests.private_table import rows_of, write_table
from tests.release.ledgers import entry, gaussian_ledger


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))


def test_an_empty_book_is_said() -> None:
    assert "nothing was released yet" in dprepro("budget")


def unfolded(text: str) -> list[str]:
    """Return the lines of a book before they were folded to the width of the terminal."""
    return text.replace("\n      ", " ").splitlines()


def test_all_releases_of_a_dataset_are_listed_with_what_they_spend_together() -> None:
    names = []
    for status in ("released", "cancelled", "reserved"):
        made = entry()
        reserve(made, gaussian_ledger(1.0))
        names.append(made.name)
        if status != "reserved":
            settle(made.name, status)  # type: ignore[arg-type]
    reserve(entry("/other", ("2",), dataset="clients"), gaussian_ledger(0.5))
    said = dprepro("budget")
    lines = unfolded(said)
    assert lines[0] == "patients"
    assert lines[1].endswith("for each row: released")
    assert lines[2].endswith("does not count")
    assert lines[3].endswith("counts, as its noise may have been drawn")
    assert "in all: (epsilon 1.4" in lines[4]  # of two, not of three
    assert "clients" in lines
    assert "which is private" in lines[-1]


def test_the_same_values_in_another_format_are_found(tmp_path: Path) -> None:
    card = write_table(tmp_path, "binary", rows_of("binary", 5)).with_name("patients.yaml")
    made, _, unknown = known_rows(str(card), load_card(card), None)
    assert unknown == ""
    reserve(entry("/a", tuple(made)), gaussian_ledger())
    copy = tmp_path / "copy" / "patients.yaml"
    copy.parent.mkdir()
    copy.write_text(card.read_text(encoding="utf-8").replace("patients.csv", "patients.parquet"))
    table = pd.read_csv(tmp_path / "patients.csv")
    table.to_parquet(copy.with_name("patients.parquet"))
    assert "for each row: not finished" in " ".join(unfolded(dprepro("budget", copy)))
    table.drop(columns="y").to_parquet(copy.with_name("patients.parquet"))
    said = dprepro("budget", copy)
    assert "known by path and file only" in said
    assert "no release is known" in said
    assert "nothing was released" not in said


def test_there_is_a_total_for_every_unit() -> None:
    limit = BudgetLimit(epsilon=2, delta=1e-6)
    reserve(entry(limit=limit), gaussian_ledger(1.0))
    reserve(entry("/b"), gaussian_ledger(0.5, unit="patient", rows=2))
    said = unfolded(dprepro("budget"))
    assert any(line.endswith("add/remove-one, for each row") for line in said)
    assert any(line.endswith("in all: no bound is known, for each patient") for line in said)
    assert "  limit of patients: epsilon 2, delta 1e-06, for each row" in said


def test_a_register_that_is_lost_is_stated_by_its_owner() -> None:
    reserve(entry(), gaussian_ledger())
    register_path().unlink()
    with pytest.raises(DpreproError, match="budget --register-lost"):
        dprepro("budget")
    assert "1 release(s) now count against every dataset" in dprepro("budget", "--register-lost")
    assert "patients" in dprepro("budget")


def test_a_card_shows_the_releases_of_its_rows(tmp_path: Path) -> None:
    card = write_table(tmp_path, "binary", rows_of("binary", 5)).with_name("patients.yaml")
    assert "nothing was released" in dprepro("budget", card)
    reserve(entry("/a", tuple(files_of(load_card(card), None))), gaussian_ledger())
    reserve(entry("/b", ("unknown",), dataset="clients"), gaussian_ledger())
    said = dprepro("budget", card)
    assert "patients" in said
    assert "clients" not in said


def test_lines_go_on_below_themselves_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    made = entry()
    reserve(made, gaussian_ledger(1.0))
    whole = dprepro("budget")
    monkeypatch.setenv("COLUMNS", "60")
    narrow = dprepro("budget")
    assert narrow.split() == whole.split()
    assert all(len(line) <= 60 for line in narrow.splitlines() if "/" not in line)
