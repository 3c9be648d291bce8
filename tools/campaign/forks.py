"""Runs in copies of a process that has loaded what a run needs, and has itself run nothing.

Linux only, as the shim is.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

LIMIT = 200.0
"""Seconds after which a run hangs: on a busy machine the start of a worker takes up to 40."""
HANGS = 99
"""The exit code of a run that was ended as it hangs."""
_GONE = 5.0
"""Seconds after which nothing that a run started may be left."""
_ADOPT = 36
"""Linux's PR_SET_CHILD_SUBREAPER."""


def adopt() -> None:
    """Become the parent of all processes that lose theirs, so that none can be overlooked."""
    if ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0) != 0:
        raise OSError("this system does not let a process adopt others")


def redirect(output: Path) -> None:
    """Let all that this process prints go to a file."""
    number = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(number, 1)
    os.dup2(number, 2)


def load_what_it_loads(job: Callable[[], int], names: Path) -> int:
    """Run `job` in a fork, import here what it imported, and return its exit code.

    RuntimeError: some library has started a thread. A fork would lack it, and could hang.
    """

    def listed() -> int:
        code = job()
        names.write_text("\n".join(sys.modules), encoding="utf-8")
        return code

    code, _ = in_fork(listed)
    for name in names.read_text(encoding="utf-8").splitlines():
        # Not what the run's own folder holds, such as methods.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if threading.active_count() > 1:  # that of pyarrow's allocator is none of Python's
        raise RuntimeError(f"a library has started threads: {threading.enumerate()}")
    gc.collect()
    gc.freeze()  # a collection in a fork would copy all pages
    return code


def in_fork(job: Callable[[], int], kill_after: float | None = None) -> tuple[int, int]:
    """Run `job` in a fork, which leads a session of its own, and kill it after some seconds.

    Returns
    -------
    code
        Its exit code, the negative of a signal, or `HANGS`.
    session
        The number of its session.
    """
    child = os.fork()
    if child == 0:
        code = 98
        try:
            os.setsid()
            code = job()
        except Exception:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)
    ending = os.pidfd_open(child)
    try:
        if kill_after is not None and not select.select([ending], [], [], kill_after)[0]:
            os.kill(child, signal.SIGKILL)
        if hangs := not select.select([ending], [], [], LIMIT)[0]:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(ending)
    _, status = os.waitpid(child, 0)
    return HANGS if hangs else os.waitstatus_to_exitcode(status), child


def left_by(session: int) -> list[str]:
    """Return what a session has left after some seconds: processes, and names in /dev/shm.

    The processes are ended, and the names deleted. The caller has adopted them (`adopt`), and has
    no other children.
    """
    end = time.monotonic() + _GONE
    while (alive := _any_alive()) and time.monotonic() < end:
        time.sleep(0.05)
    left = []
    while alive:
        for process, name in _children().items():
            left.append(f"process {name}")
            os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
        alive = _any_alive()
    shared = list(Path("/dev/shm").glob(f"*loky-{session}-*"))
    for path in shared:
        path.unlink(missing_ok=True)
    return [*left, *map(str, shared)]


def _any_alive() -> bool:
    """Whether this process has children; those that have ended are put away."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _children() -> dict[int, str]:
    """Return the command lines of this process's children that are no zombies."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state not in "ZX":
                line = status.with_name("cmdline").read_text().replace("\0", " ")
                found[int(status.parent.name)] = line
    return found
