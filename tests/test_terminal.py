"""One module makes the report's tables for terminals."""

import ast
import io
from pathlib import Path

import pytest
from rich.console import Console

from dprepro.stacked import StackedColumn
from dprepro.terminal import bare_table, below, console, indented, prose_table, stacked_table

REPORT = Path(__file__).resolve().parents[1] / "dprepro" / "report"
MAKERS = {"rich.table", "rich.console", "rich.box", "rich.padding", "rich.panel", "rich.columns"}


def written(part, width=60):
    shown = Console(width=width, file=io.StringIO())
    shown.print(part)
    return [line.rstrip() for line in shown.file.getvalue().splitlines()]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", sorted(REPORT.rglob("*.py")), ids=lambda p: p.stem)
def test_no_module_of_the_report_makes_tables_or_consoles_itself(path):
    assert not MAKERS & set(imported(path))


def test_the_rule_sees_an_import():
    assert "rich.table" in set(imported(Path(__file__).parents[1] / "dprepro" / "terminal.py"))


def test_a_bare_table_sets_words_left_and_figures_right():
    table = bare_table(["name"], ["value"], "Title")
    table.add_row("a", "1.25")
    table.add_row("longer", "10")
    assert written(table) == ["Title", " name    value", " a        1.25", " longer     10"]


def test_a_flush_table_begins_at_the_edge_and_breaks_words_only_if_it_may():
    flush = bare_table(["name"], ["value"], is_flush=True, wraps=True)
    flush.add_row("a" * 30, "1")
    lines = written(flush, 20)
    assert lines[0].startswith("name")
    assert sum(line.count("a") for line in lines[1:]) == 30


def test_sentences_stand_between_lines_and_are_folded():
    table = prose_table("Claims", [("Claim", 3), ("Verdict", None)])
    table.add_row("one two three four five six seven", "holds")
    table.add_row("b", "fails")
    lines = written(table, 30)
    assert lines[0] == "Claims"
    assert [line.split()[-1] for line in lines if "holds" in line or "fails" in line] == [
        "holds",
        "fails",
    ]
    assert max(map(len, lines)) <= 30
    assert sum(line == "" for line in lines) >= 2, "an empty line between the rows"


def test_parts_stand_below_one_another():
    table = stacked_table("T", [StackedColumn("x", ["1", "2"])], 1)
    lines = written(below("first", indented("second"), table))
    assert lines[:4] == ["first", "", "  second", ""]
    assert lines[4].strip() == "T"


@pytest.mark.parametrize("terminal", [True, False])
def test_columns_sets_the_width_of_terminals_files_and_pipes(monkeypatch, terminal):
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    if not terminal:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert console().width == 70


def test_without_columns_a_file_is_wide(monkeypatch):
    for name in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert console().width == 180


@pytest.mark.parametrize("columns", ["0", "-5", "wide", "", "²"])
def test_columns_that_are_no_width_are_not_heard(monkeypatch, columns):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", columns)
    assert console().width == 180
