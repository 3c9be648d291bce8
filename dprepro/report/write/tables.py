"""Tables of results for terminals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dprepro.report.judge.verdicts import Verdict
from dprepro.report.layout.view import ResultTable
from dprepro.report.layout.words import Style, Words, heading, legend, words
from dprepro.report.levels import level
from dprepro.stacked import StackedColumn
from dprepro.terminal import Renderable, below, stacked_table

STYLES = {
    Verdict.SAME: "green",
    Verdict.EQUIVALENT: "green",
    Verdict.BETTER: "cyan",
    Verdict.WORSE: "red",
    Verdict.INCOMPLETE: "yellow",
    Verdict.NOT_RUN: "dim",
    Verdict.IMPOSSIBLE: "dim",
}


def rich_tables(tables: Sequence[ResultTable], style: Style) -> Renderable:
    """Return the tables for a terminal."""
    return below(
        *(_rich_table(table, style) for table in tables),
        *(Text(line, style="dim") for line in legend(tables, style)),
    )


def _rich_table(table: ResultTable, style: Style) -> Renderable:
    rows = [(group, row) for group in table.groups for row in group.rows]
    first = {id(group.rows[0]): group.title for group in table.groups if group.rows}
    columns = [
        StackedColumn("Dataset", [first.get(id(row), "") for _, row in rows]),
        StackedColumn("ε", [level(row[0].epsilon) for _, row in rows]),
    ]
    for position, column in enumerate(table.columns):
        entries = (words(row[position], group, table.metric.name, style) for group, row in rows)
        columns.append(StackedColumn(column.title, [_rich_entry(entry) for entry in entries]))
    last = {id(group.rows[-1]) for group in table.groups if group.rows}
    ends = {position for position, (_, row) in enumerate(rows) if id(row) in last}
    return stacked_table(heading(table), columns, 2, ends)


def _rich_entry(entry: Words) -> tuple[Text, ...]:
    """Return the number with what is printed below it; a mark is a piece of its own."""
    pieces = [Text(entry.measured, style="bold" if entry.is_best else "")]
    if entry.mark:
        pieces = [piece for piece in pieces if piece.plain] + [Text(entry.mark, style="yellow")]
    if entry.verdict:
        published = f"\n({entry.published}) {entry.verdict.symbol}"
        pieces[-1] = pieces[-1] + Text(published, style=STYLES[entry.verdict])
    return tuple(pieces)
