"""How far the results under a hypothesis lie from a printed column, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dprepro.judge.cell_matching import follows, keeps_to
from dprepro.judge.statistics import Comparison, Sample, compare
from dprepro.judge.verdicts import printed_sample
from dprepro.papers.cells import PublishedCell
from dprepro.papers.document import Document
from dprepro.papers.hypotheses import Hypothesis, Question
from dprepro.results.folder import ResultCell, Results
from dprepro.results.metrics import METRICS
from dprepro.runtime.errors import DpreproError


@dataclass(frozen=True)
class Distance:
    """A printed cell, and what was measured under a hypothesis.

    Attributes
    ----------
    mean, sd
        Ours, over `splits` random splits.
    z
        See `distance`.
    """

    printed: PublishedCell
    mean: float
    sd: float
    splits: int
    z: float


@dataclass(frozen=True)
class Trial:
    """A hypothesis on one dataset. `distances` are by epsilon; a cell that was not run has none."""

    hypothesis: Hypothesis
    dataset: str
    distances: tuple[Distance | None, ...]

    @property
    def sum_of_squares(self) -> float | None:
        """Return the sum of z^2 over all cells, about their number if it is true.

        None if a cell was not run: no hypothesis is judged by some of its cells.
        """
        found = [distance for distance in self.distances if distance is not None]
        if len(found) < len(self.distances):
            return None
        return math.fsum(distance.z**2 for distance in found)

    @property
    def splits(self) -> tuple[int, int]:
        """The fewest and the most splits of a cell; (0, 0) if none was run."""
        found = [d.splits for d in self.distances if d is not None] or [0]
        return min(found), max(found)


@dataclass(frozen=True)
class Column:
    """A question on one dataset: its printed cells by epsilon, and the trials, nearest first."""

    question: Question
    dataset: str
    printed: tuple[PublishedCell, ...]
    trials: tuple[Trial, ...]


def distance(cell: PublishedCell, document: Document, result: ResultCell) -> Distance | None:
    """Compare a printed cell with a result, as verdicts do; None if no spread is known.

    z is that of `dprepro.judge.statistics.compare`.
    """
    found = compared(cell, document, result)
    if found is None:
        return None
    mean, sd = result.mean(cell.metric), result.sd(cell.metric)
    return Distance(cell, mean, sd or 0.0, result.splits(cell.metric), found.z)


def compared(cell: PublishedCell, document: Document, result: ResultCell) -> Comparison | None:
    """Return the comparison that `distance` is a part of."""
    mean, sd = result.mean(cell.metric), result.sd(cell.metric)
    if sd is None:
        return None
    margin = METRICS[cell.metric].margin.width(cell)
    sample = Sample(mean, sd, result.splits(cell.metric))
    return compare(sample, printed_sample(cell, document), margin)


def columns_of(
    questions: Iterable[Question], documents: Sequence[Document], results: Results
) -> list[Column]:
    """Return the columns of all questions, in file order, one for each dataset."""
    by_name = {document.paper: document for document in documents}
    return [
        _column(question, by_name[question.paper], dataset, results)
        for question in questions
        if question.paper in by_name
        for dataset in question.datasets
    ]


def printed_column(
    document: Document, table: str, dataset: str, method: str
) -> tuple[PublishedCell, ...]:
    """Return the cells of a printed column in the table's first metric, by epsilon."""
    metric = document.tables[table].metric
    cells = (
        cell
        for cell in document.cells()
        if (cell.table, cell.dataset) == (table, dataset)
        and (cell.method, cell.metric) == (method, metric)
    )
    return tuple(sorted(cells, key=lambda cell: cell.epsilon))


def _column(question: Question, document: Document, dataset: str, results: Results) -> Column:
    printed = printed_column(document, question.table, dataset, question.method)
    trials = [
        trial_of(hypothesis, dataset, printed, document, results) for hypothesis in question.tried
    ]
    trials.sort(key=lambda t: math.inf if t.sum_of_squares is None else t.sum_of_squares)
    return Column(question, dataset, printed, tuple(trials))


def trial_of(
    hypothesis: Hypothesis,
    dataset: str,
    printed: Sequence[PublishedCell],
    document: Document,
    results: Results,
) -> Trial:
    """Return how far the results of a hypothesis lie from the printed cells of a dataset."""
    found = [result_of(cell, document, hypothesis, results) for cell in printed]
    distances = (
        distance(cell, document, result) if result else None
        for cell, result in zip(printed, found, strict=True)
    )
    return Trial(hypothesis, dataset, tuple(distances))


def result_of(
    cell: PublishedCell, document: Document, hypothesis: Hypothesis, results: Results
) -> ResultCell | None:
    """Return the result of a hypothesis at a printed cell; None where it was not run.

    Raises
    ------
    DpreproError
        If there are several with different settings.
    """
    protocol = document.protocol_of(cell.table, cell.dataset)
    dataset = hypothesis.dataset or cell.dataset
    found = [
        result
        for result in results.all(dataset, hypothesis.label, cell.epsilon)
        if result.splits(cell.metric) > 1 and keeps_to(result, protocol)
    ]
    # A label of a table's own column may stand for other settings elsewhere.
    if len(found) > 1:
        found = [r for r in found if follows(r, document.paper, protocol)] or found
    if len(found) > 1:
        journals = ", ".join(name for result in found for name in result.journals)
        raise DpreproError(
            f"{dataset}, {hypothesis.label}: {len(found)} results with different settings, in "
            f"{journals}; give each a label of its own in its config"
        )
    return found[0] if found else None
