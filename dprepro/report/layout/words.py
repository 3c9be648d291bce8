"""How the fields of a table, and what stands around them, read in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dprepro.privacy.unverified import NO_LEDGER
from dprepro.report.judge.verdicts import CellVerdict, Verdict
from dprepro.report.layout.view import Entry, Group, ResultTable
from dprepro.report.read.cell import TUNED_NOTE


@dataclass(frozen=True)
class Style:
    """What to show: published values and verdicts beside the measured, the epsilon really spent."""

    compare: bool = False
    true_epsilon: bool = False


@dataclass(frozen=True)
class Words:
    """An entry in words: the measured number, a mark on it, the published number, its verdict."""

    measured: str
    mark: str
    published: str
    verdict: Verdict | None
    is_best: bool


def words(entry: Entry, group: Group, metric: str, style: Style) -> Words:
    """Put an entry into words; numbers get the group's digits after the point."""
    result, verdict = entry.result, entry.verdict if style.compare else None
    measured, marks = "", []
    if result and result.splits(metric):
        measured = number(result.mean(metric), result.sd(metric), group.decimals)
    if result and not result.is_complete(metric, entry.planned):
        if result.skipped and not result.splits(metric) and not result.failed:
            marks.append("skipped")
        else:
            failed = f", {result.failed} failed" if result.failed else ""
            marks.append(f"{result.splits(metric)}/{entry.planned}{failed}")
    elif entry.clash:
        marks.append(entry.clash.mark)
    elif result and verdict and verdict.note and verdict.tolerance is not None:
        marks.append(verdict.note)
    if result and result.is_unverified:
        marks.append("unverified")
    if result and result.is_tuned:
        marks.append("tuned")
    if style.true_epsilon and result and result.true_epsilon is not None:
        marks.append(f"ε {result.true_epsilon:.3g}")
    printed = verdict.published if verdict else None
    published = number(printed.mean, printed.std, printed.decimals) if printed else ""
    mark = f"[{'; '.join(marks)}]" if marks else ""
    return Words(measured, mark, published, verdict.verdict if verdict else None, entry.is_best)


def number(mean: float, sd: float | None, decimals: int) -> str:
    """Return ``mean ± sd`` with `decimals` digits after the point."""
    spread = "" if sd is None else f" ± {sd:.{decimals}f}"
    return f"{mean:.{decimals}f}{spread}"


def verdict_figures(cell: CellVerdict) -> list[str]:
    """Return published, measured, difference, interval, tolerance and p-value of a verdict.

    All but the published get a digit more than printed: rounding hides it.
    """
    printed, result, comparison = cell.published, cell.result, cell.comparison
    digits = printed.decimals + 1
    measured, difference, interval, p_value = "", "", "", ""
    if result is not None and cell.measured is not None:
        measured = number(cell.measured, result.sd(printed.metric), digits)
        difference = f"{cell.difference:+.{digits}f}"
    if comparison is not None:
        interval = f"{comparison.low:+.{digits}f} to {comparison.high:+.{digits}f}"
        p_value = f"{comparison.p_equivalence:.2g}"
    width = "" if cell.tolerance is None else f"{cell.tolerance:.{digits}f}"
    published = number(printed.mean, printed.std, printed.decimals)
    return [published, measured, difference, interval, width, p_value]


def legend(tables: Sequence[ResultTable], style: Style) -> list[str]:
    """Return the sentences below a table: what its marks mean, and why entries are missing."""
    entries = [(e, t) for t in tables for g in t.groups for row in g.rows for e in row]
    lines = ["Mean ± standard deviation over splits; the best of a row is bold."]
    if any(e.result and not e.result.is_complete(t.metric.name, e.planned) for e, t in entries):
        lines.append("[n/m]: n of the m splits that make it complete have finished.")
    if any(e.clash for e, _ in entries):
        lines.append("[n results]: configs differ in its settings, see the notes.")
    if style.true_epsilon and any(
        e.result and e.result.true_epsilon is not None for e, _ in entries
    ):
        lines.append("[ε]: what the guarantee really spends, recomposed from the ledger.")
    if any(e.result and e.result.is_unverified for e, _ in entries):
        lines.append(
            f"[unverified]: the method {NO_LEDGER}; nothing says what was really spent, and it is "
            "never the best of a row."
        )
    if any(e.result and e.result.is_tuned for e, _ in entries):
        lines.append(f"[tuned]: {TUNED_NOTE}.")
    judged = {e.verdict.verdict for e, _ in entries if style.compare and e.verdict}
    if judged:
        symbols = ", ".join(f"{v.symbol} {v.value}" for v in Verdict if v in judged)
        lines.append(f"In brackets the published value and the verdict: {symbols}.")
    reasons = dict.fromkeys(
        f"{e.label}: {message}" for e, _ in entries if e.result for message in e.result.messages
    )
    notes = dict.fromkeys(f"Note: {note}" for table in tables for note in table.notes)
    return [*lines, *notes, *reasons]


def heading(table: ResultTable) -> str:
    """Return the table's title, with the document's table number where it has one."""
    return f"{table.paper}, Table {table.table}: {table.title}" if table.paper else table.title


def column_headings(table: ResultTable) -> list[str]:
    """Return the headings of all columns, those of the dataset and the level first."""
    return ["Dataset", "ε", *(column.title for column in table.columns)]
