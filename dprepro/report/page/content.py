"""The page of `dprepro report`: a pure function of results, printed numbers, the journals' rest.

It is one HTML file that needs nothing beside it. Its rows and figures are data that the page's
script unpacks: a tenth of their size as HTML.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from dprepro.judge.check import CheckReport
from dprepro.judge.claims import Outcome
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import Document, Protocol
from dprepro.papers.published_cell import PublishedCell, load_published
from dprepro.report.formatting import (
    Style,
    causes_in_words,
    heading,
    judged_in_words,
    legend,
    together_in_words,
    words,
)
from dprepro.report.layout import ResultTable
from dprepro.report.page import evidence
from dprepro.report.page.origins import (
    Machine,
    Origins,
    machines_of,
    origins_of,
    row_numbers,
    run_sheet,
    time_in_words,
    timing_sheet,
)
from dprepro.report.page.sheets import (
    UNPRINTED,
    Cell,
    Row,
    Sheet,
    cell_sheet,
    choice_sheet,
    column_sheet,
    held_out_sheet,
    tone,
)
from dprepro.report.web import render_alone
from dprepro.results.audits import Audit
from dprepro.results.margins import find_metric, level
from dprepro.results.runs import Runs
from dprepro.runtime.text import legible

if TYPE_CHECKING:
    from dprepro.report.page.figures import FigureGroup, PageFigure

_CODE = re.compile(r"`([^`]+)`")


def pack(sheets: Iterable[Sheet], figures: Sequence[FigureGroup], origins: Origins) -> str:
    """Return sheets, with the runs behind their rows, and figures as base64 of gzipped JSON.

    The JSON has ``sheets``, by name a list of rows, and ``figures``, a list of SVG elements in the
    order of the page. A row has ``cells`` ([text, key, tone, link]), ``filters`` (paper, dataset,
    method, verdict) and ``runs`` (see `Origins.of`). The same content gives the same text.
    """
    content = {
        "sheets": {sheet.name: [_row(row, origins) for row in sheet.rows] for sheet in sheets},
        "figures": [str(figure.svg) for group in figures for figure in group.figures],
    }
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _row(row: Row, origins: Origins) -> dict[str, Any]:
    return {
        "cells": [_cell(cell) for cell in row.cells],
        "filters": [_text(v) for v in (row.paper, row.dataset, row.method, row.verdict)],
        "runs": _legible(origins.of(row.result, row.metric)),
    }


def _cell(cell: Cell) -> list[str | None]:
    return [_text(cell.text), _text(cell.key), cell.tone, cell.link]


def _text(text: str | None) -> str | None:
    return None if text is None else legible(text)


def _legible(found: Any) -> Any:
    if isinstance(found, str):
        return legible(found)
    if isinstance(found, list):
        return [_legible(part) for part in found]
    if isinstance(found, dict):
        return {key: _legible(value) for key, value in found.items()}
    return found


@dataclass(frozen=True)
class Sources:
    """What the page is made from; `report` has verdicts on all of `documents`, and so `tables`."""

    documents: Sequence[Document]
    tables: Sequence[ResultTable]
    report: CheckReport
    runs: Runs
    audits: Sequence[Audit]
    figures: Sequence[FigureGroup] = ()
    overview: PageFigure | None = None


@dataclass(frozen=True)
class DocumentSummary:
    """A document in short; `counts` has its verdicts in the order of `Verdict`, none of 0."""

    paper: str
    title: str
    protocol: str
    counts: Mapping[Verdict, int]
    together: Sequence[str]
    cells: int
    claims: int
    claims_held: int
    claims_rounded: int
    unexplained: int


@dataclass(frozen=True)
class Page:
    """The page, part by part.

    Attributes
    ----------
    private
        Datasets whose rows are private.
    judged, causes
        In words: how many cells were judged, with which verdicts, what was not run, and what is
        known of the causes of deviations.
    is_open
        Whether a cause is unknown, or a cell was not run in full.
    choices
        By filter (paper, dataset, method, verdict), what can be chosen.
    reasons
        By printed cell that deviates, the name of the part that explains it.
    packed
        The rows of `cells`, `runs` and `times`, and `figures`, as `pack` gives them.
    numbers
        The row of each result in `cells`, by metric and identity of the result.
    """

    summaries: tuple[DocumentSummary, ...]
    private: tuple[str, ...]
    is_explained: bool
    judged: str
    causes: str
    is_open: bool
    differing: Sheet
    failed_claims: int
    margins: tuple[str, ...]
    choices: Mapping[str, Sequence[str]]
    tables: Sequence[ResultTable]
    reasons: Mapping[PublishedCell, str]
    cells: Sheet
    packed: str
    numbers: Mapping[tuple[str, int], int]
    overview: PageFigure | None
    columns: Sheet
    choices_made: Sheet
    held_out: Sheet
    figures: Sequence[FigureGroup]
    claims: Sheet
    deviations: Sequence[evidence.Reason]
    stale: Sequence[str]
    missing: Sheet
    ledgers: Sheet
    audits: Sheet
    confidence: float
    machines: Sequence[Machine]
    runs: Sheet
    times: Sheet
    computing: str

    @property
    def groups(self) -> list[tuple[str, list[ResultTable]]]:
        """Return the tables by document, in their order; those of no document under ``""``."""
        by_paper: dict[str, list[ResultTable]] = {}
        for table in self.tables:
            by_paper.setdefault(table.paper or "", []).append(table)
        return list(by_paper.items())

    @property
    def cells_in_words(self) -> str:
        """Say how many cells there are: ``"410 printed cells, 1,259 measured by us alone"``."""
        own = sum(row.verdict == UNPRINTED for row in self.cells.rows)
        printed = len(self.cells.rows) - own
        if not printed:
            return f"{own:,} measured cell{'s' if own != 1 else ''}"
        return (
            f"{printed:,} printed cell{'s' if printed != 1 else ''}, {own:,} measured by us alone"
        )


def build_page(sources: Sources) -> Page:
    """Lay out the page; journals of datasets that no table shows are left out of it."""
    report, runs = sources.report, _shown(sources.runs, sources.tables)
    reasons = evidence.explained_by(report)
    results = [entry.result for t in sources.tables for _, entry in t.entries if entry.result]
    unjudged = {d.paper: len(load_published(d.paper)) - len(d.cells()) for d in sources.documents}
    cells = cell_sheet(report.verdicts, sources.tables, reasons)
    own_runs, times = run_sheet(runs.runs), timing_sheet(runs.timings)
    return Page(
        summaries=tuple(_summary(document, report) for document in sources.documents),
        private=tuple(dict.fromkeys(r.dataset for r in results if r.task.is_private)),
        is_explained=report.passes(),
        judged=judged_in_words(report),
        causes=causes_in_words(report),
        is_open=bool(report.unknown or report.unfinished),
        differing=evidence.differing_sheet(report, reasons),
        failed_claims=sum(claim.outcome is Outcome.FAILS for claim in report.claims),
        margins=tuple(f"{find_metric(m).title}: {width}" for m, width in report.margins.items()),
        choices=_choices(cells),
        tables=sources.tables,
        reasons=reasons,
        cells=cells,
        packed=pack([cells, own_runs, times], sources.figures, origins_of(runs.runs)),
        numbers=row_numbers(sources.tables, cells.rows),
        overview=sources.overview,
        columns=column_sheet(report),
        choices_made=choice_sheet(report),
        held_out=held_out_sheet(report.held_out),
        figures=sources.figures,
        claims=evidence.claim_sheet(report.claims),
        deviations=evidence.reasons_of(report),
        stale=_stale(report),
        missing=evidence.missing_sheet(report, unjudged),
        ledgers=evidence.ledger_sheet(runs.spendings),
        audits=evidence.audit_sheet(sources.audits),
        confidence=min((audit.confidence for audit in sources.audits), default=0.0),
        machines=machines_of(runs.runs),
        runs=own_runs,
        times=times,
        computing=time_in_words(sum(timing.total for timing in runs.timings)),
    )


def _summary(document: Document, report: CheckReport) -> DocumentSummary:
    own = report.of_paper(document.paper)
    outcomes = Counter(claim.outcome for claim in own.claims)
    return DocumentSummary(
        document.paper,
        document.title,
        protocol_in_words(document.protocol),
        {verdict: count for verdict, count in own.counts.items() if count},
        together_in_words(own),
        len(own.verdicts),
        len(own.claims),
        outcomes[Outcome.HOLDS],
        sum(claim.is_rounded for claim in own.claims),
        len(own.unexplained) + len(own.unexplained_claims),
    )


def protocol_in_words(protocol: Protocol) -> str:
    """Say how the printed means came about."""
    splits, held_out = protocol.splits, f"{100 * protocol.held_out:.3g} % held out"
    if protocol.evaluation == "test-set":
        how = f"the donors' test rows, {splits} repeats"
    elif protocol.evaluation != "folds":
        how = f"{splits} {protocol.evaluation} splits, {held_out}"
    elif protocol.folds is None:
        how = f"{splits} folds"
    else:
        how = f"{splits} splits, {protocol.folds} folds of each partition"
    judged = f", judged on {protocol.judged_on}" if protocol.judged_on else ""
    return f"{how}{judged}, δ = {protocol.delta:g}"


def _choices(cells: Sheet) -> dict[str, list[str]]:
    choices = {
        name: sorted(set(filter(None, values)))
        for name, values in (
            ("paper", (row.paper for row in cells.rows)),
            ("dataset", (row.dataset for row in cells.rows)),
            ("method", (row.method for row in cells.rows)),
        )
    }
    present = dict.fromkeys(row.verdict for row in cells.rows if row.verdict)
    known = [verdict.value for verdict in Verdict]
    ordered = sorted(present, key=lambda v: known.index(v) if v in known else len(known))
    return {**choices, "verdict": ordered}


def _stale(report: CheckReport) -> list[str]:
    lines = [
        f"{stale.cell.published} is listed as {stale.entry.expected}, but is "
        f"{stale.cell.verdict.value}."
        for stale in report.stale
    ]
    claims = [
        f"The claim {c.claim.name} of {c.paper} is listed, but holds." for c in report.stale_claims
    ]
    return [*lines, *claims]


def _shown(runs: Runs, tables: Iterable[ResultTable]) -> Runs:
    """Keep what belongs to results that stand in the tables."""
    results = [entry.result for t in tables for _, entry in t.entries if entry.result]
    journals = {name for result in results for name in result.journals}
    places = {(result.dataset, result.task.label) for result in results}
    return Runs(
        tuple(run for run in runs.runs if run.journal in journals),
        tuple(s for s in runs.spendings if (s.dataset, s.method) in places),
        tuple(t for t in runs.timings if (t.dataset, t.method) in places),
    )


def render_page(page: Page) -> str:
    """Return the page as HTML, figures inside; see `dprepro.report.web`."""
    values = {"page": page, "style": Style(compare=True)}
    functions: dict[str, Callable[..., Any]] = {
        "heading": heading,
        "level": level,
        "legend": partial(legend, published="Below ours the published value and"),
        "words": words,
        "identity": id,
    }
    return render_alone(
        "dprepro.report.page",
        values,
        ["page.js", "paper.js", "parts.js"],
        functions,
        {"tone": tone, "code": code},
    )


def code(text: str) -> Markup:
    """Return text as HTML, with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(legible(text)))))
