"""A cell: what was measured of one method on one dataset at one privacy level.

Which records make one cell is said by `dprepro.experiment.record.Task.cell`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np

from dprepro.experiment.record import Task
from dprepro.privacy.guarantee_status import AuthorsWord
from dprepro.runtime.files import builtin

_Told = TypeVar("_Told")
_NOT_BUILTIN = "your card, not the built-in one"


def dataset_of(task: Task, has_own_card: bool = False) -> str:
    """Return the name that results of a task stand under: the dataset's, told apart if need be.

    A user's card may have the name of a built-in card. Its data are then named as the user's.
    `has_own_card`, whether the card is known not to be built in, decides where the built-in card
    has no checksum, so that its data cannot be known by their fingerprint.
    """
    if task.dataset not in builtin_names():
        return task.dataset
    known = _fingerprints(task.dataset)
    is_builtin = task.data_fingerprint in known if known else not has_own_card
    return task.dataset if is_builtin else f"{task.dataset} ({_NOT_BUILTIN})"


@cache
def builtin_names() -> frozenset[str]:
    """Return the names of the built-in cards."""
    return frozenset(path.stem for path in builtin("datasets").glob("*.yaml"))


@cache
def _fingerprints(name: str) -> frozenset[str]:
    """Return the fingerprints of a built-in card's data; none if the card has no checksum."""
    from dprepro.data.card import builtin_card

    card = builtin_card(name)
    if card.expect.values_sha256 is None:
        return frozenset()
    whole = card.fingerprint(with_test=True)
    return frozenset({whole, whole.partition("+")[0]})


MARK = " (shipped run)"
"""Stands behind labels and journals of the runs that come with dprepro, beside one's own."""
_FINEST = 2**400
"""Values are whole numbers of a unit of 1 / `_FINEST` and more, nearly always."""
_MOST_EXACTLY = 1000
"""Standard deviations of more values differ from exact ones in their last bits."""

TUNED_NOTE = "parameters were chosen by `dprepro tune` on rows of this dataset"


def is_shipped(name: str) -> bool:
    """Whether a label, or the name of a journal, is marked as a run that comes with dprepro."""
    return name.endswith(MARK)


def shipped(name: str) -> str:
    """Return a label, or the name of a journal, with the mark."""
    return f"{name}{MARK}"


class ByMetric(Mapping[str, tuple[_Told, ...]]):
    """What `make` returns for each metric, made when it is asked for: most metrics never are."""

    def __init__(self, names: Sequence[str], make: Callable[[str], tuple[_Told, ...]]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, tuple[_Told, ...]] = {}

    def __getitem__(self, name: str) -> tuple[_Told, ...]:
        """Return what there is of a metric."""
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is anything of a metric."""
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        """Return the metrics."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many metrics there are."""
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to other processes without the journal."""
        return dict, (dict(self),)


@dataclass(frozen=True, repr=False)
class ResultCell:
    """The finished splits of one cell.

    Attributes
    ----------
    task
        Any one of the cell's tasks; all of them agree in everything but the split.
    journals
        Names of the journals that hold it.
    values, numbers
        By metric, one value a finished split, and the numbers of these splits, empty where unknown.
    absent
        By metric that a config asks for and no split has, the reason.
    failed, skipped, planned
        Number of splits that ended so, and that make the cell complete.
    papers, tables
        The documents that its configs answer to, None where the configs are unknown; and their
        tables, as (document, table).
    messages
        The distinct errors and reasons of failed and skipped splits.
    spent_epsilon
        By the ledger, the largest over the splits; None where the records hold none.
    keeps_ledger
        Whether every finished split has a ledger; without privacy there is none to keep.
    word
        What audits say of a method of one's own, whose ledger is its author's word: the worst, if
        its code changed between splits. None for the methods of this package.
    metric
        The metric that its config names; empty where unknown.
    data
        The name that it stands under where that is not the dataset's; see `dataset`.
    parts
        Of a cell that several journals hold, what each one's config asks for, by journal.
    looks
        After how many splits a verdict on it is looked at, where its config adds splits to
        another's (`dprepro.experiment.config.Published`); else empty.
    more
        By document, the cell with the splits that such configs add to it.
    printed
        Of a cell that configs without a document hold as well, what the other configs hold.
    """

    task: Task
    journals: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]
    failed: int = 0
    skipped: int = 0
    planned: int = 1
    papers: frozenset[str] | None = None
    tables: frozenset[tuple[str, str]] = frozenset()
    messages: tuple[str, ...] = ()
    spent_epsilon: float | None = None
    keeps_ledger: bool = True
    word: AuthorsWord | None = None
    metric: str = ""
    data: str = ""
    parts: Mapping[str, ResultCell] = field(default_factory=dict, repr=False)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    absent: Mapping[str, str] = field(default_factory=dict, repr=False)
    looks: tuple[int, ...] = ()
    more: Mapping[str, ResultCell] = field(default_factory=dict, repr=False)
    printed: ResultCell | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        task, finished = self.task, max(map(len, self.values.values()), default=0)
        place = f"{self.dataset}, {task.label}, epsilon {task.epsilon:g}"
        return f"ResultCell({place}: {finished} of {self.planned} splits)"

    @property
    def has_records(self) -> bool:
        """Whether any split has a record; if none, only label and epsilon of `task` are known."""
        return bool(self.values or self.failed or self.skipped)

    @property
    def method(self) -> str:
        """The name of its method, marked where its label is."""
        return shipped(self.task.method) if is_shipped(self.task.label) else self.task.method

    def part(self, journal: str) -> ResultCell:
        """Return what one of `journals` holds: exactly the records that its config asks for."""
        return self.parts.get(journal, self)

    @property
    def answering(self) -> ResultCell:
        """What answers to printed cells: the splits of configs that name a document, or unknown."""
        return self.printed or self

    @property
    def is_unverified(self) -> bool:
        """Whether it stands at a privacy level that no ledger backs."""
        return math.isfinite(self.task.epsilon) and not self.keeps_ledger

    @property
    def may_be_best(self) -> bool:
        """Whether it may be marked as the best of a row: of one's own results."""
        own = not is_shipped(self.task.label)
        return own and not self.is_unverified and self.word is not AuthorsWord.REFUTED

    @property
    def is_tuned(self) -> bool:
        """Whether `dprepro tune` chose its parameters."""
        return self.task.tuned

    @property
    def dataset(self) -> str:
        """The name of its data: that of the card, told apart from others of the same name."""
        return self.data or dataset_of(self.task)

    def splits(self, metric: str) -> int:
        """Return the number of finished splits that have this metric."""
        return len(self.values.get(metric, ()))

    def by_split(self, metric: str) -> dict[int, float]:
        """Return the values of a metric by split; empty where `numbers` are unknown."""
        numbers = self.numbers.get(metric, ())
        return dict(zip(numbers, self.values.get(metric, ()), strict=False))

    def first(self, splits: int) -> ResultCell:
        """Return what is known of the first so many splits; all where numbers are unknown."""
        if not (self.numbers and self.values):
            return self

        def first(metric: str) -> list[tuple[int, float]]:
            return [each for each in self.by_split(metric).items() if each[0] < splits]

        names = tuple(self.values)
        return replace(
            self,
            values=ByMetric(names, lambda metric: tuple(value for _, value in first(metric))),
            numbers=ByMetric(names, lambda metric: tuple(number for number, _ in first(metric))),
        )

    @property
    def as_printed(self) -> ResultCell:
        """The splits of the first look, which all cells have; itself where there are no `looks`."""
        return self.first(self.looks[0]) if self.looks else self

    def is_complete(self, metric: str, planned: int | None = None) -> bool:
        """Whether all planned splits finished; `planned` overrides the cell's own number."""
        return self.splits(metric) >= (planned or self.planned)

    def mean(self, metric: str) -> float:
        """Return the mean over the finished splits."""
        return statistics.fmean(self.values[metric])

    def sd(self, metric: str) -> float | None:
        """Return the sample standard deviation (ddof 1) over splits; None for a single one."""
        return _sd(tuple(self.values[metric]))


@lru_cache(maxsize=1 << 14)  # exact fractions take long, and a table asks again and again
def _sd(values: tuple[float, ...]) -> float | None:
    if len(values) > _MOST_EXACTLY:
        return float(np.std(values, ddof=1))
    if len(values) < 2:
        return None
    # Of whole numbers it takes half as long, with the same bits: all units are powers of 2.
    ratios = [value.as_integer_ratio() for value in values]
    unit = max(denominator for _, denominator in ratios)
    if unit > _FINEST or max(map(abs, values)) > _FINEST:
        return statistics.stdev(values)
    return statistics.stdev(over * (unit // under) for over, under in ratios) / unit
