"""Sheets, the sortable tables of the page as plain data: one template renders them all.

Here are those of all cells, printed or not, of printed columns as wholes, and of the settings that
were chosen for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from dprepro.judge.check import CheckReport
from dprepro.judge.forensics import Judgement
from dprepro.judge.omnibus import ColumnVerdict
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.papers.published_cell import PublishedCell
from dprepro.privacy.budget import whose_epsilon
from dprepro.privacy.guarantee_status import NO_LEDGER
from dprepro.report.formatting import (
    CHOSEN,
    FIGURES,
    FITTED,
    choice_rows,
    chosen_in_words,
    number,
    outcome_in_words,
    p_in_words,
    verdict_figures,
)
from dprepro.report.layout import Entry, Group, ResultTable
from dprepro.results.margins import find_metric, level
from dprepro.results.result_cell import TUNED_NOTE, ResultCell


class Kind(str, Enum):
    """What a column holds, and so how it is set: left, right-aligned digits, or wrapped prose."""

    TEXT = "text"
    NUMBER = "number"
    PROSE = "prose"


@dataclass(frozen=True)
class Head:
    """The heading of a column; `hint` explains it."""

    title: str
    kind: Kind = Kind.TEXT
    hint: str = ""


@dataclass(frozen=True)
class Cell:
    """A field.

    It sorts by its `key`, else by its text or the number that the text begins with. `tone` is the
    verdict or state that colours it, a CSS class name, `link` the identifier of the part of the
    page that the text leads to, and `more` are lines folded away behind the text.
    """

    text: str
    key: str | None = None
    tone: str = ""
    link: str = ""
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row, and what the filters go by; None passes every choice of that filter.

    `result` and `metric` are what a row of a single cell shows.
    """

    cells: tuple[Cell, ...]
    paper: str | None = None
    dataset: str | None = None
    method: str | None = None
    verdict: str | None = None
    result: ResultCell | None = field(default=None, repr=False)
    metric: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table of rows under headings. `name` is its identifier in the page."""

    name: str
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...] = field(repr=False)

    def without_blank_columns(self, blank: str = "") -> Sheet:
        """Leave out the columns in which no row has anything but `blank`."""
        filled = {
            k for row in self.rows for k, c in enumerate(row.cells) if c.text not in ("", blank)
        }
        kept = sorted(filled)
        rows = (replace(row, cells=tuple(row.cells[k] for k in kept)) for row in self.rows)
        return replace(self, heads=tuple(self.heads[k] for k in kept), rows=tuple(rows))


def tone(words: str) -> str:
    """Return a verdict or a state as a CSS class name: ``"not run"`` becomes ``"not-run"``."""
    return "-".join(words.lower().split())


UNPRINTED = "not published"
"""Stands in the place of a verdict where there is nothing to compare with."""

_HEADS = (
    *map(Head, ("Dataset", "Method")),
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
    `reasons` are, by printed cell, identifiers of the parts of the page that explain a deviation.
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
        *map(Cell, (printed.dataset, printed.method)),
        level_cell(printed.epsilon),
        verdict_cell(cell.verdict),
        Cell(find_metric(printed.metric).title),
        *(Cell(figures[name]) for name in FIGURES),
        *map(Cell, (printed.paper, printed.table)),
        Cell(_note(cell.result) + ("why" if reason else cell.remark), link=reason or ""),
    )
    place = (printed.paper, printed.dataset, printed.method)
    return Row(fields, *place, verdict, cell.result, printed.metric)


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


_COLUMN_HEADS = (
    *map(Head, ("Document", "Table", "Dataset", "Method", "Metric")),
    Head("Cells", Kind.NUMBER, "judged cells: what the sum is, on average, if none differs"),
    Head("Sum of squares", Kind.NUMBER, "of the normal scores of z"),
    Head("p", Kind.NUMBER, "probability of so large a sum if no cell differs"),
    Head("|z| > 3", Kind.NUMBER),
    Head("Verdict"),
    Head("Settings", Kind.PROSE, "whether they were chosen by looking at printed numbers"),
)
_HELD_OUT_HEADS = (
    *map(Head, ("Document", "Table", "Dataset", "Method")),
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
    return Sheet("columns", "Printed columns as wholes", _COLUMN_HEADS, rows)


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
        *map(Cell, (*column.place, find_metric(column.metric).title)),
        *map(Cell, (f"{found.cells}", f"{found.sum_of_squares:.1f}")),
        Cell(p_in_words(found.p_value), key=f"{found.p_value:.3g}"),
        Cell(f"{found.far}"),
        Cell(column.state.value, tone=tone(column.state.value)),
        _settings(column, report),
    )
    return Row(fields, column.paper, column.dataset, column.method)
