"""Render hypotheses for terminals, as Markdown and as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.markup import escape
from rich.text import Text

from dprepro.report.judge.forensics import Column, Distance, Trial
from dprepro.report.levels import level
from dprepro.stacked import StackedColumn
from dprepro.terminal import BareTable, Renderable, below, indented, stacked_table

_SUM = "sum of z^2"


def render_columns(columns: Sequence[Column]) -> Renderable:
    """Return what is found, then a table for each column: the z of every cell, and their sum.

    Several columns are listed first, each with its finding.
    """
    first = [_overview(columns), ""] if len(columns) > 1 else []
    return below(*first, *(part for column in columns for part in _parts(column)))


def _overview(columns: Sequence[Column]) -> Renderable:
    nearest = [_nearest(column) for column in columns]
    parts = [
        StackedColumn("Document", [column.question.paper for column in columns]),
        StackedColumn("Table", [column.question.table for column in columns]),
        StackedColumn("Dataset", [column.dataset for column in columns]),
        StackedColumn("Method", [column.question.method for column in columns]),
        StackedColumn("Finding", [column.question.finding for column in columns]),
        StackedColumn("Nearest", [(Text(figure),) for figure in nearest], "right"),
        StackedColumn("Cells", [(Text(str(len(c.printed))),) for c in columns], "right"),
    ]
    return below(
        stacked_table("Columns and what was found", parts, 4, is_tight=True),
        "Nearest: the smallest sum of z^2 of a hypothesis; near the number of cells if it is true. "
        "(`dprepro check` squares normal scores of z, which are smaller.)",
    )


def _nearest(column: Column) -> str:
    sums = [trial.sum_of_squares for trial in column.trials]
    return f"{min(found):.1f}" if (found := [one for one in sums if one is not None]) else "-"


def _parts(column: Column) -> Iterator[Renderable]:
    question = column.question
    yield f"[bold]{escape(_heading(column))}[/]  {escape(question.question)}"
    yield indented(f"{question.finding}: {escape(question.says)}")
    table = BareTable(["hypothesis"], _heads(column), wraps=True)
    for trial in column.trials:
        table.add_row(_name(trial), *_figures(trial))
    yield table
    yield ""


def markdown_columns(columns: Iterable[Column]) -> str:
    """Return a Markdown table for each column, below a heading."""
    return "\n".join(_markdown(column) for column in columns)


def _markdown(column: Column) -> str:
    heads = ["hypothesis", *_heads(column)]
    rules = ["---", *("---:" for _ in heads[1:])]
    rows = [heads, rules, *([_name(trial), *_figures(trial)] for trial in column.trials)]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"### {_heading(column)}\n\n{lines}\n"


def json_columns(columns: Iterable[Column]) -> list[dict[str, Any]]:
    """Return each column as plain values; what was not run is None."""
    return [_plain(column) for column in columns]


def _plain(column: Column) -> dict[str, Any]:
    question = column.question
    return {
        "paper": question.paper,
        "table": question.table,
        "method": question.method,
        "dataset": column.dataset,
        "question": question.question,
        "finding": question.finding,
        "says": question.says,
        "tried": [
            {
                "label": trial.hypothesis.label,
                "says": trial.hypothesis.says,
                "dataset": trial.hypothesis.dataset or trial.dataset,
                "sum_of_squares": trial.sum_of_squares,
                "cells": [
                    {
                        "epsilon": cell.epsilon if math.isfinite(cell.epsilon) else None,
                        "printed": cell.mean,
                        "printed_sd": cell.std,
                    }
                    | _measured(found)
                    for cell, found in zip(column.printed, trial.distances, strict=True)
                ],
            }
            for trial in column.trials
        ],
    }


def _measured(found: Distance | None) -> dict[str, Any]:
    if found is None:
        return {"mean": None, "sd": None, "splits": 0, "z": None}
    return {"mean": found.mean, "sd": found.sd, "splits": found.splits, "z": found.z}


def _heading(column: Column) -> str:
    question = column.question
    return f"{question.paper}, Table {question.table}: {question.method} on {column.dataset}"


def _heads(column: Column) -> list[str]:
    return [*(f"z at {level(cell.epsilon)}" for cell in column.printed), _SUM, "splits"]


def _name(trial: Trial) -> str:
    rows = trial.hypothesis.dataset
    return trial.hypothesis.label + (f" ({rows})" if rows else "")


def _figures(trial: Trial) -> list[str]:
    total, (fewest, most) = trial.sum_of_squares, trial.splits
    return [
        *("-" if found is None else f"{found.z:+.1f}" for found in trial.distances),
        "-" if total is None else f"{total:.1f}",
        f"{most}" if fewest == most else f"{fewest} to {most}",
    ]
