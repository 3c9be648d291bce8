from __future__ import annotations

import io

import pytest
from rich import box
from rich.console import Console
from rich.text import Text

from dprepro.runtime.terminal import Stacked, StackedColumn

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
