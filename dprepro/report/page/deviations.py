"""Deviations with their reasons, and what was not run or cannot be, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dprepro.published.published import PublishedCell
from dprepro.report.judge.check import CheckReport
from dprepro.report.judge.verdicts import CellVerdict, Verdict
from dprepro.report.layout.words import verdict_figures
from dprepro.report.page.cells import level_cell, verdict_cell
from dprepro.report.page.sheets import Cell, Head, Kind, Row, Sheet
from dprepro.report.read.metrics import METRICS

_HEADS = (
    Head("Document"),
    Head("Dataset"),
    Head("Method"),
    Head("ε", Kind.NUMBER),
    Head("Metric"),
    Head("Published", Kind.NUMBER),
    Head("Measured", Kind.NUMBER),
    Head("Difference", Kind.NUMBER),
    Head("z", Kind.NUMBER),
    Head("Verdict"),
)
_MISSING_HEADS = (
    Head("Document"),
    Head("Table"),
    Head("Dataset"),
    Head("Cells", Kind.NUMBER),
    Head("State"),
    Head("Why", Kind.PROSE),
)
_MISSING = (Verdict.IMPOSSIBLE, Verdict.NOT_RUN, Verdict.INCOMPLETE)


@dataclass(frozen=True)
class Reason:
    """Cells that deviate for one reason; `text` is None where they are not reviewed.

    `name` identifies its part of the page, and `state` says what is known of the cause.
    """

    name: str
    title: str
    state: str
    text: str | None
    sheet: Sheet


def reasons_of(report: CheckReport) -> list[Reason]:
    """Return the deviations by reason: without one first, then of unknown cause, then explained.

    Last come cells that are inconclusive here, and known to differ by other evidence.
    """
    by_reason: dict[str | None, list[CellVerdict]] = {}
    for cell in [*report.unexplained, *report.unknown, *report.understood, *report.known]:
        by_reason.setdefault(cell.explanation, []).append(cell)
    return [
        _reason(f"deviation-{number}", text, cells)
        for number, (text, cells) in enumerate(by_reason.items(), start=1)
    ]


def explained_by(report: CheckReport) -> dict[PublishedCell, str]:
    """Return the name of the `Reason` of each cell that deviates, or is known to differ."""
    names: dict[str | None, str] = {r.text: r.name for r in reasons_of(report)}
    found = [*report.unexplained, *report.explained, *report.known]
    return {cell.published: names[cell.explanation] for cell in found}


def _reason(name: str, text: str | None, cells: Sequence[CellVerdict]) -> Reason:
    methods = ", ".join(dict.fromkeys(cell.published.method for cell in cells))
    datasets = ", ".join(dict.fromkeys(cell.published.dataset for cell in cells))
    caption = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
    sheet = Sheet(f"{name}-cells", caption, _HEADS, tuple(map(_row, cells)))
    return Reason(name, f"{methods} on {datasets}", cause_of(cells[0]), text, sheet)


def cause_of(cell: CellVerdict) -> str:
    """Say what is known of the cause of a deviation."""
    if cell.is_unexplained:
        return "Not reviewed yet"
    if not cell.verdict.is_deviation:
        return "Inconclusive here, and known to differ by other evidence"
    return "Cause unknown" if cell.is_unknown else "Explained"


def differing_sheet(report: CheckReport, reasons: Mapping[PublishedCell, str]) -> Sheet:
    """Return the cells that differ; each leads to its reason, named as in `explained_by`."""
    heads = (Head("Verdict"), *_HEADS[:-1], Head("Cause"))
    rows = []
    for cell in [*report.unexplained, *report.unknown, *report.understood]:
        row, cause = _row(cell), Cell(cause_of(cell), link=reasons[cell.published])
        rows.append(replace(row, cells=(row.cells[-1], *row.cells[:-1], cause)))
    return Sheet("differing", "Numbers that differ", heads, tuple(rows))


def _row(cell: CellVerdict) -> Row:
    printed, verdict = cell.published, cell.verdict.value
    figures = verdict_figures(cell)
    fields = (
        *(Cell(text) for text in (printed.paper, printed.dataset, printed.method)),
        level_cell(printed.epsilon),
        Cell(METRICS[printed.metric].title),
        *(Cell(figures[name]) for name in ("Published", "Measured", "Difference", "z")),
        verdict_cell(cell.verdict),
    )
    return Row(fields, printed.paper, printed.dataset, printed.method, verdict)


def missing_sheet(report: CheckReport, unjudged: Mapping[str, int]) -> Sheet:
    """Return the printed cells without a final verdict, counted by reason.

    Parameters
    ----------
    unjudged
        By document, the number of printed cells that no layout takes in.
    """
    rows = [*_missing(report.verdicts), *_unjudged(unjudged)]
    return Sheet("missing", "Printed cells that were not judged", _MISSING_HEADS, tuple(rows))


def _missing(verdicts: Iterable[CellVerdict]) -> Iterator[Row]:
    counts = Counter(
        (printed.paper, printed.table, printed.dataset, cell.verdict, _why(cell))
        for cell in verdicts
        for printed in (cell.published,)
        if cell.verdict in _MISSING
    )
    ordered = sorted(counts.items(), key=lambda item: _MISSING.index(item[0][3]))
    for (paper, table, dataset, verdict, why), count in ordered:
        fields = (
            *(Cell(text) for text in (paper, table, dataset)),
            Cell(f"{count}"),
            verdict_cell(verdict),
            Cell(why),
        )
        yield Row(fields, paper, dataset, None, verdict.value)


def _why(cell: CellVerdict) -> str:
    default = {Verdict.NOT_RUN: "no journal holds a result for it"}
    return cell.note or default.get(cell.verdict, "")


def _unjudged(counts: Mapping[str, int]) -> Iterator[Row]:
    for paper, count in counts.items():
        fields = (
            Cell(paper),
            Cell(""),
            Cell(""),
            Cell(f"{count}"),
            Cell("not judged", tone="none"),
            Cell("printed, but not laid out for comparison"),
        )
        yield Row(fields, paper)
