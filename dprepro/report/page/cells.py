"""Every printed cell with its verdict, and every measured one that no document prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dprepro.privacy.units import whose_epsilon
from dprepro.privacy.unverified import NO_LEDGER
from dprepro.published.published import PublishedCell
from dprepro.report.judge.verdicts import CellVerdict, Verdict
from dprepro.report.layout.view import Entry, Group, ResultTable
from dprepro.report.layout.words import FIGURES, number, verdict_figures
from dprepro.report.levels import level
from dprepro.report.page.sheets import Cell, Head, Kind, Row, Sheet, tone
from dprepro.report.read.cell import TUNED_NOTE, ResultCell
from dprepro.report.read.metrics import METRICS

UNPRINTED = "not published"
"""Stands in the place of a verdict where there is nothing to compare with."""

_HEADS = (
    Head("Dataset"),
    Head("Method"),
    Head("ε", Kind.NUMBER, "stated privacy level"),
    Head("Verdict"),
    Head("Metric"),
    Head("Published", Kind.NUMBER, "mean ± standard deviation over splits"),
    Head("Measured", Kind.NUMBER, "mean ± standard deviation over splits"),
    Head("Difference", Kind.NUMBER, "measured minus published"),
    Head("z", Kind.NUMBER, "difference by its standard error"),
    Head("95 % interval", Kind.NUMBER, "of the difference"),
    Head("Margin", Kind.NUMBER, "the largest difference that counts as equivalent"),
    Head("n", Kind.NUMBER, "splits: ours, and those that the published mean stands for"),
    Head("Document"),
    Head("Table"),
    Head("Note", Kind.PROSE),
)


def cell_sheet(
    verdicts: Sequence[CellVerdict],
    tables: Iterable[ResultTable],
    reasons: Mapping[PublishedCell, str],
) -> Sheet:
    """Return all cells, printed ones first, and of these first those that differ.

    Columns that would be empty are left out, and so are verdicts where nothing is printed.

    Parameters
    ----------
    reasons
        Identifiers of the parts of the page that explain a deviation, by printed cell.
    """
    ordered = sorted(verdicts, key=lambda cell: not cell.verdict.is_deviation)
    rows = [_judged(cell, reasons) for cell in ordered]
    rows += _unprinted(tables)
    caption = "Printed cells, then what only we measured" if verdicts else "Measured cells"
    return Sheet("all-cells", caption, _HEADS, tuple(rows)).without_blank_columns(UNPRINTED)


def level_cell(epsilon: float) -> Cell:
    """Return a privacy level, which sorts by its number."""
    return Cell(level(epsilon), key="inf" if math.isinf(epsilon) else f"{epsilon:g}")


def verdict_cell(verdict: Verdict) -> Cell:
    """Return a verdict with its symbol, in its colour; it sorts by its name."""
    return Cell(f"{verdict.symbol} {verdict.value}", key=verdict.value, tone=tone(verdict.value))


def _judged(cell: CellVerdict, reasons: Mapping[PublishedCell, str]) -> Row:
    printed, verdict = cell.published, cell.verdict.value
    reason = reasons.get(printed)
    figures = verdict_figures(cell)
    fields = (
        *(Cell(text) for text in (printed.dataset, printed.method)),
        level_cell(printed.epsilon),
        verdict_cell(cell.verdict),
        Cell(METRICS[printed.metric].title),
        *(Cell(figures[name]) for name in FIGURES),
        *(Cell(text) for text in (printed.paper, printed.table)),
        Cell(_note(cell.result) + ("why" if reason else cell.remark), link=reason or ""),
    )
    return Row(
        fields, printed.paper, printed.dataset, printed.method, verdict, cell.result, printed.metric
    )


def _note(result: ResultCell | None) -> str:
    if result is None:
        return ""
    unverified = f"Unverified: {NO_LEDGER}. " if result.is_unverified else ""
    word = "" if result.word is None else f"Its author's word, {result.word}. "
    said = whose_epsilon([(result.task.unit, result.task.rows_per_unit)])
    tuned = f"Tuned: {TUNED_NOTE}. " if result.is_tuned else ""
    return unverified + word + (f"{said} " if said else "") + tuned


def _unprinted(tables: Iterable[ResultTable]) -> Iterator[Row]:
    seen = set()
    for table in tables:
        for group, entry in table.entries:
            # Two columns may share a non-private twin, and two tables a dataset.
            place = (table.metric.name, id(entry.result))
            if entry.verdict is None and entry.result is not None and place not in seen:
                seen.add(place)
                yield _measured(table, group, entry, entry.result)


def _measured(table: ResultTable, group: Group, entry: Entry, result: ResultCell) -> Row:
    metric = table.metric.name
    measured, note = "", _note(result) + "; ".join(result.messages)
    if result.splits(metric):
        measured = number(result.mean(metric), result.sd(metric), group.decimals + 1)
    if not result.is_complete(metric, entry.planned):
        note = f"{result.splits(metric)} of {entry.planned} splits. {note}".rstrip()
    fields = (
        *(Cell(text) for text in (group.dataset, entry.label)),
        level_cell(entry.epsilon),
        Cell(UNPRINTED, tone="none"),
        Cell(table.metric.title),
        *(Cell(measured if name == "Measured" else "") for name in FIGURES),
        *(Cell(text or "") for text in (table.paper, table.table, note)),
    )
    return Row(fields, table.paper, group.dataset, entry.label, UNPRINTED, result, metric)
