from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from dprepro.experiment import run as run_module
from dprepro.experiment import worker
from dprepro.experiment.config import load_config
from dprepro.experiment.display import notes
from dprepro.experiment.executors import MachineFaultError
from dprepro.experiment.journal import Journal
from dprepro.experiment.machine_errors import (
    is_stopped,
    machine_fault,
    told_fault,
    was_fault,
    was_killed,
)
from dprepro.experiment.pending import pending_of
from dprepro.experiment.plan import plan
from dprepro.experiment.record import Record
from dprepro.experiment.run import Options, run
from dprepro.experiment.worker import DataRef, run_task
from dprepro.runtime.errors import DpreproError
from tests.experiment.test_record import TASK
from tests.experiment.test_run import Watch
from tests.in_process import InProcess
from tests.lab import Lab


def _caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError("secret"), "not enough memory"),
        (
            TypeError("expected str, bytes or os.PathLike object, not PosixPath"),
            "for a path's name",
        ),
        (TypeError("expected str, bytes or os.PathLike object, not int"), ""),
        (TypeError("the JSON object must be str, bytes or bytearray, not PosixPath"), ""),
        (OSError(errno.ENOSPC, "x", "secret"), "No space left"),
        (_caused(DpreproError("x"), OSError(errno.EIO, "x")), "Input/output error"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (RuntimeError("can't allocate read lock"), "can't allocate read lock"),
        (FileNotFoundError(errno.ENOENT, "x"), ""),
        (ValueError("x"), ""),
        (RuntimeError("x"), ""),
    ],
)
def test_what_the_machine_refuses_is_told_from_what_a_method_raises(
    error: Exception, said: str
) -> None:
    found = machine_fault(error)
    assert said in found
    assert bool(found) == bool(said)
    assert "secret" not in found


HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "x.py", line 1, in f\n    f()\n    ^^^\n'


@pytest.mark.parametrize(
    ("told", "kind", "said"),
    [
        ("RuntimeError: can't start new thread", " (RuntimeError)", "can't start new thread"),
        ("MemoryError", " (MemoryError)", "not enough memory"),
        ("OSError: [Errno 24] Too many open files", " (OSError)", "Too many open files"),
        ("OSError: [Errno 2] No such file: 'secret'", " (OSError)", ""),
        ("a.b.CustomError: secret", " (a.b.CustomError)", ""),
        ("ValueError: unknown:\n  of\nSecret", " (ValueError)", ""),
        ("RuntimeError: secret", " (RuntimeError)", ""),
        (f"MemoryError\n\nDuring ...:\n\n{HEAD}{FRAME}KeyError: 1", " (KeyError)", "memory"),
    ],
)
@pytest.mark.parametrize("end", ["", "\n", '\n\n"""'])
def test_the_text_of_a_traceback_tells_a_fault(told: str, kind: str, said: str, end: str) -> None:
    found, fault = told_fault(f'\n"""\n{HEAD}{FRAME}{told}{end}')
    assert found == kind
    assert (said in fault) if said else fault == ""


def test_no_traceback_tells_no_fault() -> None:
    assert told_fault("It crashed.") == told_fault("") == told_fault(HEAD) == ("", "")


def test_errors_that_name_each_other_are_looked_at_once() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert machine_fault(one) == ""


@pytest.mark.parametrize(
    ("codes", "killed"),
    [
        ("SIGKILL(-9)", True),
        ("SIGTERM(-15)", True),
        ("SIGHUP(-1)", True),
        ("", True),
        ("SIGSEGV(-11)", False),
        ("EXIT(3)", False),
    ],
)
def test_a_crash_is_told_from_a_kill(codes: str, killed: bool) -> None:
    assert was_killed(codes) == killed


def test_a_stopped_process_is_seen() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert not is_stopped(process.pid)
        os.kill(process.pid, 19)
        deadline = time.monotonic() + 10
        while not is_stopped(process.pid):
            assert time.monotonic() < deadline
    finally:
        process.kill()
        process.wait()
    assert not is_stopped(process.pid)


def test_a_task_that_gets_no_memory_leaves_no_record(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(lab.config())

    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(worker, "fit_task", refuse)
    with pytest.raises(MachineFaultError, match="not enough memory"):
        run_task(plan(config)[0].task, DataRef(config.card))


class Unlucky(InProcess):
    """An executor whose first call never ends."""

    met = False

    def submit(self, fn: Any, /, *args: Any, affinity: Any = None) -> Future[Any]:
        if self.met:
            return super().submit(fn, *args)
        self.met = True
        future: Future[Any] = Future()
        future.set_exception(MachineFaultError("the worker process died (SIGKILL(-9))"))
        return future


def test_an_unfinished_task_is_told_and_runs_with_the_same_command(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, options = load_config(lab.config()), Options(results=lab.results)
    monkeypatch.setattr(run_module, "LocalExecutor", Unlucky)
    summary = run(config, options, Watch())
    assert (summary.ran, len(lab.records())) == (5, 5)
    said = list(notes(summary, Path("x")))
    assert "not finished: noisy, 1 task(s): the worker process died (SIGKILL(-9))" in said
    assert "nothing is recorded of unfinished tasks: the same command runs them again" in said
    monkeypatch.setattr(run_module, "LocalExecutor", InProcess)
    summary = run(config, options, Watch())
    assert (summary.ran, summary.unfinished, len(lab.records())) == (1, {}, 6)


@pytest.mark.parametrize(
    ("message", "is_fault"),
    [
        ("the worker process died (SIGKILL(-9))", True),
        ("the worker process died (SIGTERM(-15))", True),
        ("3 Dask workers were lost while they ran it: a, b, c", True),
        ("the worker process died (EXIT(3))", False),
        ("time limit of 1 s exceeded", False),
    ],
)
def test_faults_that_earlier_versions_recorded_run_again(
    lab: Lab, message: str, is_fault: bool
) -> None:
    planned = plan(load_config(lab.config()))
    record = Record(planned[0].task, "failed", message=message)
    outlook = pending_of(planned, planned, {record.task.key: record}, False, ())
    assert (record.task in outlook.todo) == is_fault
    assert was_fault(record) == is_fault
    assert not was_fault(Record(TASK, "ok", message=message))


def test_an_observer_that_cannot_show_ends_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Watch):
        def advance(self, record: Record) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(run_module, "LocalExecutor", InProcess)
    assert run(load_config(lab.config()), Options(results=lab.results), Broken()).ran == 6


def test_a_journal_whose_disk_refuses_everything_is_an_error_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with Journal(tmp_path / "x.jsonl") as journal:
        journal.append({"kind": "environment"})
        with pytest.MonkeyPatch.context() as patch:
            for name in ("write", "fsync", "ftruncate"):
                patch.setattr(os, name, refuse)
            with pytest.raises(DpreproError, match="cannot be written: Input/output error"):
                journal.append({"kind": "environment"})
    assert (tmp_path / "x.jsonl").read_bytes().count(b"\n") == 1


def test_a_system_with_few_signals_has_the_module_that_reads_them() -> None:
    """Windows has no SIGBUS: every internal error and every `dprepro run` ended in a traceback."""
    code = (
        "import signal\n"
        "few = {'SIGINT': signal.SIGINT, 'SIGSEGV': signal.SIGSEGV}\n"
        "signal.Signals = type('Signals', (), {'__members__': few})\n"
        "del signal.SIGBUS, signal.SIGSYS, signal.SIGTRAP\n"
        "from dprepro.experiment.machine_errors import was_killed\n"
        "print(was_killed('EXIT(-9)'), was_killed('SIGSEGV(-11)'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"
