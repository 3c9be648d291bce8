"""What people call the unit of privacy is what every text of a release calls it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.release.budget_book import Entry
from dprepro.release.guarantee_words import titled
from dprepro.report.model_page import content_of
from tests.commands import dprepro
from tests.private_table import rows_of, write_table
from tests.release.ledgers import entry, gaussian_ledger
from tests.report.model_page.models import model

COLUMN = "ward"
LIMIT = "budget_limit: {epsilon: 1.2, delta: 1e-5}"
KEYS = f"unit: {COLUMN}\nrows_per_unit: 3\nunit_title: nurse\n{LIMIT}\n"


def owned(folder: Path, rows: int) -> Path:
    """Write a table whose wards are units, and return its card."""
    card = write_table(folder, "binary", rows_of("binary", rows), KEYS).with_name("patients.yaml")
    card.write_text(card.read_text().replace(f"  {COLUMN}: {{categories: [a, b, c]}}\n", ""))
    return card


def test_no_text_of_a_release_names_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREPRO_STATE", str(tmp_path / "state"))
    card = owned(tmp_path, 60)
    out = tmp_path / "out"
    options = ("--delta", "1e-5", "--yes", "-o")
    said = [dprepro("release", card, "--epsilon", 1, *options, out)]
    said += [dprepro("budget", card), dprepro("ledger", out)]
    said += [dprepro("budget", card, "--plan", "--epsilon", "0.1", "--delta", "1e-5")]
    beyond = CliRunner().invoke(
        app, ["release", str(card), "--epsilon", "1.2", *options, str(tmp_path / "more")]
    )
    assert "in all for each nurse" in str(beyond.exception)
    dprepro("show", out / "model.json", "--output", tmp_path / "page.html")
    pages = [*out.glob("*.html"), out / "statement.md", out / "README.md", tmp_path / "page.html"]
    said += [
        re.sub(
            r"(?s)<(script|style).*?</\1>", "", path.read_text(encoding="utf-8")
        )  # the model file for programs
        for path in pages
        if path.is_file()
    ]
    said += [str(beyond.exception), dprepro("withdraw", out, "--reason", "a test")]
    for text in said:
        assert not re.search(rf"\b{COLUMN}\b", text), text
    assert sum("nurse" in text for text in said) >= 8


def test_without_the_card_the_book_names_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = gaussian_ledger(1.0, unit=COLUMN)
    monkeypatch.setattr(Entry, "spent", property(lambda _: ledger))
    card = owned(tmp_path, 9)
    assert entry(str(tmp_path / "gone.yaml")).unit_title == COLUMN
    assert entry(str(card)).unit_title == "nurse"
    ledger.unit = "other"
    assert entry(str(card)).unit_title == "other"


def test_a_ledger_is_shown_with_the_title_and_is_not_changed() -> None:
    ledger = gaussian_ledger(1.0, unit=COLUMN)
    ledger.assumed_public.append(f"the number of rows that are used (at most 1 of each {COLUMN})")
    shown = titled(ledger, "nurse")
    assert (shown.unit, ledger.unit) == ("nurse", COLUMN)
    assert shown.assumed_public[-1].endswith("of each nurse)")
    assert ledger.assumed_public[-1].endswith(f"of each {COLUMN})")
    assert titled(ledger, "") is ledger


def test_the_page_of_a_model_has_the_title() -> None:
    made = model(origin={"unit": COLUMN, "rows_per_unit": 2})
    made.ledger_ = gaussian_ledger(1.0, unit=COLUMN, rows=2)
    for title, whose in (("", COLUMN), ("nurse", "nurse")):
        content = content_of(made, "a model", "model.json", made.origin_, title)
        assert f"per {whose} with at most 2 rows" in content.guarantee.verdict
        assert ("unit", whose) in content.origin
