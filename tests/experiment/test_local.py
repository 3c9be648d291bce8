from __future__ import annotations

import errno
import importlib
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import psutil
import pytest
from loky.backend import get_context, resource_tracker
from loky.process_executor import ProcessPoolExecutor, _ExecutorManagerThread

from dprepro.experiment import local
from dprepro.experiment.executors import MachineFaultError, TimeLimitError, WorkerDiedError
from dprepro.experiment.local import LocalExecutor
from dprepro.runtime.errors import DpreproError
from tests.experiment import calls


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor(jobs=2, time_limit=1.0)
    yield executor
    executor.kill()


def test_results_and_errors_come_back(executor: LocalExecutor) -> None:
    futures = [executor.submit(pow, 2, n) for n in range(8)]
    failing = executor.submit(calls.fail, "as told")
    assert [future.result(60) for future in futures] == [2**n for n in range(8)]
    with pytest.raises(ValueError, match="as told"):
        failing.result(60)
    assert executor.submit(calls.threads).result(60) == "1"


def test_bad_calls_fail_alone(executor: LocalExecutor) -> None:
    # Each bad call takes its worker down; no neighbour is lost or run twice.
    good = [executor.submit(pow, 3, n) for n in range(3)]
    stuck = executor.submit(calls.sleep)
    holding = executor.submit(calls.hold_the_gil)
    exiting = executor.submit(os._exit, 3)
    killed = executor.submit(calls.kill_self)
    good += [executor.submit(pow, 3, n) for n in range(3, 6)]
    with pytest.raises(TimeLimitError, match="time limit of 1 s exceeded"):
        stuck.result(60)
    with pytest.raises(TimeLimitError):
        holding.result(60)
    with pytest.raises(WorkerDiedError, match=r"died \(EXIT\(3\)\)"):
        exiting.result(60)
    with pytest.raises(MachineFaultError, match=r"died \(SIGKILL\(-9\)\); too little memory"):
        killed.result(60)  # the third worker that it lost
    assert [future.result(60) for future in good] == [3**n for n in range(6)]


def test_warm_up_runs_once_a_worker_and_does_not_count_as_time(tmp_path: Path) -> None:
    executor = LocalExecutor(jobs=1, time_limit=5.0, warm_up=partial(calls.note_pid, tmp_path))
    pids = {executor.submit(os.getpid).result(60) for _ in range(3)}
    executor.close()
    assert {path.name for path in tmp_path.iterdir()} == {str(pid) for pid in pids}
    assert len(pids) == 1


def test_a_worker_that_cannot_start_is_the_users_to_mend() -> None:
    executor = LocalExecutor(jobs=1, warm_up=calls.kill_self)
    future = executor.submit(os.getpid)
    with pytest.raises(DpreproError, match="a worker process cannot start"):
        future.result(60)
    executor.close()


def test_a_worker_that_is_killed_as_it_starts_is_started_again(tmp_path: Path) -> None:
    warm_up = partial(calls.kill_self_unless, tmp_path / "was-killed")
    executor = LocalExecutor(jobs=1, warm_up=warm_up)
    assert executor.submit(pow, 3, 2).result(60) == 9
    assert (tmp_path / "was-killed").exists()
    executor.close()


@pytest.mark.parametrize("refusals", [1, 2, 9])
def test_a_worker_that_the_machine_refuses_is_started_again(
    monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    # As where a fork fails for want of memory or processes. Nothing exists yet that would be left.
    left = iter([OSError(errno.EAGAIN, "no more processes")] * refusals)

    def refused() -> None:
        for error in left:
            raise error

    monkeypatch.setattr(resource_tracker, "ensure_running", refused)
    monkeypatch.setattr(local, "_PAUSES", (0.0, 0.0))
    executor = LocalExecutor(jobs=1)
    future = executor.submit(pow, 2, 3)
    if refusals < 3:
        assert future.result(60) == 8
    else:
        with pytest.raises(DpreproError, match=r"the operating system refused .*Fewer --jobs"):
            future.result(60)
    executor.close()


@pytest.mark.parametrize(
    "error",
    [OSError(code, os.strerror(code)) for code in (errno.EROFS, errno.ENOENT, errno.ENOSYS)]
    + [ImportError("This platform lacks a functioning sem_open implementation")],
    ids=["read-only", "no /dev/shm", "not implemented", "no sem_open"],
)
def test_a_system_without_semaphores_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It was told that fewer --jobs would need less, or that this was a bug."""

    def refused(*_: object) -> None:
        raise error

    # Where joblib was imported, the context of this name is that of the loky that it brings along.
    kind = type(get_context("loky").Lock())
    monkeypatch.setattr(importlib.import_module(kind.__module__), "_SemLock", refused)
    executor = LocalExecutor(jobs=1)
    with pytest.raises(DpreproError, match=r"gives no semaphores .*mount a tmpfs"):
        executor.submit(pow, 2, 3).result(60)
    executor.close()


@pytest.mark.parametrize("method", ["start", "_run_loop"])
@pytest.mark.parametrize("refusals", [1, 9])
def test_a_pool_that_gets_no_thread_is_started_again_and_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str, refusals: int
) -> None:
    """Its process stayed, and the run hung at its end; or a traceback was shown."""
    left, real = iter(range(refusals)), getattr(_ExecutorManagerThread, method)

    def refused(thread: _ExecutorManagerThread) -> None:
        if next(left, None) is not None:
            raise RuntimeError("can't start new thread")
        real(thread)

    first = LocalExecutor(jobs=1)  # so that what watches over semaphores is there
    assert first.submit(pow, 2, 2).result(60) == 4
    first.close()
    monkeypatch.setattr(_ExecutorManagerThread, method, refused)
    monkeypatch.setattr(local, "_PAUSES", (0.0, 0.0))
    before = set(psutil.Process().children())
    executor = LocalExecutor(jobs=1)
    future = executor.submit(pow, 2, 3)
    if refusals < 3:
        assert future.result(60) == 8
    else:
        with pytest.raises(DpreproError, match="cannot start: the operating system refused"):
            future.result(60)
    executor.close()
    assert set(psutil.Process().children()) == before
    assert caplog.text == ""


@pytest.mark.parametrize(
    "fault", [RuntimeError("can't start new thread"), MemoryError(), OSError(24, "too many files")]
)
def test_a_call_whose_pool_meets_a_fault_of_the_machine_runs_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: Exception
) -> None:
    left, real = iter(range(1)), _ExecutorManagerThread.process_result_item

    def refused(thread: _ExecutorManagerThread, item: object) -> None:
        if next(left, None) is not None:
            raise fault
        real(thread, item)

    executor = LocalExecutor(jobs=1)
    assert executor.submit(pow, 2, 3).result(60) == 8
    monkeypatch.setattr(_ExecutorManagerThread, "process_result_item", refused)
    assert executor.submit(calls.note_pid, tmp_path).result(60) is None
    executor.close()
    assert len(list(tmp_path.iterdir())) == 2  # two workers have run it


@pytest.mark.parametrize("fault", [OSError(errno.EAGAIN, "no more processes"), MemoryError()])
def test_a_call_that_a_pool_cannot_take_runs_again(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    executor = LocalExecutor(jobs=1)
    pid = executor.submit(os.getpid).result(60)
    left, real = iter(range(1)), ProcessPoolExecutor.submit

    def refused(pool: ProcessPoolExecutor, *call: object) -> object:
        if next(left, None) is not None:
            raise fault
        return real(pool, *call)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", refused)
    assert executor.submit(os.getpid).result(60) != pid
    assert not psutil.pid_exists(pid)
    executor.close()


def test_what_else_ends_a_pool_is_a_result_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise ValueError("secret")

    executor = LocalExecutor(jobs=1)
    assert executor.submit(pow, 2, 3).result(60) == 8
    monkeypatch.setattr(_ExecutorManagerThread, "process_result_item", lost)
    with pytest.raises(WorkerDiedError, match=r"^the worker process died \(ValueError\)$"):
        executor.submit(pow, 2, 3).result(60)
    executor.close()


def test_kill_ends_workers_at_once_and_cancels_the_rest() -> None:
    executor = LocalExecutor(jobs=1)
    pid = executor.submit(os.getpid).result(60)
    running, waiting = executor.submit(calls.sleep), executor.submit(os.getpid)
    start = time.monotonic()
    executor.kill()
    assert time.monotonic() - start < 10
    for future in (running, waiting):
        with pytest.raises(CancelledError):
            future.result(1)
    assert not psutil.pid_exists(pid)


def test_the_only_call_may_use_all_processors() -> None:
    executor = LocalExecutor(jobs=1, processors=3)
    assert executor.submit(calls.threads_of_a_fit).result() == 3
    executor.close()


def test_calls_have_a_thread_each_until_fewer_are_left_than_processors(tmp_path: Path) -> None:
    executor = LocalExecutor(jobs=2, processors=2, warm_up=partial(calls.note_pid, tmp_path))
    many = [executor.submit(calls.threads_of_a_fit, 0.2) for _ in range(4)]
    assert [future.result() for future in many[:2]] == [1, 1]
    assert [future.result() for future in many[2:]] in ([1, 1], [1, 2], [2, 1])
    assert executor.submit(calls.threads_of_a_fit).result() == 2
    executor.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_call_whose_worker_is_killed_runs_again(tmp_path: Path, number: signal.Signals) -> None:
    executor = LocalExecutor(jobs=1)
    assert executor.submit(calls.signal_self_once, tmp_path / "mark", number).result(60) == "done"
    executor.close()


def test_a_call_that_loses_its_worker_each_time_runs_three_times(tmp_path: Path) -> None:
    executor = LocalExecutor(jobs=1)
    with pytest.raises(MachineFaultError):
        executor.submit(calls.note_pid_and_kill_self, tmp_path).result(60)
    assert len(list(tmp_path.iterdir())) == 3
    executor.close()


def test_a_worker_leaves_no_process_when_its_time_is_over() -> None:
    executor = LocalExecutor(jobs=1, time_limit=0.5)
    pid = executor.submit(os.getpid).result(60)
    with pytest.raises(TimeLimitError):
        executor.submit(calls.sleep).result(60)
    assert not psutil.pid_exists(pid)
    executor.close()


def test_a_call_runs_again_that_the_machine_refused_once(tmp_path: Path) -> None:
    executor = LocalExecutor(jobs=1)
    assert executor.submit(calls.refused_once, tmp_path / "mark").result(60) == "done"
    executor.close()


def test_time_in_which_a_worker_is_stopped_does_not_count() -> None:
    executor = LocalExecutor(jobs=1, time_limit=1.5, warm_up=calls.nothing)
    worker = psutil.Process(executor.submit(os.getpid).result(60))
    future = executor.submit(calls.nap)
    worker.suspend()
    time.sleep(3.0)
    assert not future.done()
    worker.resume()
    assert future.result(60) == worker.pid
    executor.close()
