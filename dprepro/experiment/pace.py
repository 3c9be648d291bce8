"""How fast a run goes, and how long it still takes."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from dprepro.experiment.record import Record, Task

# From this share of all tasks on, others speak for a method that has not finished any.
_ENOUGH = 0.25


class Pace:
    """Tasks a second, and the time left, from the tasks that have finished.

    The first task of each worker waits for the worker to start, to read its rows and to load
    compiled code, so these tasks do not count for the pace. The time left is the sum of what the
    tasks to run will take: each as long as its method's tasks on average, shared by all workers.
    There is none before each method to run has finished a task, here or in an earlier run, or a
    quarter of all tasks has finished.

    Parameters
    ----------
    todo
        The tasks to run.
    done
        Records of earlier runs.
    jobs
        Number of workers.
    clock
        The time in seconds.
    """

    def __init__(
        self,
        todo: Iterable[Task],
        done: Iterable[Record],
        jobs: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._left = Counter(task.label for task in todo)
        self._total = self._left.total()
        self._jobs = max(jobs, 1)
        self._clock = clock
        self._took: dict[str, list[float]] = defaultdict(list)
        self._finished = 0
        self._start = self._last = clock()
        for record in done:
            self._learn(record)

    def advance(self, record: Record) -> None:
        """Take in a task that has finished."""
        self._finished += 1
        self._left[record.task.label] -= 1
        self._last = self._clock()
        if self._finished == self._jobs:
            self._start = self._last
        self._learn(record)

    def _learn(self, record: Record) -> None:
        if record.status == "ok":
            self._took[record.task.label].append(sum(record.seconds.values()))

    @property
    def per_second(self) -> float | None:
        """Tasks a second since each worker has finished one; None until some have."""
        counted = self._finished - self._jobs
        gone = self._last - self._start
        return counted / gone if counted > 0 and gone > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the last task has finished; None while nothing can be said."""
        waiting = {label: count for label, count in self._left.items() if count > 0}
        unknown = [label for label in waiting if not self._took[label]]
        known = [seconds for took in self._took.values() for seconds in took]
        if not known or (unknown and self._finished < _ENOUGH * self._total):
            return None
        usual = sum(known) / len(known)
        means = {label: sum(took) / len(took) for label, took in self._took.items() if took}
        work = sum(count * means.get(label, usual) for label, count in waiting.items())
        return work / min(self._jobs, max(sum(waiting.values()), 1))

    @property
    def in_words(self) -> str:
        """``3.1 tasks/s``, or ``12 tasks/min`` where they are slow; empty until it is known."""
        rate = self.per_second
        if rate is None:
            return ""
        if rate < 1:
            return f"{60 * rate:.2g} tasks/min"
        return f"{rate:.2g} tasks/s" if rate < 10 else f"{rate:,.0f} tasks/s"
