"""The pages of DP-EBM+ hold the tables that benchmarks/ebm_plus_tables.py makes of the journals."""

from __future__ import annotations

import pytest

from tests.benchmark import program
from tests.docs.pages import ROOT

tables = program("ebm_plus_tables")


@pytest.mark.parametrize("page", tables.BLOCKS)
def test_a_page_has_the_tables_of_the_journals(page: str) -> None:
    assert tables.filled(page) == (ROOT / page).read_text(encoding="utf-8")


def test_a_rival_with_the_better_mean_is_bold() -> None:
    shown = {row[2]: row for row in map(split, tables.beside("auc"))}
    lines = [split(line) for line in tables.beside("auc")[2:]]
    bold = []
    for first in (0, 12):  # Adult and credit fraud; on Telco two means round to the same
        for mean, other in zip(lines[first + 1][3:], lines[first + 3][3:], strict=True):
            bold.append(other.startswith("**"))
            assert (float(other.strip("*")) > float(mean)) == bold[-1]
    assert any(bold)
    assert not all(bold)
    assert {"DP-EBM", "DP-EBM+", "best rival", "which"} <= shown.keys()


def split(line: str) -> list[str]:
    return ["", *(cell.strip() for cell in line.strip("|").split("|"))]


def test_the_sentences_count_the_cells_of_the_table() -> None:
    lines = tables.beside("auc", "rmse")[2:]
    assert len(lines) == 7 * 6
    behind = sum(line.count("**") // 2 for line in lines)
    better = sum(
        float(cell) < 0.05 for line in lines if "p, best rival" in line for cell in split(line)[3:]
    )
    assert f"better in {better} of 42 cells" in tables.counts()[1]
    assert f"the worse mean in {behind} " in tables.counts()[1]


def test_a_page_without_its_block_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tables.BLOCKS, "docs/glossary.md", {"small": tables.small})
    with pytest.raises(SystemExit, match="expected one block 'small', found 0"):
        tables.filled("docs/glossary.md")
