"""Hypotheses about settings: how far results lie from a printed column, in standard errors.

And settings that were chosen on some printed cells, and judged once on others, or on other splits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dprepro.judge.cell_matching import follows, keeps_to
from dprepro.judge.omnibus import Omnibus, omnibus
from dprepro.judge.two_means import LEVEL, Comparison, Sample, compare
from dprepro.judge.verdicts import CellVerdict, printed_sample, verdict_of
from dprepro.papers.document import Document
from dprepro.papers.hypotheses import HeldOut, Hypothesis, Question
from dprepro.papers.published_cell import PublishedCell
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import find_metric
from dprepro.runtime.errors import DpreproError


@dataclass(frozen=True)
class Distance:
    """A printed cell, and mean and sd over splits under a hypothesis; `z` as in `distance`."""

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

    z is that of `dprepro.judge.two_means.compare`.
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
    margin = find_metric(cell.metric).margin.width(cell)
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
    found = [(cell, result_of(cell, document, hypothesis, results)) for cell in printed]
    distances = (distance(cell, document, r) if r else None for cell, r in found)
    return Trial(hypothesis, dataset, tuple(distances))


def result_of(
    cell: PublishedCell, document: Document, hypothesis: Hypothesis, results: Results
) -> ResultCell | None:
    """Return the result of a hypothesis at a printed cell; None where it was not run.

    Raises DpreproError if there are several with different settings.
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


Place = tuple[str, str, str, str]
"""Document, table, dataset and method of a printed column."""


def column_of(cell: PublishedCell) -> Place:
    """Return the column of a printed cell."""
    return cell.paper, cell.table, cell.dataset, cell.method


@dataclass(frozen=True)
class Judgement:
    """A printed column that judges a setting which was chosen without it, or on other splits.

    Attributes
    ----------
    setting, candidates
        The label of the setting that was chosen, or the column's own on other splits; and from how
        many settings it was chosen.
    chosen_on
        The datasets of table `chosen_in` whose cells chose it; empty for other splits.
    seed, splits
        Of the splits, where they are not the column's own; and the fewest and the most of a cell.
    sum_of_squares, together
        Of z, over all cells: about their number if the setting is the authors' own. What they say
        together allows for their correlation.
    """

    place: Place
    setting: str
    candidates: int
    chosen_in: str
    chosen_on: tuple[str, ...]
    seed: int | None
    sum_of_squares: float
    together: Omnibus
    splits: tuple[int, int]

    @property
    def fails(self) -> bool:
        """Whether the cells differ from print together, at 5 %."""
        return self.together.p_value < LEVEL


def fitted(judgements: Iterable[Judgement]) -> list[Place]:
    """Return, in order, the columns on which a setting fails that was not chosen on these cells."""
    return list(dict.fromkeys(found.place for found in judgements if found.fails))


def judge_held_out(
    entries: Iterable[HeldOut],
    questions: Sequence[Question],
    documents: Iterable[Document],
    results: Results,
) -> list[Judgement]:
    """Return the judgements on held-out cells, then those on other splits.

    A setting is chosen by the smallest sum of z^2 over all cells of the columns that choose. What
    was not run on all of them is not chosen, and a column is not judged where a cell is missing.
    The hypotheses of `questions` are the settings to choose from, and `results` hold theirs.
    """
    by_name = {document.paper: document for document in documents}
    found: list[Judgement] = []
    for entry in entries:
        if document := by_name.get(entry.paper):
            found += _held_out(entry, questions, document, results)
    for document in by_name.values():
        found += _other_splits(document, results)
    return found


def _held_out(
    entry: HeldOut, questions: Sequence[Question], document: Document, results: Results
) -> Iterator[Judgement]:
    choosing, judging = entry.chosen_on, entry.judged_on
    candidates = _candidates(entry, questions)
    columns = {
        dataset: printed_column(document, choosing.table, dataset, entry.method)
        for dataset in choosing.datasets
    }
    sums = {
        setting: {
            dataset: _sum_of_squares(
                printed, document, _own_label(setting, dataset, entry.ignored), results
            )
            for dataset, printed in columns.items()
        }
        for setting in candidates
    }
    for dataset in (judging or choosing).datasets:
        chosen_on = [name for name in choosing.datasets if judging or name != dataset]
        totals = {
            setting: math.fsum(own[name] for name in chosen_on) for setting, own in sums.items()
        }
        setting = min(totals, key=lambda name: totals[name], default="")
        if not math.isfinite(totals.get(setting, math.inf)):
            continue
        table = (judging or choosing).table
        label = _own_label(setting, dataset, entry.ignored)
        printed = printed_column(document, table, dataset, entry.method)
        found = [_of_label(cell, document, label, results) for cell in printed]
        place = (entry.paper, table, dataset, entry.method)
        chosen = (choosing.table, tuple(chosen_on))
        yield from _judged(place, setting, len(sums), chosen, None, printed, found, document)


def _candidates(entry: HeldOut, questions: Sequence[Question]) -> list[str]:
    """Return the settings that were tried on every dataset that chooses, on its own rows."""
    tried: dict[str, dict[str, None]] = {}
    for dataset in entry.chosen_on.datasets:
        place = (entry.paper, entry.chosen_on.table, dataset, entry.method)
        tried[dataset] = {
            hypothesis.label: None
            for question in questions
            if question.asks_about(*place)
            for hypothesis in question.tried
            if hypothesis.dataset in (None, dataset)
        }
    settings = dict.fromkeys(label for labels in tried.values() for label in labels)
    return [
        setting
        for setting in settings
        if all(_own_label(setting, d, entry.ignored) in tried[d] for d in tried)
        # What is left of another label where parts of it say nothing is no setting of its own.
        and not any(
            setting != label and _own_label(label, dataset, entry.ignored) == setting
            for label in settings
            for dataset in entry.ignored
        )
    ]


def _own_label(setting: str, dataset: str, ignored: Mapping[str, Sequence[str]]) -> str:
    """Return the label of a setting on a dataset, without the parts that say nothing of it."""
    parts = [part for part in setting.split(", ") if part not in ignored.get(dataset, ())]
    return ", ".join(parts)


def _sum_of_squares(
    printed: Sequence[PublishedCell], document: Document, label: str, results: Results
) -> float:
    """Return the sum of z^2 over the cells of a column; infinite where one was not run."""
    found = [(cell, _of_label(cell, document, label, results)) for cell in printed]
    distances = [result and compared(cell, document, result) for cell, result in found]
    return math.fsum(one.z**2 if one else math.inf for one in distances)


def _of_label(
    cell: PublishedCell, document: Document, label: str, results: Results
) -> ResultCell | None:
    """Return the result of a label; None where there is none, or several with other settings."""
    try:
        return result_of(cell, document, Hypothesis(label=label, says=label), results)
    except DpreproError:
        return None


def _other_splits(document: Document, results: Results) -> Iterator[Judgement]:
    """Yield the judgements on columns whose settings were chosen, on splits of other seeds."""
    columns = {
        (cell.table, cell.dataset, cell.method): choice.selected_from
        for cell in document.cells()
        if (choice := document.choice_of(cell)) and document.why_impossible(cell) is None
    }
    alike: dict[tuple[str, str, float], list[ResultCell]] = defaultdict(list)
    for result in results.cells:
        alike[result.task.method, result.dataset, result.task.epsilon].append(result)
    for (table, dataset, method), candidates in columns.items():
        printed = printed_column(document, table, dataset, method)
        own = [_of_label(cell, document, method, results) for cell in printed]
        by_seed: dict[int | None, list[ResultCell]] = defaultdict(list)
        for result in filter(None, own):
            task = result.task
            for twin in alike[task.method, result.dataset, task.epsilon]:
                if twin.task.seed == task.seed:
                    continue
                if replace(twin.task, label=task.label, seed=task.seed, split=task.split) == task:
                    by_seed[twin.task.seed].append(twin)
        for seed, found in by_seed.items():
            place = (document.paper, table, dataset, method)
            yield from _judged(place, method, candidates, ("", ()), seed, printed, found, document)


def _judged(
    place: Place,
    setting: str,
    candidates: int,
    chosen: tuple[str, tuple[str, ...]],
    seed: int | None,
    printed: Sequence[PublishedCell],
    found: Sequence[ResultCell | None],
    document: Document,
) -> Iterator[Judgement]:
    """Yield the judgement on a column, if each of its cells was run."""
    verdicts = [
        CellVerdict(cell, verdict_of(comparison, LEVEL, cell.metric), result, comparison=comparison)
        for cell, result in zip(printed, found, strict=False)
        if result and (comparison := compared(cell, document, result))
    ]
    together = omnibus(verdicts)
    if together is None or len(verdicts) < len(printed):
        return
    squares = math.fsum(v.comparison.z**2 for v in verdicts if v.comparison)
    splits = [v.result.splits(v.published.metric) for v in verdicts if v.result]
    span = (min(splits), max(splits))
    yield Judgement(place, setting, candidates, *chosen, seed, squares, together, span)
