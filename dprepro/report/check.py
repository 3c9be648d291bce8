"""Render a check for terminals: verdicts, counts, claims, and every deviation with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from dprepro.judge.check import Again, CheckReport, LeftOut, Stale
from dprepro.judge.claims import ClaimVerdict, Outcome
from dprepro.judge.forensics import column_of
from dprepro.judge.omnibus import ColumnVerdict
from dprepro.judge.rerun import RerunReport
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.papers.hypotheses import load_hypotheses
from dprepro.privacy.guarantee_status import NO_LEDGER
from dprepro.report.findings import RECORD, advice, outcome_in_words, place_in_words
from dprepro.report.forensics import render_choices
from dprepro.report.formatting import (
    FIGURES,
    chosen_in_words,
    p_in_words,
    together_in_words,
    unfinished_in_words,
    verdict_figures,
)
from dprepro.report.short import counted_in_words, outcome_style
from dprepro.report.tables import STYLES
from dprepro.results.margins import find_metric, level
from dprepro.results.result_cell import TUNED_NOTE
from dprepro.runtime.terminal import (
    Renderable,
    StackedColumn,
    below,
    counted,
    indented,
    stacked_table,
)
from dprepro.runtime.text import shell

# A note is a sentence: it is not read a word a line.
_NOTE_WIDTH = 24
_MOST_CHANGES = 20
FEW_CELLS = 12
"""As many verdicts fit a few screens, a block each; more stand in tables."""

_NAMES = {"n": "Splits, theirs"}
_WIDTH = max(map(len, (*FIGURES, *_NAMES.values())))
_CLAIM_STYLES = {
    Outcome.HOLDS: "green",
    Outcome.FAILS: "red",
    Outcome.NOT_RUN: "dim",
    Outcome.IMPOSSIBLE: "dim",
}


def render_check(
    report: CheckReport, require_all: bool = False, left_out: LeftOut | None = None
) -> Renderable:
    """Return the whole check: outcome, counts, a map of verdicts, the deviations.

    Outcome and counts stand first, and again at the end, where a terminal stops. Of a part of a
    check, few cells are shown one by one, and what was left out is counted.
    """
    if left_out is not None and len(report.verdicts) <= FEW_CELLS:
        blocks = below(*(part for cell in report.verdicts for part in _block(cell, report)))
        claims = [render_claims(report.claims)] if report.claims else []
        ends = [*_notes(report), *_summary(report, require_all, left_out)]
        return below(blocks, *claims, *ends)
    symbols = ", ".join(f"{verdict.symbol} {verdict.value}" for verdict in Verdict)
    parts: list[Renderable] = [_outcome(report, require_all)]
    parts += [_counts(paper, report.of_paper(paper)) for paper in report.papers]
    if any(cell.result and column_of(cell.published) in report.choices for cell in report.verdicts):
        parts += ["", render_choices(report)]
    if report.unexplained:
        parts.append(_deviations("Deviations without an explanation", report.unexplained))
    parts += ["", *_verdict_maps(report.verdicts), Text(symbols, style="dim"), _margins(report)]
    if report.different:
        parts.append(_columns(report))
    for title, cells in (
        ("Explained deviations", report.understood),
        ("Reviewed deviations, cause unknown", report.unknown),
        ("Inconclusive here, and known to differ by other evidence", report.known),
    ):
        if cells:
            parts.append(_deviations(title, cells))
            parts += _reasons(cells)
    if report.unfinished:
        found = unfinished_in_words(report)
        parts.append(Text(f"{found[:1].upper()}{found[1:]}.", style="yellow"))
    parts += [_stale(stale) for stale in report.stale]
    for what, cells in (
        (
            f"Unverified, since the method {NO_LEDGER}, so nothing says what it spends",
            report.unverified,
        ),
        (f"Tuned ({TUNED_NOTE})", report.tuned),
    ):
        if cells:
            places = ", ".join(str(cell.published) for cell in cells)
            parts.append(Text(f"{what}: {places}.", style="yellow"))
    if report.claims:
        parts.append(render_claims(report.claims))
    parts += [_stale_claim(claim) for claim in report.stale_claims]
    parts += [*_notes(report), *_summary(report, require_all, left_out)]
    return below(*parts)


def _notes(report: CheckReport) -> list[Text]:
    return [Text(f"Note on {note}", style="dim") for note in report.notes]


def _summary(
    report: CheckReport, require_all: bool, left_out: LeftOut | None
) -> Iterator[Renderable]:
    if left_out is not None:
        numbers = (left_out.cells, "cell"), (left_out.claims, "claim"), (left_out.notes, "note")
        words = ", ".join(counted(number, noun) for number, noun in numbers)
        yield Text(f"\nLeft out, on other data, methods or documents: {words}.", style="dim")
    for paper in report.papers:
        yield counted_in_words(paper, report.of_paper(paper))
    yield _outcome(report, require_all)


def render_cells(cells: Sequence[CellVerdict]) -> Renderable:
    """Return every verdict with its numbers, one line each."""
    return _deviations("All cells", cells)


def render_rerun(report: RerunReport) -> Renderable:
    """Return what a fresh run gave beside the committed records."""
    compared = {name: value for name, value in report.tolerances.items() if value < math.inf}
    allowed = [f"{value:g} ({name})" for name, value in compared.items()]
    others = [name for name in report.tolerances if name not in compared]
    lines = [
        f"Rerun: {report.matched} tasks have a committed record; largest relative difference "
        f"{report.largest:.2g}, allowed {', '.join(allowed) or 'none'}."
    ]
    if others:
        lines.append(
            f"  Finished, and not compared: {', '.join(others)}. Its solver stops before it "
            "converges, so that the processor decides what it finds."
        )
    lines += [f"  differs: {mismatch}" for mismatch in report.mismatches]
    if report.missing:
        tasks = dict.fromkeys(f"{r.task.dataset}, {r.task.label}" for r in report.missing)
        lines.append(
            f"  {len(report.missing)} tasks have no finished committed record "
            f"({'; '.join(tasks)}): settings, data or a method's version changed since; "
            "run the configs again in full and commit the journals"
        )
    return Text("\n".join(lines), style="green" if report.passes else "bold red")


def render_again(found: Again) -> Renderable:
    """Return what `--fast` compares: tasks run again, and what was recorded."""
    parts = [render_rerun(found.rerun)]
    if found.changed is None:
        parts.append(
            Text("No cells are recorded beside the journals: `dprepro check --record`.", "dim")
        )
    elif found.changed:
        shown = found.changed[:_MOST_CHANGES]
        more = len(found.changed) - len(shown)
        lines = [f"Recorded cells: {len(found.changed)} differ.", *(f"  {line}" for line in shown)]
        lines += [f"  and {more} more"] if more else []
        lines.append(RECORD)
        parts.append(Text("\n".join(lines), "bold red"))
    else:
        parts.append(Text("Recorded cells: all cells and verdicts are as recorded.", "green"))
    if found.stale:
        parts.append(
            Text(f"Explanations that no longer apply: {found.stale}; remove them.", "bold red")
        )
    return below(*parts)


def _verdict_maps(verdicts: Sequence[CellVerdict]) -> list[Renderable]:
    """Lay out one symbol a cell, a map for each printed table."""
    tables: dict[tuple[str, str], list[CellVerdict]] = {}
    for cell in verdicts:
        tables.setdefault((cell.published.paper, cell.published.table), []).append(cell)
    return [_verdict_map(f"{paper}, Table {n}", cells) for (paper, n), cells in tables.items()]


def _verdict_map(title: str, verdicts: Sequence[CellVerdict]) -> Renderable:
    """Lay out one table; of several metrics the verdict is shown that needs most attention."""
    epsilons = sorted({cell.published.epsilon for cell in verdicts})
    rows: dict[tuple[str, str], dict[float, CellVerdict]] = {}
    for cell in verdicts:
        printed = cell.published
        row = rows.setdefault((printed.dataset, printed.method), {})
        row[printed.epsilon] = max(row.get(printed.epsilon, cell), cell, key=_urgency)
    datasets = [dataset for dataset, _ in rows]
    first = ["" if n == m else n for n, m in zip(datasets, ["", *datasets], strict=False)]
    columns = [StackedColumn("Dataset", first), StackedColumn("Method", [m for _, m in rows])]
    for epsilon in epsilons:
        found = [cells.get(epsilon) for cells in rows.values()]
        symbols = [Text(c.verdict.symbol, STYLES[c.verdict]) if c else Text("") for c in found]
        columns.append(StackedColumn(level(epsilon), [(symbol,) for symbol in symbols]))
    return stacked_table(title, columns, 2)


def _urgency(cell: CellVerdict) -> tuple[bool, bool, bool]:
    unfinished = cell.verdict in (Verdict.INCOMPLETE, Verdict.NOT_RUN)
    return cell.verdict.is_deviation, unfinished, cell.verdict is not Verdict.IMPOSSIBLE


def _margins(report: CheckReport) -> Text:
    widths = "; ".join(
        f"{find_metric(metric).title} {width}" for metric, width in report.margins.items()
    )
    return Text(
        "equivalent: the difference is shown to be smaller than the margin; better, worse: there "
        "is a difference, at 5 % for all cells of a document together, and it may be larger; "
        "inconclusive: neither is shown, so the cell says nothing for or against the document. "
        f"Margin: {widths}, at least half a unit of the last printed digit. docs/verdicts.md has "
        "the statistics.",
        style="dim",
    )


def _counts(paper: str, report: CheckReport) -> Text:
    line = counted_in_words(paper, report)
    for sentence in together_in_words(report):
        line.append(f"\n  {sentence}", style="dim")
    return line


def _cause(column: ColumnVerdict, report: CheckReport) -> str:
    if column in report.asked:
        return "tested"
    if column in report.untested:
        return "not reviewed"
    return "unknown" if any(map(column.holds, report.unknown)) else "explained"


def _columns(report: CheckReport) -> Renderable:
    """Lay out the columns that are different as a whole, and what is known of the causes."""
    different = report.different
    found = [column.omnibus for column in different]
    places = zip(*(column.place for column in different), strict=True)
    heads = ("Document", "Table", "Dataset", "Method")
    columns = [
        *(StackedColumn(head, list(own)) for head, own in zip(heads, places, strict=True)),
        StackedColumn("Cells", [(Text(f"{one.cells}"),) for one in found]),
        StackedColumn("Sum of squares", [(Text(f"{one.sum_of_squares:.0f}"),) for one in found]),
        StackedColumn("p", [(Text(p_in_words(one.p_value)),) for one in found]),
        StackedColumn("Causes", [_cause(column, report) for column in different]),
    ]
    return stacked_table("Columns that are different as a whole", columns, 4)


def _deviations(title: str, cells: Sequence[CellVerdict]) -> Renderable:
    printed = [cell.published for cell in cells]
    columns = [
        StackedColumn("Dataset", [p.dataset for p in printed]),
        StackedColumn("Method", [p.method for p in printed]),
        StackedColumn("ε", [level(p.epsilon) for p in printed]),
    ]
    figures = [verdict_figures(cell) for cell in cells]
    for heading in FIGURES:
        columns.append(StackedColumn(heading, [(Text(row[heading]),) for row in figures]))
    verdicts = [(Text(cell.verdict.value, STYLES[cell.verdict]),) for cell in cells]
    columns.append(StackedColumn("Verdict", verdicts))
    columns.append(StackedColumn("Note", [cell.remark for cell in cells], least=_NOTE_WIDTH))
    return stacked_table(title, columns, 3)


def _reasons(cells: Iterable[CellVerdict]) -> list[Text]:
    """Return each reason once, after the cells that it explains."""
    places: dict[str, list[str]] = {}
    for cell in cells:
        printed = cell.published
        place = f"{printed.dataset} {printed.method} {level(printed.epsilon)}"
        places.setdefault(str(cell.explanation), []).append(place)
    return [Text(f"  {', '.join(found)}: {reason}") for reason, found in places.items()]


def _stale(stale: Stale) -> Text:
    return Text(
        f"Stale explanation: {stale.cell.published} is listed as {stale.entry.expected} in the "
        f"deviations file, but is {stale.cell.verdict.value}; remove the entry.",
        style="yellow",
    )


def _block(cell: CellVerdict, report: CheckReport) -> Iterator[Renderable]:
    """Yield the block of a verdict: printed and measured number, z, interval, cause."""
    printed = cell.published
    head = Text(f"{cell.verdict.value}: ", style=STYLES[cell.verdict])
    yield head.append(place_in_words(cell), style="not dim bold")
    figures = {_NAMES.get(k, k): value for k, value in verdict_figures(cell).items() if value}
    lines = [f"{name:<{_WIDTH}}  {value}" for name, value in figures.items()]
    lines += [f"{'Note':<{_WIDTH}}  {cell.remark}"] if cell.remark else []
    if cell.verdict.is_deviation:
        what = "Reviewed" if cell.is_unknown else "Cause"
        lines.append(f"{what:<{_WIDTH}}  {cell.explanation or 'not reviewed yet'}")
    elif cell.explanation:
        lines.append(f"{'Differs':<{_WIDTH}}  {cell.explanation}")
    if chosen := chosen_in_words(column_of(printed), report):
        lines.append(f"{'Chosen':<{_WIDTH}}  {chosen}")
    if any(question.asks_about(*column_of(printed)) for question in load_hypotheses()):
        lines.append(
            f"{'Settings':<{_WIDTH}}  dprepro forensics "
            + shell("--dataset", printed.dataset, "--method", printed.method)
        )
    yield indented(Text("\n".join(lines)))


def render_claims(claims: Sequence[ClaimVerdict]) -> Renderable:
    """Return a block for each claim: its verdict, its words, and what both sides' cells say."""
    return below(
        Text("\nClaims", style="italic"), *(part for one in claims for part in _claim_block(one))
    )


def _claim_block(found: ClaimVerdict) -> Iterator[Renderable]:
    claim = found.claim
    head = Text(f"{found.words}: ", style=_CLAIM_STYLES[found.outcome])
    head.append(f"{found.paper}, {claim.section}: ", style="not dim bold")
    yield head.append(claim.states, style="not dim not bold")
    sides = (("Published", found.published), ("Measured", found.measured))
    lines = [f"{name}: {side.text}" for name, side in sides if side and side.text] + found.notes
    if lines:
        yield indented(Text("\n".join(lines)))


def _stale_claim(claim: ClaimVerdict) -> Text:
    return Text(
        f"Stale explanation: the claim {claim.claim.name} of {claim.paper} is listed in the "
        "deviations file, but holds; remove the entry.",
        style="yellow",
    )


def _outcome(report: CheckReport, require_all: bool) -> Text:
    """Say how the check ended, how much of the documents that is about, and what to do."""
    said = f"{outcome_in_words(report, require_all)} {advice(report)}".strip()
    return Text(said, outcome_style(report.passes(require_all), bool(report.unfinished)))
