"""Partitions of lost workers count once: workers are objects here, and die as they are told.

`test_cluster` kills the processes of a real cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import distributed
import numpy as np
import pytest

from dprepro.methods.dp_ebm.queries import CellCounts
from dprepro.methods.dp_ebm.rounds import EBMPartition
from dprepro.privacy.query import Instruction
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.rows import cluster
from dprepro.rows.cluster import ClusterBackend, ClusterError, HeldParts
from tests.rows.test_cluster_worker import TABLE, job, reading, steps

BEFORE, ASKED = "before it is asked", "before it replies"


@dataclass
class Worker:
    """A worker that can die."""

    name: str
    alive: bool = True


@dataclass
class Future:
    """What Dask gives for something that is computed here at once."""

    value: Any
    worker: Worker
    key: str = ""

    @property
    def status(self) -> str:
        return "finished" if self.worker.alive else "lost"

    def result(self, timeout: float | None = None) -> Any:
        if not self.worker.alive:
            raise RuntimeError("the worker is lost")
        return self.value

    def done(self) -> bool:
        return True


@dataclass
class Actor:
    """Partitions on a worker."""

    held: HeldParts
    worker: Worker
    cluster: Cluster

    def seen(self) -> Future:
        return Future(self.held.seen(), self.worker)

    def answer(self, *given: Any) -> Future:
        self.cluster.happens(BEFORE, self.worker)
        if not self.worker.alive:
            raise RuntimeError("the worker is lost")
        reply = Future(self.held.answer(*given), self.worker)
        self.cluster.happens(ASKED, self.worker)
        return reply


@dataclass
class Cluster:
    """A client of workers in this process; `dies` says which of them die when."""

    workers: list[Worker]
    dies: Callable[[str, Worker], bool] = lambda when, worker: False
    status: str = "running"
    computed: list[list[int]] = field(default_factory=list)

    def happens(self, when: str, worker: Worker) -> None:
        if self.dies(when, worker):
            worker.alive = False

    def compute(self, parts: list[Any]) -> list[Future]:
        alive = [worker for worker in self.workers if worker.alive]
        return [
            Future(part.compute(scheduler="synchronous"), alive[k % len(alive)], part.key)
            for k, part in enumerate(parts)
        ]

    def who_has(self, futures: list[Future]) -> dict[str, list[str]]:
        return {future.key: [future.worker.name] for future in futures}

    def submit(self, kind: Any, parts: list[Future], made_for: Any, workers: str, **_: Any) -> Any:
        (worker,) = [worker for worker in self.workers if worker.name == workers]
        held = kind([part.value for part in parts], made_for)
        return Future(Actor(held, worker, self), worker)

    def cancel(self, futures: list[Future], force: bool) -> None:
        """Nothing is kept."""

    def nthreads(self) -> dict[str, int]:
        return {worker.name: 2 for worker in self.workers if worker.alive}


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a holder of five partitions on as many workers as are asked for, and the cluster."""
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=2))
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    monkeypatch.setattr(distributed, "wait", lambda futures, timeout: None)

    def hold(workers: int) -> tuple[ClusterBackend, Cluster]:
        running = Cluster([Worker(f"w{k}") for k in range(workers)])
        monkeypatch.setattr(cluster, "_client", lambda: running)
        ends = [0, 11, 30, 30, 64, len(TABLE)]
        parts = [slice(*pair) for pair in pairwise(ends)]
        rows: Any = SimpleNamespace(
            partitions=[(TABLE[part], TABLE["y"][part]) for part in parts],
            reading=reading,
            whole="{k}",
        )
        made = job()
        return ClusterBackend(rows, made.sort, partial(EBMPartition, sorting=made.sort)), running

    return hold


def questions() -> list[Any]:
    """Return what is asked, with the instructions in between."""
    told, step = steps()
    counts = [CellCounts(1.0, 1.0, k, ZERO_OUT) for k in range(3)]
    return [*counts, *told, step, told[-1], step, step]


def answers(holder: Any) -> list[np.ndarray]:
    found = []
    for each in questions():
        if isinstance(each, Instruction):
            holder.follow(each)
        else:
            found.append(holder.answer(each).numbers)
    return found


@pytest.fixture
def expected(holding: Any) -> list[np.ndarray]:
    """The answers of one process that holds all rows."""
    alone, told, found = HeldParts([part.compute() for part in holding(1)[0]._parts], job()), [], []
    followed = 0
    for each in questions():
        if isinstance(each, Instruction):
            told.append(each)
        else:
            found.append(alone.answer(each, followed, told[followed:]).numbers)
            followed = len(told)
    return found


def test_without_losses_all_partitions_count_once(holding: Any, expected: Any) -> None:
    holder, _ = holding(3)
    assert holder.n_rows == len(TABLE)
    for found, right in zip(answers(holder), expected, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("at", [0, 3, 5])
@pytest.mark.parametrize("which", ["w0", "w1", "w2"])
@pytest.mark.parametrize("when", [BEFORE, ASKED])
def test_a_worker_that_dies_changes_no_answer(
    when: str, which: str, at: int, holding: Any, expected: Any
) -> None:
    """Whichever worker it is, and whatever is asked then."""
    holder, running = holding(3)
    asked = {"number": -1}

    def dies(now: str, worker: Worker) -> bool:
        asked["number"] += now == BEFORE and worker.name == which
        return worker.name == which and now == when and asked["number"] == at

    running.dies = dies
    for found, right in zip(answers(holder), expected, strict=True):
        np.testing.assert_array_equal(found, right)
    assert not all(worker.alive for worker in running.workers)
    assert sorted(k for held in holder._held for k in held.numbers) == [0, 1, 2, 3, 4]


def test_nor_do_two_that_die_one_after_the_other(holding: Any, expected: Any) -> None:
    """The second dies while it is asked about the partitions of the first."""
    holder, running = holding(3)
    left = [("w0", ASKED), ("w1", BEFORE)]

    def dies(now: str, worker: Worker) -> bool:
        if left and (worker.name, now) == left[0]:
            left.pop(0)
            return True
        return False

    running.dies = dies
    for found, right in zip(answers(holder), expected, strict=True):
        np.testing.assert_array_equal(found, right)
    assert not left
    assert sorted(k for held in holder._held for k in held.numbers) == [0, 1, 2, 3, 4]


def test_a_partition_that_holds_other_rows_when_it_is_read_again_ends_the_fit(holding: Any) -> None:
    holder, running = holding(3)
    answers(holder)
    running.workers[0].alive = False
    holder._parts = holder._parts[::-1]
    with pytest.raises(ClusterError, match="holds other rows now"):
        holder.answer(questions()[0])
