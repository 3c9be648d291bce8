"""Tables of results for terminals and in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from dprepro.judge.verdicts import Verdict
from dprepro.report.formatting import BEST, Style, Words, column_headings, heading, legend, words
from dprepro.report.layout import Entry, Group, ResultTable
from dprepro.results.margins import level
from dprepro.runtime.terminal import (
    Fitting,
    Renderable,
    Stacked,
    StackedColumn,
    below,
    stacked_table,
)
from dprepro.runtime.text import markdown, markdown_table

STYLES = {
    Verdict.EQUIVALENT: "green",
    Verdict.BETTER: "cyan",
    Verdict.WORSE: "red",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.INCOMPLETE: "yellow",
    Verdict.NOT_RUN: "dim",
    Verdict.IMPOSSIBLE: "dim",
}

# Of more methods, each has a row: so many columns would stand in several parts.
_MOST_COLUMNS = 4
# Names of methods are set on several lines only if they are longer.
_LEAST_NAME = 15
# Stands between the methods whose numbers a document prints, and all others.
_NOT_PRINTED = "— not printed —"

_Cell = tuple[Text, ...]


def rich_tables(tables: Sequence[ResultTable], style: Style) -> Renderable:
    """Return the tables for a terminal.

    Many methods stand below each other, in a block for each dataset, and epsilons beside each
    other. Few methods stand beside each other. Standard deviations are shown where there is room
    for them beside the mean, and everywhere if `style` says so.
    """
    return below(
        *(part for table in tables for part in _parts(table, style)),
        *(Text(line, style="dim") for line in legend(tables, style, is_terminal=True)),
    )


def _parts(table: ResultTable, style: Style) -> Iterator[Renderable]:
    yield Text(heading(table, style), style="italic")
    spreads = (True,) if style.spread else (True, False)
    yield Fitting([_blocks(table, style, has_spread) for has_spread in spreads])


def _blocks(table: ResultTable, style: Style, has_spread: bool) -> list[Stacked]:
    groups = [group for group in table.groups if group.rows]
    said = {
        id(entry): words(entry, group, table.metric.name, style, has_spread)
        for group in groups
        for row in group.rows
        for entry in row
    }
    is_long = len(table.columns) > _MOST_COLUMNS and any(len(group.rows) > 1 for group in groups)
    if is_long:
        return [_by_methods(table, group, said) for group in groups]
    return [_by_levels(table, groups, said)]


def _by_methods(table: ResultTable, group: Group, said: dict[int, Words]) -> Stacked:
    """Return the block of a dataset: a row for each method that has an entry, a column a level."""
    places = range(len(table.columns))
    shown = [k for k in places if any(_has_words(said[id(row[k])]) for row in group.rows)]
    printed = [place for place in shown if table.columns[place].method in group.printed]
    others = [place for place in shown if place not in printed]
    rows = [*printed, None, *others] if printed and others else shown
    names = [_NOT_PRINTED if place is None else table.columns[place].title for place in rows]
    columns = [StackedColumn(group.title, names, least=_LEAST_NAME)]
    for row in group.rows:
        cells = iter(_aligned([row[place] for place in rows if place is not None], said))
        fields = [() if place is None else next(cells) for place in rows]
        columns.append(StackedColumn(_level_heading(row[0].epsilon), fields))
    ends = [len(printed) - 1] if None in rows else []
    return stacked_table("", columns, 1, ends, is_tight=True)


def _by_levels(table: ResultTable, groups: Sequence[Group], said: dict[int, Words]) -> Stacked:
    """Return one table of all datasets: a row for each level, a column for each method."""
    rows = [row for group in groups for row in group.rows]
    first = {id(group.rows[0]): group.title for group in groups}
    last = {id(group.rows[-1]) for group in groups}
    columns = [
        StackedColumn("Dataset", [first.get(id(row), "") for row in rows], least=_LEAST_NAME),
        StackedColumn("ε", [(Text(level(row[0].epsilon)),) for row in rows]),
    ]
    for position, column in enumerate(table.columns):
        cells = _aligned([row[position] for row in rows], said)
        columns.append(StackedColumn(column.title, cells))
    # A blank line after each dataset, unless each has one row.
    ends = [place for place, row in enumerate(rows) if id(row) in last]
    return stacked_table("", columns, 2, ends if len(ends) < len(rows) else ())


def _level_heading(epsilon: float) -> str:
    if math.isinf(epsilon):
        return level(epsilon).replace("-", "-\n")  # as narrow as a number
    return f"ε {level(epsilon)}"


def _has_words(entry: Words) -> bool:
    return bool(entry.measured or entry.mark or entry.verdict)


def _aligned(entries: Sequence[Entry], said: dict[int, Words]) -> list[_Cell]:
    """Return the cells of a column, with the points of its numbers below each other."""
    own = [said[id(entry)] for entry in entries]
    width = max((len(_mean(entry.measured)) for entry in own), default=0)
    return [_cell(entry, width) for entry in own]


def _mean(number: str) -> str:
    return number.split(" ", 1)[0]


def _cell(entry: Words, width: int) -> _Cell:
    """Return the number with its verdict, the published one below it, and marks as pieces."""
    if not _has_words(entry):
        return ()
    short = width - len(_mean(entry.measured))
    number = Text(" " * short + entry.measured, style="bold" if entry.is_best else "")
    if entry.is_best:
        number.append(BEST)
    if entry.verdict:
        start = len(number.append("" if entry.is_best else " "))
        number = Text.assemble(number, f"{entry.verdict.symbol}\n({entry.published})")
        number.stylize(STYLES[entry.verdict], start)
    marks = (Text(entry.mark, style="yellow"),) if entry.mark else ()
    return ((number,) if number.plain.strip() else ()) + marks


def markdown_tables(tables: Sequence[ResultTable], style: Style) -> str:
    """Return the tables in Markdown, each below a heading, and the legend."""
    parts = []
    for table in tables:
        rows = [
            [
                markdown(group.title),
                level(row[0].epsilon),
                *(_markdown_entry(words(e, group, table.metric.name, style)) for e in row),
            ]
            for group in table.groups
            for row in group.rows
        ]
        heads = list(map(markdown, column_headings(table)))
        parts.append(f"### {markdown(heading(table, style))}\n\n{markdown_table(heads, rows)}")
    notes = "\n".join(f"- {markdown(line)}" for line in legend(tables, style))
    return "\n\n".join([*parts, notes])


def _markdown_entry(entry: Words) -> str:
    measured = f"**{entry.measured}**" if entry.is_best else entry.measured
    beside = f"({entry.published}, {entry.verdict.value})" if entry.verdict else ""
    return " ".join(part for part in (measured, markdown(entry.mark), beside) if part) or "—"
