"""Sheets of what stands behind the figures: claims, ledgers, audits, deviations, missing cells."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dprepro.judge.check import CheckReport
from dprepro.judge.claims import ClaimVerdict, Outcome
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.papers.published_cell import PublishedCell
from dprepro.privacy.guarantee_status import NO_LEDGER, AuditVerdict, GuaranteeStatus, Noise
from dprepro.report.formatting import verdict_figures
from dprepro.report.page.sheets import Cell, Head, Kind, Row, Sheet, level_cell, tone, verdict_cell
from dprepro.results.audits import Audit
from dprepro.results.margins import find_metric
from dprepro.results.runs import Spending

_CLAIM_HEADS = (
    *map(Head, ("Document", "Place")),
    Head("Statement", Kind.PROSE),
    Head("Published", Kind.PROSE, "what the printed numbers of the same cells give, or as stated"),
    Head("Measured", Kind.PROSE, "from our results, cards, configs or formulas"),
    Head("Verdict"),
    Head("Note", Kind.PROSE),
)
_LEDGER_HEADS = (
    *map(Head, ("Dataset", "Method", "Neighbours")),
    Head("δ", Kind.NUMBER),
    Head("Stated ε → spent ε", Kind.PROSE, "by the ledger; the largest over splits"),
    Head("Largest share", Kind.NUMBER, "of the stated epsilon that is spent"),
    Head("Under replace-one", Kind.NUMBER, "the same when one row is exchanged for any other"),
    Head("Guarantee"),
    Head("Why not", Kind.PROSE),
    Head("Noise", Kind.PROSE, "exact, or in floating point, as if that were real arithmetic"),
)
_AUDIT_HEADS = (
    *map(Head, ("Audited", "Task", "Neighbours")),
    Head("ε at least", Kind.NUMBER, "what the outputs prove"),
    Head("Ledger", Kind.NUMBER, "what the ledger's entries add up to"),
    Head("Stated", Kind.NUMBER),
    Head("Verdict"),
    Head("By", Kind.PROSE, "the pair of tables and the number of runs"),
    Head("Named in the ledger", Kind.PROSE),
)


def claim_sheet(claims: Iterable[ClaimVerdict]) -> Sheet:
    """Return the verdict on each statement with numbers, those that do not hold first."""
    ordered = sorted(claims, key=lambda found: found.outcome is not Outcome.FAILS)
    rows = tuple(map(_claim, ordered))
    return Sheet("claim-verdicts", "Statements with numbers", _CLAIM_HEADS, rows)


def _claim(found: ClaimVerdict) -> Row:
    claim = found.claim
    fields = (
        *(Cell(text) for text in (found.paper, claim.section, claim.states)),
        *(Cell(side.text if side else "") for side in (found.published, found.measured)),
        Cell(found.words, tone=tone(found.outcome.value)),
        Cell(" ".join(found.notes)),
    )
    return Row(fields, found.paper)


def ledger_sheet(spendings: Iterable[Spending]) -> Sheet:
    """Return the spent epsilon of each private method on each dataset."""
    return Sheet("spent", "Spent epsilon", _LEDGER_HEADS, tuple(map(_spent, spendings)))


def _spent(spending: Spending) -> Row:
    # Spaces that do not break keep each pair in one line.
    levels = [
        f"{s.stated:g}\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}{_number(s.spent)}"
        for s in spending.levels
    ]
    ratios = (spending.largest_share, spending.replace_one_share)
    shares = [f"{100 * ratio:.1f} %" if math.isfinite(ratio) else "no bound" for ratio in ratios]
    state = GuaranteeStatus.HOLDS if spending.stands else GuaranteeStatus.FAILS
    if spending.unverified:
        state = GuaranteeStatus.UNVERIFIED
    fields = (
        *(Cell(text) for text in (spending.dataset, spending.method, spending.adjacency)),
        Cell(f"{spending.delta:g}"),
        Cell(", ".join(levels or [f"{stated:g}" for stated in spending.unverified])),
        *(Cell("" if spending.unverified else share) for share in shares),
        Cell(state, tone=tone(state)),
        _why_not(spending),
        _noise(spending),
    )
    return Row(fields, None, spending.dataset, spending.method)


def _why_not(spending: Spending) -> Cell:
    reasons = {
        "more spent than stated": spending.is_overspent,
        "reads not covered by epsilon": spending.unaccounted,
        "gaps in the proof": spending.gaps,
        "its author's word: a method of one's own": spending.is_authors_word,
        f"{NO_LEDGER}, so nothing says what it spends": spending.unverified,
    }
    said = [name for name, found in reasons.items() if found]
    lines = [f"Read, but not covered by epsilon: {text}" for text in spending.unaccounted]
    lines += [f"Gap: {text}" for text in spending.gaps]
    return Cell(", ".join(said), more=tuple(lines))


def _noise(spending: Spending) -> Cell:
    """Return how noise is drawn; empty where no record says it."""
    if spending.floating_point is None:
        return Cell("")
    noise = Noise.FLOATING_POINT if spending.floating_point else Noise.EXACT
    return Cell(noise.value, more=spending.floating_point)


def _number(epsilon: float) -> str:
    return f"{epsilon:.4g}" if math.isfinite(epsilon) else "no bound"


def audit_sheet(audits: Sequence[Audit]) -> Sheet:
    """Return what outputs prove about the epsilon that each method spends."""
    rows = tuple(_audit(audit) for audit in audits)
    return Sheet("audited", "Lower bounds on epsilon from outputs", _AUDIT_HEADS, rows)


def _audit(audit: Audit) -> Row:
    tone_of_audit = "within" if audit.verdict is AuditVerdict.WITHIN else ""
    if audit.verdict.is_refuted:
        tone_of_audit = "exceeded"
    fields = (
        *(Cell(text or "") for text in (audit.subject, audit.task, audit.adjacency)),
        Cell(_bound(audit.lower_bound)),
        Cell(_bound(audit.spent_epsilon)),
        Cell(f"{audit.epsilon:g}"),
        Cell(audit.verdict.value, tone=tone_of_audit),
        Cell(_basis(audit)),
        Cell(f"{len(audit.gaps)}" if audit.gaps else "", more=audit.gaps),
    )
    return Row(fields, None, None, audit.subject)


def _basis(audit: Audit) -> str:
    if audit.guesses is not None:
        curve, sharper = audit.curve_bound, audit.independent_bound
        extra = "" if curve is None else f"; at least {curve:.3f} under a Gaussian trade-off curve"
        extra += "" if sharper is None else f"; at least {sharper:.3f} if the noise is independent"
        right = f"{audit.correct} of {audit.guesses} guesses right in one run"
        return f"{audit.neighbours}; {right}{extra}"
    runs = "" if audit.trials is None else f"; {audit.trials:,} runs"
    most = "" if audit.ceiling is None else f"; at most {audit.ceiling:.3f} can be shown here"
    return f"{audit.neighbours}{runs}, bound by {audit.bound}{most}"


def _bound(epsilon: float | None) -> str:
    return "infinite" if epsilon is None else f"{epsilon:.3f}"


_FIGURES = ("Published", "Measured", "Difference", "z")
_HEADS = (
    *map(Head, ("Document", "Dataset", "Method")),
    Head("ε", Kind.NUMBER),
    Head("Metric"),
    *(Head(name, Kind.NUMBER) for name in _FIGURES),
    Head("Verdict"),
)
_MISSING_HEADS = (
    *map(Head, ("Document", "Table", "Dataset")),
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
        *map(Cell, (printed.paper, printed.dataset, printed.method)),
        level_cell(printed.epsilon),
        Cell(find_metric(printed.metric).title),
        *(Cell(figures[name]) for name in _FIGURES),
        verdict_cell(cell.verdict),
    )
    return Row(fields, printed.paper, printed.dataset, printed.method, verdict)


def missing_sheet(report: CheckReport, unjudged: Mapping[str, int]) -> Sheet:
    """Return the printed cells without a final verdict, counted by reason.

    `unjudged` has by document the number of printed cells that no layout takes in.
    """
    rows = list(_missing(report.verdicts))
    state = Cell("not judged", tone="none")
    why = Cell("printed, but not laid out for comparison")
    for paper, count in unjudged.items():
        if count:
            rows.append(Row((*map(Cell, (paper, "", "", f"{count}")), state, why), paper))
    return Sheet("missing", "Printed cells that were not judged", _MISSING_HEADS, tuple(rows))


def _missing(verdicts: Iterable[CellVerdict]) -> Iterator[Row]:
    counts = Counter(
        (printed.paper, printed.table, printed.dataset, cell.verdict, cell.note)
        for cell in verdicts
        for printed in (cell.published,)
        if cell.verdict in _MISSING
    )
    ordered = sorted(counts.items(), key=lambda item: _MISSING.index(item[0][3]))
    for (paper, table, dataset, verdict, note), count in ordered:
        is_absent = verdict is Verdict.NOT_RUN
        why = note or ("no journal holds a result for it" if is_absent else "")
        place = map(Cell, (paper, table, dataset, f"{count}"))
        fields = (*place, verdict_cell(verdict), Cell(why))
        yield Row(fields, paper, dataset, None, verdict.value)
