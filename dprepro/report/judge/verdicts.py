"""A verdict on every printed cell, from the results, the document and the tolerances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from dprepro.published.document import Document, Protocol
from dprepro.published.published import PublishedCell
from dprepro.report.judge.answers import answer, following
from dprepro.report.judge.clash import Clash
from dprepro.report.judge.statistics import Comparison, Sample, compare
from dprepro.report.read.metrics import METRICS, Tolerance, find_metric
from dprepro.report.read.results import ResultCell, Results


class Verdict(str, Enum):
    """How a measured cell compares with the printed one."""

    REPRODUCED = "reproduced"
    BETTER = "better"
    WORSE = "worse"
    INCOMPLETE = "incomplete"
    NOT_RUN = "not run"
    IMPOSSIBLE = "impossible"

    @property
    def is_deviation(self) -> bool:
        """Whether the verdict needs an explanation."""
        return self in (Verdict.BETTER, Verdict.WORSE)

    @property
    def is_final(self) -> bool:
        """Whether it rests on a mean over all the splits that a verdict takes."""
        return self is Verdict.REPRODUCED or self.is_deviation

    @property
    def symbol(self) -> str:
        """One character for narrow tables."""
        return {
            Verdict.REPRODUCED: "=",
            Verdict.BETTER: "↑",
            Verdict.WORSE: "↓",
            Verdict.INCOMPLETE: "…",
            Verdict.NOT_RUN: "·",
            Verdict.IMPOSSIBLE: "×",
        }[self]


@dataclass(frozen=True)
class CellVerdict:
    """The verdict on one printed cell.

    Attributes
    ----------
    result
        What was measured, or None.
    tolerance
        Largest difference that counts as reproduced, in units of the metric; None if not measured.
    comparison
        Difference (measured minus published), interval and equivalence test; None where fewer
        than two splits finished.
    note
        Why the verdict is not final: missing splits, several results, or the reason why the cell is
        impossible. Or "3 of 10 splits" where fewer splits are judged than were printed.
    explanation
        The reviewed reason of a deviation, or None.
    """

    published: PublishedCell
    verdict: Verdict
    result: ResultCell | None = None
    tolerance: float | None = None
    comparison: Comparison | None = None
    note: str = ""
    explanation: str | None = None

    @property
    def measured(self) -> float | None:
        """The measured mean, or None."""
        metric = self.published.metric
        if self.result is None or not self.result.splits(metric):
            return None
        return self.result.mean(metric)

    @property
    def difference(self) -> float | None:
        """Measured minus published mean, or None."""
        return None if self.measured is None else self.measured - self.published.mean

    @property
    def is_unexplained(self) -> bool:
        """Whether this is a deviation without a reviewed reason."""
        return self.verdict.is_deviation and self.explanation is None


def judge_cells(
    document: Document,
    results: Results,
    tolerances: Mapping[str, Tolerance],
    cells: Iterable[PublishedCell] | None = None,
    min_splits: int | None = None,
) -> list[CellVerdict]:
    """Return a verdict on each printed cell of `document`, in printed order.

    Parameters
    ----------
    tolerances
        By metric; see `dprepro.report.read.metrics.tolerances`. A cell judged on fewer splits than
        the document's gets two standard errors on top.
    cells
        Only these printed cells; default all of the document's.
    min_splits
        Judge from this many splits on; default those that the document's protocol is judged on,
        all unless it says so. Fewer make the verdict "incomplete", and so do several results
        with different settings that answer to one cell.
    """
    wanted = document.cells() if cells is None else cells
    return [_judge(cell, document, results, tolerances, min_splits) for cell in wanted]


def _judge(
    cell: PublishedCell,
    document: Document,
    results: Results,
    tolerances: Mapping[str, Tolerance],
    min_splits: int | None,
) -> CellVerdict:
    protocol = document.protocol_of(cell.table, cell.dataset)
    needed = min_splits or protocol.needed
    reason = document.why_impossible(cell)
    if reason is not None:
        return CellVerdict(cell, Verdict.IMPOSSIBLE, note=reason)
    result = answer(cell, document, results)
    if isinstance(result, Clash):
        return CellVerdict(cell, Verdict.INCOMPLETE, note=str(result))
    if result is None:
        return CellVerdict(cell, Verdict.NOT_RUN, note=_why_none(cell, document, results))
    if not result.splits(cell.metric):
        if result.failed:
            note = shortfall(result, cell, needed)
            return CellVerdict(cell, Verdict.INCOMPLETE, result, note=note)
        return CellVerdict(cell, Verdict.NOT_RUN, result, note="; ".join(result.messages))
    tolerance = tolerances[find_metric(cell.metric).name]
    return _compare(cell, result, protocol, tolerance, needed)


def _why_none(cell: PublishedCell, document: Document, results: Results) -> str:
    """Say why none of the results at a printed cell answers to it; empty where there are none."""
    if following(cell, document, results):
        return f"results without {find_metric(cell.metric).title}"
    candidates = results.all(cell.dataset, cell.method, cell.epsilon)
    if any(result.task.is_synthetic for result in candidates):
        return "results of synthetic data"
    return "results of another delta, evaluation or document" if candidates else ""


def _compare(
    cell: PublishedCell,
    result: ResultCell,
    protocol: Protocol,
    tolerance: Tolerance,
    needed: int,
) -> CellVerdict:
    sd = result.sd(cell.metric)
    width = tolerance.width(cell, sd)
    width += _sampling_error(sd, result.splits(cell.metric), protocol.splits)
    comparison = None
    if sd is not None:
        measured = Sample(
            result.mean(cell.metric), sd, result.splits(cell.metric), result.task.test_share
        )
        # A mean printed without a standard deviation counts as exact: its spread is not known.
        splits = protocol.splits if cell.std is not None else 1
        published = Sample(cell.mean, cell.std or 0.0, splits, protocol.held_out, cell.half_unit)
        comparison = compare(measured, published, width)
    if result.is_complete(cell.metric, needed):
        verdict = within(result.mean(cell.metric) - cell.mean, width, cell.metric)
        is_part = protocol.judged_on and result.splits(cell.metric) < protocol.splits
        note = shortfall(result, cell, protocol.splits) if is_part else ""
    else:
        verdict, note = Verdict.INCOMPLETE, shortfall(result, cell, needed)
    return CellVerdict(cell, verdict, result, width, comparison, note)


def _sampling_error(sd: float | None, splits: int, full: int) -> float:
    """Return what the tolerance gains where fewer splits are judged than were printed.

    A mean over the first J of F splits differs from that over all of them with standard deviation
    sd * sqrt(1/J - 1/F); two of these are allowed.
    """
    return 2 * sd * math.sqrt(1 / splits - 1 / full) if sd and splits < full else 0.0


def within(difference: float, width: float, metric: str) -> Verdict:
    """Return reproduced, better or worse for a difference (measured minus published).

    A difference of exactly `width` is reproduced, whatever the rounding of the subtraction.
    """
    if abs(difference) <= width or math.isclose(abs(difference), width, rel_tol=1e-9):
        return Verdict.REPRODUCED
    is_better = (difference > 0) == METRICS[metric].higher_is_better
    return Verdict.BETTER if is_better else Verdict.WORSE


def shortfall(result: ResultCell, cell: PublishedCell, needed: int) -> str:
    """Say how many splits are there and how many failed: ``"22 of 25 splits, 3 failed"``."""
    failed = f", {result.failed} failed" if result.failed else ""
    return f"{result.splits(cell.metric)} of {needed} splits{failed}"
