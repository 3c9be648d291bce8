"""The records of a journal in columns: what a table of 10^6 tasks is made of.

A `Record` is an object for one task, and hundreds of thousands of them take seconds and gigabytes.
Here each metric is one array, tasks of a cell share all but the split, and a record is made when
somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dprepro.experiment.record import Record, Status, Task

STATUSES: tuple[Status, ...] = get_args(Status)
KEY = "S16"
"""The NumPy type of a key."""
_Rows = NDArray[np.intp]


@dataclass(frozen=True)
class RecordTable:
    """Records in the order of their journal, one row each; a task can have several.

    Attributes
    ----------
    keys
        The keys of the tasks, 16 ASCII characters each (n,).
    tasks
        The distinct tasks up to the split; of each, the task of any split.
    task
        Positions in `tasks`, integers (n,).
    split
        Integers (n,).
    status
        Positions in `STATUSES`, integers (n,).
    metrics, seconds
        By name, float64 (n,); NaN where a record has none of this name.
    ledgers
        The distinct ledgers.
    ledger
        Positions in `ledgers`, integers (n,); -1 where a record has none.
    messages, absent
        By row, where there is any.
    """

    keys: NDArray[np.bytes_]
    tasks: Sequence[Task]
    task: NDArray[np.int64]
    split: NDArray[np.int64]
    status: NDArray[np.int64]
    metrics: Mapping[str, NDArray[np.float64]]
    seconds: Mapping[str, NDArray[np.float64]]
    ledgers: Sequence[Mapping[str, Any]]
    ledger: NDArray[np.int64]
    messages: Mapping[int, str]
    absent: Mapping[int, Mapping[str, str]]

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordTable:
        """Return a table of these records."""
        tasks: dict[str, int] = {}
        first: list[Task] = []
        codes = []
        for record in records:
            cell = record.task.cell
            code = tasks.setdefault(cell, len(tasks))
            if code == len(first):
                first.append(record.task)
            codes.append(code)
        with_ledger = [record.ledger is not None for record in records]
        return cls(
            np.array([record.task.key for record in records], KEY),
            first,
            np.array(codes, np.int64),
            np.array([record.task.split for record in records], np.int64),
            np.array([STATUSES.index(record.status) for record in records], np.int64),
            _figures([record.metrics for record in records]),
            _figures([record.seconds for record in records]),
            [record.ledger for record in records if record.ledger is not None],
            np.where(with_ledger, np.cumsum(with_ledger) - 1, -1).astype(np.int64),
            {row: record.message for row, record in enumerate(records) if record.message},
            {row: record.absent for row, record in enumerate(records) if record.absent},
        )

    def __len__(self) -> int:
        return len(self.task)

    @cached_property
    def complete(self) -> frozenset[str]:
        """The metrics that every record has."""
        return frozenset(name for name, v in self.metrics.items() if not np.isnan(v).any())

    def positions(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return, for each row, the place of its key in `keys`, or -1; integers (n,)."""
        if not len(keys):
            return np.full(len(self), -1)
        wanted = np.array(keys, KEY)
        order = np.argsort(wanted, kind="stable")
        places = np.minimum(np.searchsorted(wanted[order], self.keys), len(keys) - 1)
        return np.where(wanted[order][places] == self.keys, order[places], -1)

    def last_of_each(self, places: NDArray[np.int64], count: int) -> _Rows:
        """Return the last row of each place from 0 to `count` - 1, in their order.

        Parameters
        ----------
        places
            Of each row, integers (n,); -1 for rows that do not count.

        Returns
        -------
        Rows, integers (at most `count`,); places without a row are left out.
        """
        last = np.full(count, -1, np.intp)
        rows = np.flatnonzero(places >= 0)
        np.maximum.at(last, places[rows], rows)
        return last[last >= 0]

    @cached_property
    def last(self) -> _Rows:
        """The last row of each task, in the order of the journal."""
        distinct, codes = np.unique(self.keys, return_inverse=True)
        return np.sort(self.last_of_each(codes, len(distinct)))

    def ledger_of(self, row: int) -> Mapping[str, Any] | None:
        """Return the ledger of a row."""
        code = self.ledger[row]
        return None if code < 0 else self.ledgers[code]

    def records(self, rows: Sequence[int] | _Rows) -> Iterator[Record]:
        """Yield the records of these rows."""
        there = np.asarray(rows, np.intp)
        figures = zip(_having(self.metrics, there), _having(self.seconds, there), strict=True)
        for row, (metrics, seconds) in zip(there.tolist(), figures, strict=True):
            task = self.tasks[self.task[row]]
            yield Record(
                task_of_split(task, int(self.split[row]), self.keys[row].decode()),
                STATUSES[self.status[row]],
                metrics,
                seconds,
                self.ledger_of(row),
                self.messages.get(row, ""),
                self.absent.get(row, {}),
            )


def task_of_split(task: Task, split: int, key: str) -> Task:
    """Return the task of another split, whose key is known, without checking or hashing it anew."""
    made = object.__new__(Task)
    vars(made).update(vars(task), split=split, key=key)
    return made


def _figures(found: Sequence[Mapping[str, float]]) -> dict[str, NDArray[np.float64]]:
    names = dict.fromkeys(name for figures in found for name in figures)
    return {
        name: np.array([figures.get(name, np.nan) for figures in found], np.float64)
        for name in names
    }


def _having(columns: Mapping[str, NDArray[np.float64]], rows: _Rows) -> Iterator[dict[str, float]]:
    found = np.array([values[rows] for values in columns.values()]).reshape(len(columns), len(rows))
    for figures in found.T.tolist():
        yield {name: v for name, v in zip(columns, figures, strict=True) if v == v}
