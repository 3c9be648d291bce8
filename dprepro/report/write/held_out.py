"""Render judgements on held-out cells and on other splits: terminals, Markdown, plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.text import Text

from dprepro.report.judge.check import CheckReport
from dprepro.report.judge.held_out import Judgement
from dprepro.report.judge.verdicts import Verdict
from dprepro.report.layout.words import CHOSEN, choice_rows, outcome_in_words, p_in_words
from dprepro.stacked import StackedColumn
from dprepro.terminal import Renderable, below, indented, stacked_table
from dprepro.text import markdown, markdown_table

_HELD_OUT = "Chosen on other cells, judged once"
_OTHER_SPLITS = "The settings of the column, on splits of another seed"
_NAMES = ("Method", "Table", "Dataset", "Outcome", "Setting")
_LEGEND = (
    "A setting is chosen by the smallest sum of z^2 on the named datasets, the same on each of "
    "them, and judged on cells that did not choose it. Other splits judge the same printed cells "
    "again, and so only what is ours. A column fails if its cells differ from print together, at "
    "5 % for each column: p allows for their correlation. One that does not fail is not refuted; "
    "with large standard errors that says little."
)


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
        *(part for title, own in _parts(judgements) for part in (_table(title, own), "")),
        Text(_LEGEND, style="dim"),
    )


def _parts(judgements: Sequence[Judgement]) -> list[tuple[str, list[Judgement]]]:
    parts = (
        (_HELD_OUT, [found for found in judgements if found.chosen_on]),
        (_OTHER_SPLITS, [found for found in judgements if not found.chosen_on]),
    )
    return [(title, own) for title, own in parts if own]


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
    return "\n".join(_markdown(title, own) for title, own in _parts(judgements))


def _markdown(title: str, judgements: Sequence[Judgement]) -> str:
    rows = [_fields(found) for found in judgements]
    if judgements[0].chosen_on:
        for row, found in zip(rows, judgements, strict=True):
            row["Setting"] = f"{found.setting} ({_chosen(found)})"
    fields = ([markdown(field) for field in row.values()] for row in rows)
    heads = {head: markdown(head) for head in rows[0]}
    numbers = [shown for head, shown in heads.items() if head not in _NAMES]
    table = markdown_table(list(heads.values()), fields, numbers)
    return f"### {title}\n\n{table}\n"


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
