"""Render few verdicts for terminals, a block each: the numbers, the cause, and where to look on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from dprepro.published.hypotheses import load_hypotheses
from dprepro.report.judge.check import CheckReport
from dprepro.report.judge.held_out import column_of
from dprepro.report.judge.verdicts import CellVerdict
from dprepro.report.layout.words import FIGURES, chosen_in_words, verdict_figures
from dprepro.report.levels import level
from dprepro.report.write.tables import STYLES
from dprepro.terminal import Renderable, below, indented
from dprepro.text import shell

FEW_CELLS = 12
"""As many verdicts fit a few screens, a block each; more stand in tables."""

_NAMES = {"n": "Splits, theirs"}
_WIDTH = max(map(len, (*FIGURES, *_NAMES.values())))


def render_blocks(report: CheckReport) -> Renderable:
    """Return a block for each verdict: printed and measured number, z, interval, cause."""
    return below(*(part for cell in report.verdicts for part in _block(cell, report)))


def _block(cell: CellVerdict, report: CheckReport) -> Iterator[Renderable]:
    printed = cell.published
    head = Text(f"{cell.verdict.value}: ", style=STYLES[cell.verdict])
    place = f"{printed.dataset}, {printed.method}, ε {level(printed.epsilon)}, {printed.metric}"
    yield head.append(f"{place} ({printed.paper}, Table {printed.table})", style="not dim bold")
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
    if _is_asked(cell):
        lines.append(
            f"{'Settings':<{_WIDTH}}  dprepro forensics "
            + shell("--dataset", printed.dataset, "--method", printed.method)
        )
    yield indented(Text("\n".join(lines)))


def _is_asked(cell: CellVerdict) -> bool:
    """Whether hypotheses about the column of a cell were tested."""
    printed = cell.published
    place = printed.paper, printed.table, printed.dataset, printed.method
    return any(question.asks_about(*place) for question in load_hypotheses())
