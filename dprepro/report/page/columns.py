"""Printed columns judged as wholes, and the settings that were chosen for them."""

from __future__ import annotations

from collections.abc import Iterable

from dprepro.report.judge.check import CheckReport
from dprepro.report.judge.held_out import Judgement
from dprepro.report.judge.omnibus import ColumnVerdict
from dprepro.report.judge.verdicts import Verdict
from dprepro.report.layout.words import (
    CHOSEN,
    FITTED,
    choice_rows,
    chosen_in_words,
    outcome_in_words,
    p_in_words,
)
from dprepro.report.page.sheets import Cell, Head, Kind, Row, Sheet, tone
from dprepro.report.read.metrics import METRICS

_HEADS = (
    Head("Document"),
    Head("Table"),
    Head("Dataset"),
    Head("Method"),
    Head("Metric"),
    Head("Cells", Kind.NUMBER, "judged cells: what the sum is, on average, if none differs"),
    Head("Sum of squares", Kind.NUMBER, "of the normal scores of z"),
    Head("p", Kind.NUMBER, "probability of so large a sum if no cell differs"),
    Head("|z| > 3", Kind.NUMBER),
    Head("Verdict"),
    Head("Settings", Kind.PROSE, "whether they were chosen by looking at printed numbers"),
)
_HELD_OUT_HEADS = (
    Head("Document"),
    Head("Table"),
    Head("Dataset"),
    Head("Method"),
    Head("Chosen on", Kind.PROSE, "other cells, or the column's own setting on other splits"),
    Head("Sum of z²", Kind.NUMBER, "about the number of cells if the setting is the authors' own"),
    Head("Cells", Kind.NUMBER),
    Head("p", Kind.NUMBER, "probability of so large a sum if no cell differs"),
    Head("Outcome"),
)


def column_sheet(report: CheckReport) -> Sheet:
    """Return a row for each printed column, the most different first."""
    ordered = sorted(report.columns, key=lambda column: column.omnibus.p_value)
    rows = tuple(_row(column, report) for column in ordered)
    return Sheet("columns", "Printed columns as wholes", _HEADS, rows)


def held_out_sheet(judgements: Iterable[Judgement]) -> Sheet:
    """Return a row for each column that judged a setting chosen without it, or on other splits."""
    rows = tuple(map(_held_out, judgements))
    title = "Settings judged where they were not chosen"
    return Sheet("held-out", title, _HELD_OUT_HEADS, rows)


def _held_out(found: Judgement) -> Row:
    paper, _, dataset, method = found.place
    chosen = f"Table {found.chosen_in}: {', '.join(found.chosen_on)}; of {found.candidates}"
    fields = (
        *map(Cell, found.place),
        Cell(chosen, more=(found.setting,)) if found.chosen_on else Cell("other splits"),
        Cell(f"{found.sum_of_squares:.1f}"),
        Cell(f"{found.together.cells}"),
        Cell(p_in_words(found.together.p_value), key=f"{found.together.p_value:.3g}"),
        Cell(outcome_in_words(found), tone="different" if found.fails else ""),
    )
    return Row(fields, paper, dataset, method)


def choice_sheet(report: CheckReport) -> Sheet:
    """Return the verdicts of each document, on columns that were chosen and on the others apart."""
    heads = (
        Head("Document"),
        Head("Settings", Kind.TEXT, "chosen by looking at printed numbers, or not"),
        Head("Cells", Kind.NUMBER),
        *(Head(verdict.value, Kind.NUMBER) for verdict in Verdict),
    )
    rows = [
        Row((*map(Cell, (paper, settings, f"{sum(counts.values())}")),
             *(Cell(f"{counts[verdict]}") for verdict in Verdict)), paper)
        for paper, settings, counts in choice_rows(report)
    ]  # fmt: skip
    title = "Cells by whether their settings were chosen"
    return Sheet("choices", title, heads, tuple(rows)).without_blank_columns("0")


def _settings(column: ColumnVerdict, report: CheckReport) -> Cell:
    choice = report.choices.get(column.place)
    if choice is None:
        return Cell("")
    on = "; ".join(one.words for one in choice.selected_on)
    more = (f"Chosen {chosen_in_words(column.place, report)}", f"Compared with: {on}")
    return Cell(FITTED if column.place in report.fitted else CHOSEN, more=more)


def _row(column: ColumnVerdict, report: CheckReport) -> Row:
    found = column.omnibus
    fields = (
        *(Cell(text) for text in (column.paper, column.table, column.dataset, column.method)),
        Cell(METRICS[column.metric].title),
        Cell(f"{found.cells}"),
        Cell(f"{found.sum_of_squares:.1f}"),
        Cell(p_in_words(found.p_value), key=f"{found.p_value:.3g}"),
        Cell(f"{found.far}"),
        Cell(column.state.value, tone=tone(column.state.value)),
        _settings(column, report),
    )
    return Row(fields, column.paper, column.dataset, column.method)
