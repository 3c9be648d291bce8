"""How many workers a run has, how it ends them, and what becomes of a task that ends badly."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import Future
from typing import Any, ClassVar

import pytest

from dprepro.experiment import run as run_module
from dprepro.experiment.config import load_config
from dprepro.experiment.executors import MachineFaultError, TimeLimitError, WorkerDiedError
from dprepro.experiment.plan import plan
from dprepro.experiment.record import Record
from dprepro.experiment.run import Options, run
from dprepro.experiment.worker import DataRef
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_record import TASK
from tests.experiment.test_run import Watch
from tests.in_process import InProcess
from tests.lab import Lab


@pytest.mark.parametrize(
    ("tasks", "processors", "jobs"), [(1, 4, 1), (2, 4, 2), (3, 2, 2), (0, 2, 1)]
)
def test_there_are_as_many_workers_as_processors_but_no_more_than_tasks(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tasks: int, processors: int, jobs: int
) -> None:
    made: list[tuple[int, int]] = []

    def note(number: int, *_: object, processors: int) -> None:
        made.append((number, processors))

    monkeypatch.setattr(run_module, "LocalExecutor", note)
    config = load_config(lab.config())
    todo = [planned.task for planned in plan(config)][:tasks]
    run_module._start(config, Options(jobs=processors), DataRef.of(config, None), todo)
    assert made == [(jobs, processors)]


class Noted(InProcess):
    """Notes how it was ended."""

    ended: ClassVar[list[str]] = []

    def close(self) -> None:
        self.ended.append("closed")

    def kill(self) -> None:
        self.ended.append("killed")


@pytest.mark.parametrize("fails", [False, True])
def test_workers_are_closed_at_the_end_and_killed_where_a_run_fails(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    def refuse(*_: object, **more: object) -> None:
        raise ValueError("no call is taken")

    monkeypatch.setattr(run_module, "LocalExecutor", Noted)
    monkeypatch.setattr(Noted, "ended", [])
    if fails:
        monkeypatch.setattr(Noted, "submit", refuse)
    with pytest.raises(ValueError, match="no call") if fails else contextlib.nullcontext():
        run(load_config(lab.config()), Options(results=lab.results), Watch())
    assert Noted.ended == ["killed" if fails else "closed"]


@pytest.mark.parametrize(
    ("error", "stopped", "found"),
    [
        (TimeLimitError("too long"), False, "too long"),
        (WorkerDiedError("died"), False, "died"),
        (MachineFaultError("no memory"), False, ("l", "no memory")),
        (DpreproError("no data"), True, ("l", "interrupted")),
        (DpreproError("no data"), False, None),
    ],
)
def test_what_a_task_ends_with_is_a_record_or_a_fault(
    error: Exception, stopped: bool, found: Any
) -> None:
    future: Future[Record] = Future()
    future.set_exception(error)
    stop = threading.Event()
    if stopped:
        stop.set()
    if found is None:
        with pytest.raises(DpreproError, match="no data"):
            run_module._result(future, TASK, stop)
        return
    result = run_module._result(future, TASK, stop)
    assert result == (Record(TASK, "failed", message=found) if isinstance(found, str) else found)
