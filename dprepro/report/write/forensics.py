"""Render hypotheses for terminals, as Markdown and as plain values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.text import Text

from dprepro.report.judge.forensics import Column, Distance, Trial
from dprepro.report.levels import level
from dprepro.stacked import StackedColumn
from dprepro.terminal import BareTable, Renderable, below, indented, stacked_table
from dprepro.text import markdown, markdown_table

_SUM = "sum of z^2"


def render_columns(columns: Sequence[Column]) -> Renderable:
    """Return what is found, then a table for each column: the z of every cell, and their sum.

    Several columns are counted first, by their findings.
    """
    first = [render_overview(columns), ""] if len(columns) > 1 else []
    return below(*first, *(part for column in columns for part in _parts(column)))


def render_overview(columns: Sequence[Column]) -> Renderable:
    """Return how many columns have which finding, then those of each method by finding."""
    counts = Counter(column.question.finding for column in columns)
    found = ", ".join(f"{count} {finding}" for finding, count in counts.most_common())
    papers: dict[str, list[Column]] = {}
    for column in columns:
        papers.setdefault(column.question.paper, []).append(column)
    return below(
        Text.assemble(
            (f"Unstated settings of {len(columns)} printed columns:", "bold"), f" {found}"
        ),
        "",
        *(_of_paper(paper, own) for paper, own in papers.items()),
        "Identified: a hypothesis explains the cells. Refuted: none does. Unknown: it is open.",
    )


def _of_paper(paper: str, columns: Sequence[Column]) -> Renderable:
    datasets: dict[tuple[str, str], dict[str, None]] = {}
    for column in columns:
        question = column.question
        datasets.setdefault((question.method, question.finding), {})[column.dataset] = None
    rows = sorted(datasets, key=lambda row: [c.question.method for c in columns].index(row[0]))
    parts = [
        StackedColumn(paper, [method for method, _ in rows]),
        StackedColumn("Finding", [finding for _, finding in rows]),
        StackedColumn("Datasets", [", ".join(datasets[row]) for row in rows]),
    ]
    return stacked_table("", parts, 2, is_tight=True)


def _parts(column: Column) -> Iterator[Renderable]:
    question = column.question
    yield Text.assemble((_heading(column), "bold"), f"  {question.question}")
    yield indented(Text(f"{question.finding}: {question.says}"))
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
    rows = ([markdown(_name(trial)), *_figures(trial)] for trial in column.trials)
    table = markdown_table(list(map(markdown, heads)), rows, list(map(markdown, heads[1:])))
    return f"### {markdown(_heading(column))}\n\n{table}\n"


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
