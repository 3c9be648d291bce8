"""How long the tasks of a run will take: as long as tasks like them took before.

A task is like another of the same method on the same dataset. Times with the same parameters come
before those with others, and one's own before those of the runs that come with dprepro.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dprepro.experiment.journal import JournalTable, journal_files
from dprepro.experiment.packed import STATUSES
from dprepro.experiment.record import Task
from dprepro.runtime.append_only_file import JournalWarning
from dprepro.runtime.errors import DpreproError

_Place = tuple[str, str]
"""(method, dataset)."""


@dataclass(frozen=True)
class Expected:
    """Tasks of one label and one setting, and how long they take.

    Attributes
    ----------
    label
        As the config names the method.
    tasks
        How many are to run.
    seconds
        What one of them takes on one processor; None where no time is known.
    is_own
        Whether that comes from the folder of the run, and not from the runs that come with dprepro.
    is_same
        Whether the tasks that it comes from had the same parameters.
    """

    label: str
    tasks: int
    seconds: float | None = None
    is_own: bool = False
    is_same: bool = False

    @property
    def total(self) -> float:
        """The seconds of all of them, 0 where no time is known."""
        return self.tasks * (self.seconds or 0.0)


@dataclass(frozen=True)
class Forecast:
    """How long the tasks of a run will take, as far as that is known.

    Attributes
    ----------
    parts
        The tasks to run, by label and setting.
    """

    parts: tuple[Expected, ...]

    @property
    def tasks(self) -> int:
        """How many tasks are to run."""
        return sum(part.tasks for part in self.parts)

    @property
    def known(self) -> tuple[Expected, ...]:
        """The parts with a time."""
        return tuple(part for part in self.parts if part.seconds is not None)

    @property
    def unknown(self) -> Mapping[str, int]:
        """Of how many tasks no time is known, by label."""
        counts: Counter[str] = Counter()
        for part in self.parts:
            if part.seconds is None:
                counts[part.label] += part.tasks
        return counts

    @property
    def seconds(self) -> float:
        """What all tasks with a time take on one processor."""
        return sum(part.total for part in self.parts)

    def wall_seconds(self, jobs: int) -> float:
        """Return what the tasks with a time take on so many workers.

        They share the work evenly, but no task is shorter than it is.
        """
        longest = max((part.seconds or 0.0 for part in self.known), default=0.0)
        return max(self.seconds / max(jobs, 1), longest)


def forecast(todo: Sequence[Task], folder: Path, shipped: Path) -> Forecast:
    """Return how long tasks will take, by the records of a folder and of the shipped runs.

    Journals that cannot be read are passed over.
    """
    counts = Counter((task.label, task.method, task.dataset, _setting(task)) for task in todo)
    places = {(task.method, task.dataset) for task in todo}
    own = _times(folder, places)
    others = {} if folder.resolve() == shipped.resolve() else _times(shipped, places)
    return Forecast(
        tuple(
            _expected(label, tasks, setting, own.get((method, data)), others.get((method, data)))
            for (label, method, data, setting), tasks in counts.items()
        )
    )


_Seconds = Mapping[str, Sequence[np.ndarray]]
"""The seconds of finished tasks, float64 (n,), by setting."""


def _expected(
    label: str, tasks: int, setting: str, own: _Seconds | None, others: _Seconds | None
) -> Expected:
    sides = [(True, own or {}), (False, others or {})]
    for is_own, seconds in sides:
        if setting in seconds:
            return Expected(label, tasks, _mean(seconds[setting]), is_own, is_same=True)
    for is_own, seconds in sides:
        if seconds:
            every = [part for parts in seconds.values() for part in parts]
            return Expected(label, tasks, _mean(every), is_own)
    return Expected(label, tasks)


def _mean(parts: Sequence[np.ndarray]) -> float:
    return float(np.concatenate(parts).mean())


def _times(folder: Path, places: Collection[_Place]) -> Mapping[_Place, _Seconds]:
    """Return the times of finished tasks of these methods on these datasets."""
    found: dict[_Place, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    for journal in journal_files(folder).values():
        with warnings.catch_warnings(), contextlib.suppress(DpreproError):
            warnings.simplefilter("ignore", JournalWarning)
            for task, seconds in _of_journal(JournalTable(journal), places):
                found[task.method, task.dataset][_setting(task)].append(seconds)
    return found


def _of_journal(
    journal: JournalTable, places: Collection[_Place]
) -> Iterator[tuple[Task, np.ndarray]]:
    """Yield a task of each cell of these places, and the seconds of its finished splits."""
    if not any((task.method, task.dataset) in places for task in journal.tasks):
        return  # without reading its records
    table = journal.table
    took = np.nansum(list(table.seconds.values()), axis=0) if table.seconds else None
    is_done = table.status == STATUSES.index("ok")
    for code, task in enumerate(table.tasks):
        rows = is_done & (table.task == code)
        if took is not None and (task.method, task.dataset) in places and rows.any():
            yield task, took[rows]


def _setting(task: Task) -> str:
    return json.dumps(dict(task.params), sort_keys=True)
