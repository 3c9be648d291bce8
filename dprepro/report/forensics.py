"""Hypotheses and judgements on held-out cells: for terminals, as Markdown and as plain values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.text import Text

from dprepro.judge.check import CheckReport
from dprepro.judge.forensics import Column, Distance, Judgement, Trial
from dprepro.judge.verdicts import Verdict
from dprepro.report.formatting import CHOSEN, choice_rows, outcome_in_words, p_in_words
from dprepro.results.margins import level
from dprepro.runtime.terminal import (
    BareTable,
    Renderable,
    StackedColumn,
    below,
    indented,
    stacked_table,
)
from dprepro.runtime.text import markdown, markdown_table

_SUM = "sum of z^2"
_NAMES = ("Method", "Table", "Dataset", "Outcome", "Setting")
"""Headings of what is no number."""
_LEGEND = (
    "A setting is chosen by the smallest sum of z^2 on the named datasets, the same on each of "
    "them, and judged on cells that did not choose it. Other splits judge the same printed cells "
    "again, and so only what is ours. A column fails if its cells differ from print together, at "
    "5 % for each column: p allows for their correlation. One that does not fail is not refuted; "
    "with large standard errors that says little."
)


def render_columns(columns: Sequence[Column]) -> Renderable:
    """Return what is found, counted, then a table for each column: all z, and their sum."""
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
    parts = []
    for column in columns:
        heads = list(map(markdown, ("hypothesis", *_heads(column))))
        rows = ([markdown(_name(trial)), *_figures(trial)] for trial in column.trials)
        table = markdown_table(heads, rows, heads[1:])
        parts.append(f"### {markdown(_heading(column))}\n\n{table}\n")
    return "\n".join(parts)


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


def render_choices(report: CheckReport) -> Renderable:
    """Return the verdicts of each document, on columns that were chosen and on the others apart."""
    rows = choice_rows(report)
    verdicts = [verdict for verdict in Verdict if any(counts[verdict] for *_, counts in rows)]
    numbers = {"Cells": [f"{sum(counts.values())}" for *_, counts in rows]} | {
        verdict.value: [f"{counts[verdict] or ''}" for *_, counts in rows] for verdict in verdicts
    }
    columns = [
        StackedColumn("Document", [paper for paper, _, _ in rows]),
        StackedColumn("Settings", [settings for _, settings, _ in rows]),
        *(StackedColumn(head, [(Text(n),) for n in own]) for head, own in numbers.items()),
    ]
    return below(
        stacked_table("Cells by whether their settings were chosen", columns, 2, is_tight=True),
        Text(f"{CHOSEN}: settings or rows were chosen by looking at printed numbers.", style="dim"),
    )


def render_held_out(judgements: Sequence[Judgement]) -> Renderable:
    """Return a table of what was chosen elsewhere, and one of other splits, for terminals."""
    return below(
        *(part for title, own in _by_kind(judgements) for part in (_table(title, own), "")),
        Text(_LEGEND, style="dim"),
    )


def _by_kind(judgements: Sequence[Judgement]) -> Iterator[tuple[str, list[Judgement]]]:
    """Yield the judgements on held-out cells, then those on other splits, each with a title."""
    other = "The settings of the column, on splits of another seed"
    for title, kind in (("Chosen on other cells, judged once", True), (other, False)):
        if own := [found for found in judgements if bool(found.chosen_on) is kind]:
            yield title, own


def _table(title: str, judgements: Sequence[Judgement]) -> Renderable:
    rows = [_fields(found) for found in judgements]
    columns = [
        StackedColumn(head, [row[head] if head in _NAMES else (Text(row[head]),) for row in rows])
        for head in rows[0]
    ]
    return below(stacked_table(title, columns, 3, is_tight=True), *_choices(judgements))


def _choices(judgements: Sequence[Judgement]) -> list[Renderable]:
    """Say once for all columns that a setting judges how it was chosen."""
    datasets: dict[tuple[str, str], dict[str, None]] = {}
    for found in judgements:
        if found.chosen_on:
            place = (found.place[3], f"{found.setting} ({_chosen(found)})")
            datasets.setdefault(place, {})[found.place[2]] = None
    return [
        indented(Text(f"{method} on {', '.join(own)}: {setting}"))
        for (method, setting), own in datasets.items()
    ]


def _chosen(found: Judgement) -> str:
    return f"of {found.candidates}, on Table {found.chosen_in}: {', '.join(found.chosen_on)}"


def _fields(found: Judgement) -> dict[str, str]:
    _, table, dataset, method = found.place
    fewest, most = found.splits
    return {
        "Method": method,
        "Table": table,
        "Dataset": dataset,
        **({} if found.chosen_on else {"Seed": f"{found.seed}"}),
        "Splits": f"{most}" if fewest == most else f"{fewest} to {most}",
        "Sum of z^2": f"{found.sum_of_squares:.1f}",
        "Cells": f"{found.together.cells}",
        "p": p_in_words(found.together.p_value),
        "Outcome": outcome_in_words(found),
    }


def markdown_held_out(judgements: Sequence[Judgement]) -> str:
    """Return the same tables in Markdown, each below a heading."""
    parts = []
    for title, own in _by_kind(judgements):
        rows = [_fields(found) for found in own]
        for row, found in zip(rows, own, strict=True):
            if found.chosen_on:
                row["Setting"] = f"{found.setting} ({_chosen(found)})"
        fields = ([markdown(field) for field in row.values()] for row in rows)
        heads = {head: markdown(head) for head in rows[0]}
        numbers = [shown for head, shown in heads.items() if head not in _NAMES]
        table = markdown_table(list(heads.values()), fields, numbers)
        parts.append(f"### {title}\n\n{table}\n")
    return "\n".join(parts)


def json_held_out(judgements: Iterable[Judgement]) -> list[dict[str, Any]]:
    """Return each judgement as plain values."""
    return [
        dict(zip(("paper", "table", "dataset", "method"), found.place, strict=True))
        | {
            "setting": found.setting,
            "candidates": found.candidates,
            "chosen_in": found.chosen_in or None,
            "chosen_on": list(found.chosen_on),
            "seed": found.seed,
            "splits": list(found.splits),
            "cells": found.together.cells,
            "sum_of_squares": found.sum_of_squares,
            "p_value": found.together.p_value,
            "fails": found.fails,
        }
        for found in judgements
    ]
