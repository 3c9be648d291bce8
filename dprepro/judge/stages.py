"""A run in stages: which cells are decided, and which of the others more splits can decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dprepro.judge.statistics import Sample, compare, shares
from dprepro.judge.verdicts import CellVerdict, Verdict, cell_level, printed_sample
from dprepro.papers.document import Document
from dprepro.results.folder import Results

Place = tuple[str, float]
"""The label and the epsilon of a cell of one config."""


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
class Standing:
    """Measured cells after a look: decided, worth more splits, and beyond what splits can do."""

    decided: tuple[CellVerdict, ...]
    open: tuple[CellVerdict, ...]
    limited: tuple[CellVerdict, ...]

    @property
    def places(self) -> set[Place]:
        """Where more splits are to be run; a place can have several metrics."""
        return {(cell.published.method, cell.published.epsilon) for cell in self.open}


def standing(
    verdicts: Iterable[CellVerdict], document: Document, looks: tuple[int, ...]
) -> Standing:
    """Divide the measured cells among `verdicts`; `looks` are those of the whole run."""
    level = cell_level(document)
    decided, remaining, limited = [], [], []
    for cell in verdicts:
        if cell.measured is None:
            continue
        if cell.verdict is Verdict.EQUIVALENT or cell.verdict.is_deviation:
            decided.append(cell)
        elif cell.verdict.is_final and _can_be_decided(cell, document, looks, level):
            remaining.append(cell)
        else:
            limited.append(cell)
    return Standing(tuple(decided), tuple(remaining), tuple(limited))


def _can_be_decided(
    cell: CellVerdict, document: Document, looks: tuple[int, ...], level: float
) -> bool:
    """Whether the last look can decide a cell.

    That is, whether it would be equivalent if the means were equal then, or different if they lay
    as far apart as now. Neither depends on which way the difference will move.
    """
    assert cell.result is not None
    assert cell.measured is not None
    assert cell.margin is not None
    printed, most, share = printed_sample(cell.published, document), looks[-1], shares(looks)[-1]
    spread = cell.result.sd(cell.published.metric)
    at_best = compare(Sample(printed.mean, spread, most), printed, cell.margin, share)
    as_now = compare(Sample(cell.measured, spread, most), printed, cell.margin, share)
    return bool((at_best and at_best.is_equivalent) or (as_now and as_now.is_different(level)))


def seconds_of_a_split(results: Results) -> Mapping[Place, float]:
    """Return how long one split of a cell took on average, by label and epsilon."""
    found: dict[Place, float] = {}
    for journal in results.held:
        took = np.nansum(list(journal.table.seconds.values()), axis=0)
        for part in journal.parts:
            found[part.task.label, part.task.epsilon] = float(took[part.rows].mean())
    return found
