"""A verdict on every printed cell, from the results, the document and the margins.

Also what would decide an inconclusive cell, such as so many splits of ours, and in a run by stages
which cells are decided and which of the others more splits can decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from dprepro.judge.cell_matching import Clash, answer, following
from dprepro.judge.two_means import LEVEL, Comparison, Sample, compare, shares
from dprepro.papers.document import Document
from dprepro.papers.published_cell import PublishedCell
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Margin, find_metric

# As many of ours as one likes: what they add to an error is far below any printed digit.
_MOST_SPLITS = 10**7


class LimitedBy(str, Enum):
    """What keeps a cell from a verdict.

    OUR_SPLITS: more splits of ours would decide it. DIFFERENCE: not at the present difference,
    which lies too near the margin; with more splits it may move away. PRINTED_SPREAD,
    NO_PRINTED_SD: the printed mean itself is not known well enough to be shown equivalent; without
    a printed standard deviation it counts as a single run.
    """

    OUR_SPLITS = "our splits"
    DIFFERENCE = "difference near the margin"
    PRINTED_SPREAD = "printed spread"
    NO_PRINTED_SD = "no printed sd"


@dataclass(frozen=True)
class Undecided:
    """What limits an inconclusive cell; `splits` of ours in all would decide it (None: none)."""

    limited_by: LimitedBy
    splits: int | None = None

    def __str__(self) -> str:
        if self.splits is not None:
            return f"{self.splits:,} splits of ours would decide it"
        if self.limited_by is LimitedBy.DIFFERENCE:
            return "difference too near the margin for more splits of ours to decide"
        is_spread = self.limited_by is LimitedBy.PRINTED_SPREAD
        reason = "limited by the printed spread" if is_spread else "no printed sd"
        return f"{reason}: more splits of ours do not decide it"


def splits_needed(
    ours: Sample, published: Sample, margin: float, level: float, share: float = 1.0
) -> Undecided:
    """Return the least number n of our splits that would decide an inconclusive cell.

    With n splits of ours the standard error of the difference d is (see `compare`)

        e(n)^2 = s(n)^2 (1/n + 1/J) + unit^2/12,
        s(n)^2 = ((n - 1) sd^2 + (J - 1) sd_printed^2) / (n + J - 2)

    for J printed splits. d, both standard deviations, J and the unit stay as they are now. A cell
    is decided if |d| + t e(n) < margin, t being the 95 % quantile of Student's t (equivalent), or
    if the test of d = 0 rejects at `level` (different). For large n, e(n)^2 falls to
    sd^2/J + unit^2/12 and no further. If 1.645 times this exceeds the margin, not even d = 0 could
    be shown equivalent: the printed side limits the cell. d changes as splits are added, so n is an
    estimate, no promise.

    Parameters
    ----------
    margin
        Largest difference that counts as equivalent, in units of the metric.
    level, share
        Of the test of no difference, and the share of both levels that the last look at the cell
        has (`two_means.shares`).
    """

    def decides(splits: int, mean: float = ours.mean) -> bool:
        found = compare(replace(ours, splits=splits, mean=mean), published, margin, share)
        return found is not None and (found.is_equivalent or found.is_different(level))

    if not decides(_MOST_SPLITS):
        if decides(_MOST_SPLITS, published.mean):
            return Undecided(LimitedBy.DIFFERENCE)
        has_spread = published.sd is not None or published.least_sd > 0
        return Undecided(LimitedBy.PRINTED_SPREAD if has_spread else LimitedBy.NO_PRINTED_SD)
    low, high = ours.splits, _MOST_SPLITS
    while high - low > 1:  # `low` does not decide, `high` does
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return Undecided(LimitedBy.OUR_SPLITS, high)


class Verdict(str, Enum):
    """How a measured cell compares with the printed one.

    EQUIVALENT: shown to lie within the margin, whether or not a difference is detected. BETTER,
    WORSE: a difference is detected, and it may be larger. INCONCLUSIVE: neither is shown.
    """

    EQUIVALENT = "equivalent"
    BETTER = "better"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"
    INCOMPLETE = "incomplete"
    NOT_RUN = "not run"
    IMPOSSIBLE = "impossible"

    @property
    def is_deviation(self) -> bool:
        """Whether the verdict is *different*: it needs an explanation."""
        return self in (Verdict.BETTER, Verdict.WORSE)

    @property
    def is_final(self) -> bool:
        """Whether it rests on a mean over all the splits that a verdict takes."""
        return self in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE) or self.is_deviation

    @property
    def symbol(self) -> str:
        """One character for narrow tables."""
        return {
            Verdict.EQUIVALENT: "≈",
            Verdict.BETTER: "↑",
            Verdict.WORSE: "↓",
            Verdict.INCONCLUSIVE: "?",
            Verdict.INCOMPLETE: "…",
            Verdict.NOT_RUN: "·",
            Verdict.IMPOSSIBLE: "×",
        }[self]


@dataclass(frozen=True)
class CellVerdict:
    """The verdict on one printed cell.

    Attributes
    ----------
    margin
        Largest difference that counts as equivalent, in units of the metric; None if not measured.
    comparison
        Of measured minus published; None where neither side has a standard deviation.
    published_splits
        How many splits the printed mean stands for: 1 for a single run, or one draw of noise.
    note
        Why the verdict is not final: missing splits, several results, or the reason why the cell is
        impossible. Or "3 of 10 splits" where fewer splits are judged than were printed, and
        "25 printed, 400 of ours" where more are.
    explanation, is_unknown
        The reviewed reason of a deviation, and whether it says that no cause was found.
    undecided
        What would decide an inconclusive cell; None for all others.
    """

    published: PublishedCell
    verdict: Verdict
    result: ResultCell | None = None
    margin: float | None = None
    comparison: Comparison | None = None
    published_splits: int = 1
    note: str = ""
    explanation: str | None = None
    is_unknown: bool = False
    undecided: Undecided | None = None

    @property
    def measured(self) -> float | None:
        """The measured mean, or None."""
        metric = self.published.metric
        return self.result.mean(metric) if self.result and self.result.splits(metric) else None

    @property
    def difference(self) -> float | None:
        """Measured minus published mean, or None."""
        return None if self.measured is None else self.measured - self.published.mean

    @property
    def remark(self) -> str:
        """The note, and what would decide an inconclusive cell; empty where there is neither."""
        return "; ".join(filter(None, (self.note, str(self.undecided or ""))))

    @property
    def is_unexplained(self) -> bool:
        """Whether this is a deviation without a reviewed reason."""
        return self.verdict.is_deviation and self.explanation is None


def judge_cells(
    document: Document,
    results: Results,
    margins: Mapping[str, Margin],
    cells: Iterable[PublishedCell] | None = None,
    min_splits: int | None = None,
) -> list[CellVerdict]:
    """Return a verdict on each printed cell of `document`, in printed order.

    A cell is equivalent if both one-sided tests at 5 % put it within its margin. Else it is
    different if its test of no difference rejects at the `cell_level` of the document, and
    inconclusive if not. Which other cells were run does not matter.

    Parameters
    ----------
    margins
        By metric; see `dprepro.results.margins.margins`.
    cells
        Only these printed cells; default all of the document's.
    min_splits
        Judge from this many splits on; default those that the document's protocol is judged on,
        all unless it says so. Fewer make the verdict "incomplete", and so do several results
        with different settings that answer to one cell.
    """
    wanted = document.cells() if cells is None else cells
    level = cell_level(document)
    return [_judge(cell, document, results, margins, min_splits, level) for cell in wanted]


def cell_level(document: Document) -> float:
    """Return the level of the test of one cell: 5 %/m (Bonferroni).

    m is the number of printed cells that can be run, by a user's own methods too. If nothing
    differs, 95 % of documents have no cell that is called different, whatever the correlation of
    their cells.
    """
    cells = sum(document.why_impossible(cell, is_run=True) is None for cell in document.cells())
    return shared_level(cells)


def shared_level(tests: float) -> float:
    """Return the level of each of `tests` tests that have 5 % together."""
    return LEVEL / max(tests, 1.0)


def _judge(
    cell: PublishedCell,
    document: Document,
    results: Results,
    margins: Mapping[str, Margin],
    min_splits: int | None,
    level: float,
) -> CellVerdict:
    needed = min_splits or document.protocol_of(cell.table, cell.dataset).needed
    splits = printed_sample(cell, document).splits
    blank = CellVerdict(cell, Verdict.NOT_RUN, published_splits=splits)
    result = answer(cell, document, results)
    if (reason := document.why_impossible(cell, is_run=result is not None)) is not None:
        return replace(blank, verdict=Verdict.IMPOSSIBLE, note=reason)
    if isinstance(result, Clash):
        return replace(blank, verdict=Verdict.INCOMPLETE, note=str(result))
    if result is None:
        return replace(blank, note=_why_none(cell, document, results))
    if not result.splits(cell.metric):
        if result.failed:
            note = shortfall(result, cell, needed)
            return replace(blank, verdict=Verdict.INCOMPLETE, result=result, note=note)
        return replace(blank, result=result, note="; ".join(result.messages))
    margin = margins[find_metric(cell.metric).name].width(cell)
    return _look(cell, result.more.get(document.paper, result), document, margin, needed, level)


def _why_none(cell: PublishedCell, document: Document, results: Results) -> str:
    """Say why none of the results at a printed cell answers to it; empty where there are none."""
    if following(cell, document, results):
        return f"results without {find_metric(cell.metric).title}"
    candidates = results.all(cell.dataset, cell.method, cell.epsilon)
    if any(result.task.is_synthetic for result in candidates):
        return "results of synthetic data"
    return "results of another delta, evaluation or document" if candidates else ""


def _look(
    cell: PublishedCell,
    result: ResultCell,
    document: Document,
    margin: float,
    needed: int,
    level: float,
) -> CellVerdict:
    """Return the first verdict that is final at one of the looks, else the last; see `shares`."""
    if not result.looks:
        return _compare(cell, result, document, margin, needed, level)
    note = shortfall(result.first(result.looks[0]), cell, result.looks[0])
    found = CellVerdict(cell, Verdict.INCOMPLETE, result, margin, note=note)
    for look, share in zip(result.looks, shares(result.looks), strict=True):
        part = result.first(look)
        if not part.is_complete(cell.metric, look):
            break  # its run goes on
        found = _compare(cell, part, document, margin, look, level, share)
        if look > found.published_splits:
            found = replace(found, note=f"{found.published_splits} printed, {look} of ours")
        if found.verdict is not Verdict.INCONCLUSIVE:
            break
    return found


def _compare(
    cell: PublishedCell,
    result: ResultCell,
    document: Document,
    margin: float,
    needed: int,
    level: float,
    share: float = 1.0,
) -> CellVerdict:
    protocol = document.protocol_of(cell.table, cell.dataset)
    published = printed_sample(cell, document)
    ours = Sample(
        result.mean(cell.metric), result.sd(cell.metric), result.splits(cell.metric),
        overlap=protocol.overlap,
    )  # fmt: skip
    comparison = compare(ours, published, margin, share)
    found = CellVerdict(cell, Verdict.INCOMPLETE, result, margin, comparison, published.splits)
    if not result.is_complete(cell.metric, needed):
        return replace(found, note=shortfall(result, cell, needed))
    if comparison is None:
        return replace(found, note="one split on either side: no spread is known")
    is_part = protocol.judged_on and result.splits(cell.metric) < protocol.splits
    note = shortfall(result, cell, protocol.splits) if is_part else ""
    verdict = verdict_of(comparison, level, cell.metric)
    is_open = verdict is Verdict.INCONCLUSIVE
    undecided = splits_needed(ours, published, margin, level, share) if is_open else None
    return replace(found, verdict=verdict, note=note, undecided=undecided)


def printed_sample(cell: PublishedCell, document: Document) -> Sample:
    """Return a printed mean with what is known of its spread.

    A printed standard error stays as it is, whatever the splits of the protocol. A figure without a
    standard deviation counts as a single run. So does a mean over runs with one and the same
    noise, or one split: what they share does not vary between them, so their spread is a lower
    bound.
    """
    protocol = document.protocol_of(cell.table, cell.dataset)
    spread = document.spread_of(cell)
    is_single = spread is None or document.is_one_draw(cell)
    return Sample(
        cell.mean,
        None if is_single else spread,
        1 if is_single else cell.repeats if cell.repeats > 1 else protocol.splits,
        cell.half_unit,
        protocol.overlap,
        sd_half_unit=cell.sd_half_unit,
        least_sd=(spread or 0.0) if is_single else 0.0,
    )


def verdict_of(comparison: Comparison, level: float, metric: str) -> Verdict:
    """Return equivalent, better, worse or inconclusive.

    `level` is that of the test of no difference.
    """
    if comparison.is_equivalent:
        return Verdict.EQUIVALENT
    if not comparison.is_different(level):
        return Verdict.INCONCLUSIVE
    is_better = (comparison.difference > 0) == find_metric(metric).higher_is_better
    return Verdict.BETTER if is_better else Verdict.WORSE


def shortfall(result: ResultCell, cell: PublishedCell, needed: int) -> str:
    """Say how many splits are there and how many failed: ``"22 of 25 splits, 3 failed"``."""
    failed = f", {result.failed} failed" if result.failed else ""
    return f"{result.splits(cell.metric)} of {needed} splits{failed}"


def doubled(first: int, most: int) -> tuple[int, ...]:
    """Return after how many splits a run looks at its verdicts.

    Examples
    --------
    >>> doubled(25, 300)
    (25, 50, 100, 200, 300)
    """
    looks = [first]
    while looks[-1] < most:
        looks.append(min(2 * looks[-1], most))
    return tuple(looks)


@dataclass(frozen=True)
class Stage:
    """Measured cells after a look: decided, worth more splits, and beyond what splits can do."""

    decided: list[CellVerdict] = field(default_factory=list)
    open: list[CellVerdict] = field(default_factory=list)
    limited: list[CellVerdict] = field(default_factory=list)

    @property
    def places(self) -> set[tuple[str, float]]:
        """The labels and epsilons where more splits are to be run; one can have several metrics."""
        return {(cell.published.method, cell.published.epsilon) for cell in self.open}


def stage_of(verdicts: Iterable[CellVerdict], document: Document, looks: tuple[int, ...]) -> Stage:
    """Divide the measured cells among `verdicts`; `looks` are those of the whole run."""
    level, stage = cell_level(document), Stage()
    for cell in verdicts:
        if cell.verdict is Verdict.EQUIVALENT or cell.verdict.is_deviation:
            stage.decided.append(cell)
        elif cell.verdict.is_final and _can_be_decided(cell, document, looks, level):
            stage.open.append(cell)
        elif cell.measured is not None:
            stage.limited.append(cell)
    return stage


def _can_be_decided(
    cell: CellVerdict, document: Document, looks: tuple[int, ...], level: float
) -> bool:
    """Whether the last look would find equal means equivalent, or those of now different.

    Neither depends on which way the difference will move.
    """
    assert cell.result is not None
    assert cell.measured is not None
    assert cell.margin is not None
    printed, most, share = printed_sample(cell.published, document), looks[-1], shares(looks)[-1]
    spread = cell.result.sd(cell.published.metric)
    at_best = compare(Sample(printed.mean, spread, most), printed, cell.margin, share)
    as_now = compare(Sample(cell.measured, spread, most), printed, cell.margin, share)
    return bool((at_best and at_best.is_equivalent) or (as_now and as_now.is_different(level)))


def seconds_of_a_split(results: Results) -> Mapping[tuple[str, float], float]:
    """Return how long one split of a cell took on average, by label and epsilon."""
    found = {}
    for journal in results.held:
        took = np.nansum(list(journal.table.seconds.values()), axis=0)
        for part in journal.parts:
            found[part.task.label, part.task.epsilon] = float(took[part.rows].mean())
    return found
