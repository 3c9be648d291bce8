"""Calls for executors. Quick to import, since every worker that runs one does so."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

from dprepro.experiment.executors import MachineFaultError
from dprepro.runtime.errors import DpreproError


def nothing() -> None:
    """As a warm-up: import this module before a time limit counts."""


def sleep() -> None:
    time.sleep(1000)


def hold_the_gil() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


def kill_self_unless(marker: Path) -> None:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def nap() -> int:
    time.sleep(0.1)
    return os.getpid()


def pid_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def fail(message: str) -> None:
    raise ValueError(message)


def cannot_prepare() -> None:
    raise DpreproError("no data here")


def threads() -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)


def note_pid(folder: Path) -> None:
    (folder / str(os.getpid())).touch()


def note_pid_and_kill_self(folder: Path) -> None:
    note_pid(folder)
    kill_self()


def note_pid_and_sleep(folder: Path) -> None:
    note_pid(folder)
    time.sleep(1000)


def threads_of_a_fit(seconds: float = 0.0) -> int:
    """Return how many threads a fit with ``n_jobs=None`` has here, after so many seconds."""
    from dprepro.runtime.threads import Threads

    time.sleep(seconds)
    return Threads().number


def signal_self_once(mark: Path, number: int) -> str:
    """Send this process a signal, unless an earlier call has."""
    if not mark.exists():
        mark.touch()
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)  # `nohup` has one ignored
        os.kill(os.getpid(), number)
        time.sleep(1000)
    return "done"


def refused_once(mark: Path) -> str:
    """As a task that finds no memory, unless an earlier call has."""
    if not mark.exists():
        mark.touch()
        raise MachineFaultError("there was not enough memory")
    return "done"
