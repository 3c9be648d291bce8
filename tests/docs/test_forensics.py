"""The tables of docs/evidence/forensics.md are those of the committed journals."""

import shutil

import pytest

from tests.docs.forensics_tables import CHOICES, PAGE, methods, parts, tables
from tests.docs.pages import ROOT


def test_the_page_has_tables_of_dpboost():
    assert "dpboost-2021" in methods(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("method", methods(PAGE.read_text(encoding="utf-8")))
def test_the_tables_are_those_of_the_journals(method):
    stated = parts(PAGE.read_text(encoding="utf-8"), method)[1].strip()
    assert stated == tables(method).strip(), "python -m tests.docs.forensics_tables writes them"
    assert stated.count("###") >= 1 or method == CHOICES
    assert "| - |" not in stated, "a hypothesis that was not run"


def test_a_changed_journal_changes_the_tables(tmp_path):
    """One dataset is enough: with fewer journals its tables have gaps, and differ."""
    shutil.copy(ROOT / "results" / "wine.parquet", tmp_path)
    assert tables("dpboost-2021", tmp_path) != tables("dpboost-2021")
