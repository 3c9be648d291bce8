"""Write the leaderboard: for terminals and papers, and as rows of plain values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from dprepro.judge.leaderboard import CONSTANT, FEWEST_TABLES, Board, Standing
from dprepro.report.written_tables import written_tables
from dprepro.runtime.terminal import (
    Renderable,
    Stacked,
    StackedColumn,
    below,
    counted,
    stacked_table,
)
from dprepro.runtime.text import csv_table, in_short, json_text, shortened

_NONE = "-"
_LEAST_NAME = 15
_MOST_REASONS = 2
_LONGEST_REASONS = 250


def write_boards(boards: Sequence[Board], format: str) -> Renderable:
    """Return boards in a format of `dprepro leaderboard`; all but ``table`` are text."""
    if format == "json":
        return json_text({"boards": [_flat(board) for board in boards], "notes": list(rules())})
    if format == "csv":
        return csv_table([row for board in boards for row in board_rows(board)])
    tables = [_table(board) for board in boards]
    if format != "table":
        notes = [f"{board.kind}: {note}" for board in boards for note in board_notes(board)]
        return written_tables(tables, [*notes, *rules()], format)
    parts: list[Renderable] = []
    for board, table in zip(boards, tables, strict=True):
        parts += [table, *(Text(note) for note in board_notes(board)), ""]
    return below(*parts, *(Text(note, style="dim") for note in rules()))


def _table(board: Board) -> Stacked:
    """Return the table of a board, a line for each method."""
    found = board.standings
    number = len(board.cells)

    def column(title: str, cells: Sequence[str], is_number: bool = True) -> StackedColumn:
        return StackedColumn(title, cells, "right" if is_number else "left")

    columns = [
        StackedColumn("method", [s.label for s in found], least=_LEAST_NAME),
        column("mean rank", [f"{s.mean_rank:.2f}" for s in found]),
        column("wins %", [f"{100 * s.win_rate:.0f}" for s in found]),
        column("score", [_figure(s.score) for s in found]),
        column("95 % interval", [_interval(s) for s in found]),
        column("cells", [f"{s.cells}/{number}" for s in found]),
        column("fit s", [_seconds(s.facts.seconds) for s in found]),
        column("longest s", [_seconds(s.facts.longest) for s in found]),
        column("neighbours", [s.facts.adjacency or _NONE for s in found], False),
        column("sound", [_sound(s) for s in found], False),
        column("noise", ["exact" if s.facts.exact else "floating" for s in found], False),
        column("audit", [s.facts.audit for s in found], False),
        column("readable as", [s.facts.form or _NONE for s in found], False),
    ]
    title = f"{board.kind}: {counted(len(board.tables), 'table')}, {counted(number, 'cell')}"
    return stacked_table(title, columns, 1, is_tight=True)


def _figure(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _interval(standing: Standing) -> str:
    if standing.low is None or standing.high is None:
        return _NONE
    return f"{standing.low:.3f}-{standing.high:.3f}"


def _seconds(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _sound(standing: Standing) -> str:
    if standing.facts.reasons:
        return "no"
    return "its author's word" if standing.facts.is_authors_word else "yes"


def board_notes(board: Board) -> Iterator[str]:
    """Yield who is ahead at each level, what the tables are, and what is missing of this board."""
    led = (f"{epsilon:g}: {' and '.join(names)}" for epsilon, names in board.leaders.items())
    yield f"Best mean rank at epsilon {'; '.join(led)}."
    metrics: dict[str, dict[str, None]] = defaultdict(dict)
    for cell in board.cells:
        metrics[cell.metric.title][cell.table] = None
    tables = "; ".join(f"{title} on {', '.join(there)}" for title, there in metrics.items())
    splits = sorted({len(cell.splits) for cell in board.cells})
    ends = f"{splits[0]} to {splits[-1]}" if len(splits) > 1 else f"{splits[0]}"
    yield f"{tables}; {ends} split(s) of each, delta at most {board.delta:g}."
    unsound: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for standing in board.standings:
        missing = Counter(
            cell.missing[standing.label] for cell in board.cells if standing.label in cell.missing
        )
        if missing:
            why = ", ".join(f"{number} {reason}" for reason, number in missing.items())
            yield f"{standing.label} is last in cells without a result: {why}."
        unsound[standing.facts.reasons].append(standing.label)
    for reasons, labels in unsound.items():
        if reasons:
            said = shortened(in_short(reasons, _MOST_REASONS), _LONGEST_REASONS)
            yield f"Not sound: {', '.join(labels)}: {said}."
    yield from (f"Left out: {said}." for said in board.left_out)
    if board.references:
        yield f"A score of 1 is the best of {', '.join(board.references)} on each table."


def rules() -> Iterator[str]:
    """Yield what the columns of every board mean."""
    yield (
        "A cell is a table at one epsilon; methods are compared by their means over the same "
        "splits. mean rank: over cells, 1 is best. wins: the share of cells in which the method is "
        "best. cells: those in which it has a result. In the others it is ranked last, with a "
        "score of 0."
    )
    yield (
        f"score: 0 is a constant ({CONSTANT!r}), 1 the best method without privacy; below a "
        "constant it is 0. The interval is a bootstrap over tables, of fewer than "
        f"{FEWEST_TABLES} there is none."
    )
    yield (
        "fit: seconds, the median over tables, and the longest fit. neighbours, sound and noise "
        "are of the ledgers, apart from the fixed seeds of all runs here; an epsilon means more "
        "under replace-one. audit: the worst verdict of the audits of this version. readable as: "
        "by the registry."
    )


def board_rows(board: Board) -> list[dict[str, Any]]:
    """Return one flat row for each method of a board: the fields of `Standing` and `Facts`."""
    rows = []
    for place, standing in enumerate(board.standings, 1):
        own = asdict(standing)
        own |= own.pop("facts") | {"reasons": "; ".join(standing.facts.reasons)}
        of = {"cells_of_board": len(board.cells), "tables_of_board": len(board.tables)}
        place_of = {"board": board.kind, "place": place}
        rows.append(place_of | own | {"sound": standing.facts.sound} | of)
    return rows


def _flat(board: Board) -> dict[str, Any]:
    return {
        "board": board.kind,
        "delta": board.delta,
        "references": list(board.references),
        "methods": board_rows(board),
        "cells": [
            {
                "table": cell.table,
                "epsilon": cell.epsilon,
                "metric": cell.metric.name,
                "splits": len(cell.splits),
                "means": dict(cell.means),
                "ranks": cell.ranks,
                "scores": None if cell.scores is None else dict(cell.scores),
                "missing": dict(cell.missing),
            }
            for cell in board.cells
        ],
        "notes": list(board_notes(board)),
    }
