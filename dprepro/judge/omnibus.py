"""Many cells judged as one: a printed column, or a whole document, by the sum of its z^2."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from dprepro.judge.two_means import score_difference
from dprepro.judge.verdicts import CellVerdict, Verdict, shared_level
from dprepro.papers.document import Document

# A smaller p-value would have no logarithm.
_SMALLEST = 1e-300

FAR = 3.0
"""Cells with a larger |z| are counted, whatever their degrees of freedom."""


@dataclass(frozen=True)
class Omnibus:
    """What cells say together.

    Attributes
    ----------
    normal_scores
        By cell, the standard normal number with the sign and p-value of `z`. If no cell differs,
        each is a standard normal draw. Those of one dataset are correlated: they share splits.
    far
        How many cells have |z| > `FAR`.
    p_value
        Probability of so large a sum of squares if no cell differs; see `_effective`.
    """

    normal_scores: tuple[float, ...]
    far: int
    p_value: float

    @property
    def cells(self) -> int:
        """How many cells were judged. If none differs, the sum of squares is this on average."""
        return len(self.normal_scores)

    @property
    def sum_of_squares(self) -> float:
        """The sum of the squared normal scores."""
        return math.fsum(score**2 for score in self.normal_scores)


class ColumnState(str, Enum):
    """How a printed column compares with ours as a whole."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class ColumnVerdict:
    """A printed column: the cells of one method on one dataset in one metric, over all epsilons."""

    paper: str
    table: str
    dataset: str
    method: str
    metric: str
    omnibus: Omnibus
    state: ColumnState

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Document, table, dataset and method."""
        return self.paper, self.table, self.dataset, self.method

    def holds(self, cell: CellVerdict) -> bool:
        """Whether a cell is one of the column's."""
        printed = cell.published
        place = (printed.paper, printed.table, printed.dataset, printed.method, printed.metric)
        return place == (self.paper, self.table, self.dataset, self.method, self.metric)

    def __str__(self) -> str:
        return f"{self.paper} table {self.table}: {self.dataset}, {self.method} ({self.metric})"


def omnibus(verdicts: Iterable[CellVerdict]) -> Omnibus | None:
    """Return what the judged ones of these cells say together; None where there are none."""
    cells = _judged(verdicts)
    if not cells:
        return None
    scores = tuple(normal_score(cell) for cell in cells)
    effective = _effective(cells)
    together = math.fsum(score**2 for score in scores)
    from scipy.special import chdtrc  # see `dprepro.judge.two_means.compare`

    p_value = float(chdtrc(effective, together * effective / len(cells)))
    return Omnibus(scores, sum(abs(_z(cell)) > FAR for cell in cells), p_value)


def normal_score(cell: CellVerdict) -> float:
    """Return the standard normal number with the sign and the p-value of the cell's z."""
    if cell.comparison is None:
        return math.nan
    logarithm = math.log(0.5) + float(np.log(max(cell.comparison.p_difference, _SMALLEST)))
    from scipy.special import ndtri_exp

    return math.copysign(float(ndtri_exp(logarithm)), cell.comparison.z)


def columns(document: Document, verdicts: Sequence[CellVerdict]) -> list[ColumnVerdict]:
    """Return the judged columns of a document, in printed order.

    A column is equivalent if every one of its cells is. Else it is different if one of its cells
    is, or if its `Omnibus.p_value` is below its level, and inconclusive if not. Of the level of the
    document a column has the share of its cells: 5 % k/m for k of m cells. The tests of cells have
    5 %, too.
    """
    grouped: dict[tuple[str, str, str, str], list[CellVerdict]] = {}
    for cell in verdicts:
        printed = cell.published
        if printed.paper == document.paper and cell.verdict is not Verdict.IMPOSSIBLE:
            place = (printed.table, printed.dataset, printed.method, printed.metric)
            grouped.setdefault(place, []).append(cell)
    total = sum(map(len, grouped.values()))
    found = []
    for place, cells in grouped.items():
        together = omnibus(cells)
        if together is not None:
            state = _state(together, cells, shared_level(total / len(cells)))
            found.append(ColumnVerdict(document.paper, *place, together, state))
    return found


def _state(together: Omnibus, cells: Sequence[CellVerdict], level: float) -> ColumnState:
    # Each cell is tested at 5 %, so that all of them are wrong together at 5 % at most.
    if all(cell.verdict is Verdict.EQUIVALENT for cell in _judged(cells)):
        return ColumnState.EQUIVALENT
    if together.p_value < level or any(cell.verdict.is_deviation for cell in cells):
        return ColumnState.DIFFERENT
    return ColumnState.INCONCLUSIVE


def _judged(verdicts: Iterable[CellVerdict]) -> list[CellVerdict]:
    return [cell for cell in verdicts if cell.verdict.is_final and cell.comparison is not None]


def _z(cell: CellVerdict) -> float:
    return cell.comparison.z if cell.comparison else math.nan


def _effective(cells: Sequence[CellVerdict]) -> float:
    """Return how many independent squares a sum of squares of these z is worth.

    With correlations R a sum of k squares has the mean k and the variance 2 tr(R^2). It is taken as
    k/f times chi-squared with f = k^2 / tr(R^2) degrees of freedom (Satterthwaite). R is that of
    our values over splits, and the document's cells are taken to be correlated as ours are.
    Squares of sample correlations r over n splits are too large by (1 - r^2) / (n - 2). Where some
    cells have more splits of ours, those of the first look count, which all cells have.
    """
    groups: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    for cell in cells:
        metric = cell.published.metric
        values = cell.result.as_printed.values[metric] if cell.result else ()
        groups.setdefault((cell.published.dataset, len(values)), []).append(values)
    trace = float(len(cells))
    for (_, splits), rows in groups.items():
        moving = [row for row in rows if splits > 2 and score_difference(max(row), min(row))]
        if len(moving) > 1:
            correlations = np.atleast_2d(np.corrcoef(moving))
            squared = correlations[~np.eye(len(moving), dtype=bool)] ** 2
            trace += max(0.0, float((squared - (1 - squared) / (splits - 2)).sum()))
    return len(cells) ** 2 / trace
