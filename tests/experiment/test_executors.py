from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from dprepro.errors import DpreproError
from dprepro.experiment.executors import (
    LocalExecutor,
    TimeLimitError,
    WorkerDiedError,
    _Call,
    _CallQueue,
)


def _sleep(_: object = None) -> None:
    time.sleep(1000)


def _hold_the_gil() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


def _kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(message: str) -> None:
    raise ValueError(message)


def _threads() -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def _note_pid(folder: Path) -> None:
    (folder / str(os.getpid())).touch()


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor(jobs=2, time_limit=1.0)
    yield executor
    executor.kill()


def test_results_and_errors_come_back(executor: LocalExecutor) -> None:
    futures = [executor.submit(pow, 2, n) for n in range(8)]
    failing = executor.submit(_raise, "as told")
    assert [future.result(60) for future in futures] == [2**n for n in range(8)]
    with pytest.raises(ValueError, match="as told"):
        failing.result(60)
    assert executor.submit(_threads).result(60) == "1"


def test_bad_calls_fail_alone(executor: LocalExecutor) -> None:
    # Each bad call takes its worker down; no neighbour is lost or run twice.
    good = [executor.submit(pow, 3, n) for n in range(3)]
    stuck = executor.submit(_sleep)
    holding = executor.submit(_hold_the_gil)
    exiting = executor.submit(os._exit, 3)
    killed = executor.submit(_kill_self)
    good += [executor.submit(pow, 3, n) for n in range(3, 6)]
    with pytest.raises(TimeLimitError, match="time limit of 1 s exceeded"):
        stuck.result(60)
    with pytest.raises(TimeLimitError):
        holding.result(60)
    with pytest.raises(WorkerDiedError, match=r"died \(EXIT\(3\)\)"):
        exiting.result(60)
    with pytest.raises(WorkerDiedError, match=r"died \(SIGKILL\(-9\)\)"):
        killed.result(60)
    assert [future.result(60) for future in good] == [3**n for n in range(6)]


def test_warm_up_runs_once_a_worker_and_does_not_count_as_time(tmp_path: Path) -> None:
    executor = LocalExecutor(jobs=1, time_limit=5.0, warm_up=partial(_note_pid, tmp_path))
    pids = {executor.submit(os.getpid).result(60) for _ in range(3)}
    executor.close()
    assert {path.name for path in tmp_path.iterdir()} == {str(pid) for pid in pids}
    assert len(pids) == 1


def test_a_worker_that_cannot_start_is_the_users_to_mend() -> None:
    executor = LocalExecutor(jobs=1, warm_up=_kill_self)
    future = executor.submit(os.getpid)
    with pytest.raises(DpreproError, match="a worker process cannot start"):
        future.result(60)
    executor.close()


def test_kill_ends_workers_at_once_and_cancels_the_rest() -> None:
    executor = LocalExecutor(jobs=1)
    pid = executor.submit(os.getpid).result(60)
    running, waiting = executor.submit(_sleep), executor.submit(os.getpid)
    start = time.monotonic()
    executor.kill()
    assert time.monotonic() - start < 10
    for future in (running, waiting):
        with pytest.raises(CancelledError):
            future.result(1)
    assert not psutil.pid_exists(pid)


def _take(queue: _CallQueue, slot: str) -> Any:
    call = queue.take(slot)
    assert call is not None
    return call.affinity, call.args[0]


def test_slots_keep_to_their_group_then_help_with_the_longest() -> None:
    queue = _CallQueue()
    for affinity, size in (("a", 2), ("b", 4), ("c", 1)):
        for number in range(size):
            queue.put(_Call(print, (number,), affinity))
    assert _take(queue, "one") == ("a", 0)
    assert _take(queue, "two") == ("b", 0)
    assert _take(queue, "one") == ("a", 1)
    assert _take(queue, "one") == ("c", 0)  # nobody serves c yet
    assert _take(queue, "one") == ("b", 1)  # only b is left
    assert _take(queue, "two") == ("b", 2)
    assert _take(queue, "three") == ("b", 3)
    queue.close()
    assert queue.take("one") is None


def test_a_waiting_slot_is_woken() -> None:
    queue = _CallQueue()
    taken: list[_Call | None] = []
    waiting = threading.Thread(target=lambda: taken.append(queue.take("slot")))
    waiting.start()
    call = _Call(print, (), None)
    queue.put(call)
    waiting.join(10)
    assert taken == [call]
