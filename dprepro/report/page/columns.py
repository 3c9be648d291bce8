"""Printed columns judged as wholes."""

from __future__ import annotations

from collections.abc import Iterable

from dprepro.report.judge.omnibus import ColumnVerdict
from dprepro.report.layout.words import p_in_words
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
)


def column_sheet(columns: Iterable[ColumnVerdict]) -> Sheet:
    """Return a row for each printed column, the most different first."""
    ordered = sorted(columns, key=lambda column: column.omnibus.p_value)
    return Sheet("columns", "Printed columns as wholes", _HEADS, tuple(map(_row, ordered)))


def _row(column: ColumnVerdict) -> Row:
    found = column.omnibus
    fields = (
        *(Cell(text) for text in (column.paper, column.table, column.dataset, column.method)),
        Cell(METRICS[column.metric].title),
        Cell(f"{found.cells}"),
        Cell(f"{found.sum_of_squares:.1f}"),
        Cell(p_in_words(found.p_value), key=f"{found.p_value:.3g}"),
        Cell(f"{found.far}"),
        Cell(column.state.value, tone=tone(column.state.value)),
    )
    return Row(fields, column.paper, column.dataset, column.method)
