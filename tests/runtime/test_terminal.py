"""One module makes the report's tables for terminals."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path

import pytest
from rich import box
from rich.console import Console
from rich.progress import TextColumn
from rich.text import Text

from dprepro.runtime.terminal import (
    BareTable,
    PlainConsole,
    Stacked,
    StackedColumn,
    aligned_list,
    below,
    console,
    indented,
    progress_bar,
    stacked_table,
    wrapped,
)
from dprepro.runtime.text import visible

REPORT = Path(__file__).resolve().parents[2] / "dprepro" / "report"
# A module may name the types of rich.console; who makes a console is asked below.
MAKERS = {"rich.table", "rich.console.Group", "rich.box", "rich.padding", "rich.panel"}
MAKERS |= {"rich.columns"}


def written(part, width=60):
    shown = Console(width=width, file=io.StringIO())
    shown.print(part)
    return [line.rstrip() for line in shown.file.getvalue().splitlines()]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_module_of_the_report_makes_tables_or_consoles_itself():
    found = {str(path): MAKERS & set(imported(path)) for path in REPORT.rglob("*.py")}
    assert len(found) > 20
    assert {name: made for name, made in found.items() if made} == {}


def test_the_rule_sees_an_import():
    path = Path(__file__).parents[2] / "dprepro" / "runtime" / "terminal.py"
    assert "rich.box" in set(imported(path))


def test_consoles_are_made_in_one_module_and_nothing_is_written_as_markup():
    """As markup, a name such as [red] or :smile: would be read as a colour or a picture."""
    for path in REPORT.parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        made = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = {node.id for node in made if isinstance(node, ast.Name)}
        assert not names & {"Console", "TextColumn"} or path.name in {"terminal.py", "display.py"}
        assert "rich.markup" not in set(imported(path)), path
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert not [
            t for t in texts if isinstance(t, str) and re.search(r"\[/?(bold|dim|red)\b", t)
        ]


def test_a_progress_bar_shows_a_name_as_it_is():
    screen = PlainConsole(width=200, file=io.StringIO(), force_terminal=True, color_system=None)
    with progress_bar(screen, TextColumn("{task.total}", markup=False)) as bar:
        bar.add_task("[red]:smile:\x1b]0;t\x07", total=1)
    assert r"[red]:smile:\x1b" in screen.file.getvalue()


def test_a_bare_table_sets_words_left_and_figures_right():
    table = BareTable(["name"], ["value"], "Title")
    table.add_row("a", "1.25")
    table.add_row("longer", "10")
    assert written(table) == ["Title", " name    value", " a        1.25", " longer     10"]


def test_a_flush_table_begins_at_the_edge_and_breaks_words_only_if_it_may():
    flush = BareTable(["name"], ["value"], is_flush=True, wraps=True)
    flush.add_row("a" * 30, "1")
    lines = written(flush, 20)
    assert lines[0].startswith("name")
    assert sum(line.count("a") for line in lines[1:]) == 30


@pytest.mark.parametrize("width", [40, 60, 120])
def test_a_list_cuts_no_word_and_wraps_the_last_cell(width):
    rows = [("a", "12", "some words that make up a title"), ("long-" * 9 + "name", "3", "short")]
    lines = aligned_list(rows, width, figures=[1])
    text = " ".join(" ".join(lines).split())
    assert text == "a 12 some words that make up a title " + "long-" * 9 + "name 3 short"
    assert all(len(line) <= width for line in lines if "long-" not in line)
    assert aligned_list([], width) == []


def test_a_list_has_its_cells_below_each_other_and_figures_right():
    assert aligned_list([("a", "12", "x"), ("bcd", "3", "y")], 40, figures=[1]) == [
        "a    12  x",
        "bcd   3  y",
    ]


def test_a_path_stays_whole_where_lines_are_wrapped():
    path = "/a/very/long/path/of/a/file"
    assert wrapped(f"   ok data: from {path}", 20, 5) == ["   ok data: from", f"     {path}"]
    assert wrapped("", 20) == [""]


@pytest.mark.parametrize("width", [40, 50, 200])
def test_a_narrow_bare_table_cuts_no_figure(width):
    figures = [f"{k}.2345" for k in range(6)]
    table = BareTable(["method", "neighbours"], [f"at {k}" for k in range(6)])
    table.add_row("dp-logistic", "replace-one", *figures)
    lines = written(table, width)
    assert max(map(len, lines)) <= width
    text = " ".join(lines).split()
    assert all(text.count(figure) == 1 for figure in figures)
    assert "dp-logistic" in text


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


NUMBERS = [f"0.{k}00 ± 0.00{k}" for k in range(1, 7)]
TABLE = Stacked(
    "the title",
    [
        StackedColumn("Data set", ["a-long-name", ""]),
        *(StackedColumn(f"method-{k}", [(Text(NUMBERS[k]), Text("[1/5]")), ()]) for k in range(6)),
    ],
    looks={"box": box.SIMPLE_HEAD},
)


def lines(table: Stacked, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(table)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.splitlines()


@pytest.mark.parametrize("width", [30, 40, 55, 80, 120, 200])
def test_whole_columns_stand_in_parts_that_fit(width: int) -> None:
    shown = lines(TABLE, width)
    text = "\n".join(shown)
    assert max(map(len, shown)) <= width
    assert [text.count(number) for number in NUMBERS] == [1] * 6
    assert text.count("[1/5]") == 6
    assert "…" not in text
    assert sum("the title" in line for line in shown) == 1


def test_the_first_columns_stand_in_every_part() -> None:
    parts = sum("─" in line for line in lines(TABLE, 55))
    assert parts > 1
    assert sum("a-long-name" in line for line in lines(TABLE, 55)) == parts


def test_what_fits_is_one_table_of_one_line_a_row() -> None:
    row = next(line for line in lines(TABLE, 200) if "a-long-name" in line)
    assert row.split() == ["a-long-name", *(w for n in NUMBERS for w in (*n.split(), "[1/5]"))]


def test_pieces_stand_below_one_another_where_that_saves_a_part() -> None:
    shown = lines(
        Stacked("", [StackedColumn("x", ["y"]), StackedColumn("z", [(Text("1234"), Text("[5]"))])]),
        14,
    )
    assert any("1234" in line and "[5]" not in line for line in shown)
    assert any("[5]" in line for line in shown)


def test_headings_break_at_spaces_and_hyphens_only() -> None:
    table = Stacked("", [StackedColumn("some-long heading", ["1"]), StackedColumn("x" * 8, ["2"])])
    words = " ".join(lines(table, 24)).replace("┃", " ").replace("│", " ").split()
    assert {"some-", "long", "heading"} <= set(words) or {"some-long", "heading"} <= set(words)
    assert "x" * 8 in words


def test_a_console_too_narrow_for_a_number_folds_it() -> None:
    shown = lines(TABLE, 12)
    assert max(map(len, shown)) <= 12
    assert "…" not in "".join(shown)


def test_a_title_longer_than_the_console_splits_nothing() -> None:
    looks = {"min_width": 60, "box": box.SIMPLE_HEAD}
    shown = lines(
        Stacked("t " * 30, [StackedColumn("a", ["1"]), StackedColumn("b", ["2"])], looks=looks), 30
    )
    assert sum("─" in line for line in shown) == 1


def test_notes_keep_a_readable_width() -> None:
    note = "words that make up a sentence of some length"
    column = StackedColumn("Note", [note], least=20)
    assert (column.narrowest, column.widest) == (20, len(note))
    assert StackedColumn("Note", ["short"], least=20).narrowest == 5


def test_a_table_without_rows_has_its_headings() -> None:
    assert any(
        "a" in line
        for line in lines(Stacked("", [StackedColumn("a", []), StackedColumn("b", [])]), 20)
    )


def test_nothing_printable_steers_a_terminal():
    printable = "".join(filter(str.isprintable, map(chr, range(0x110000))))
    assert len(printable) > 100_000
    assert visible(printable) == printable
