"""Faults of the machine: what stops a task and says nothing of its method.

A task that is stopped so leaves no record. It runs again, at once and with the same command.
"""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dprepro.experiment.record import Record

_REFUSED = {
    errno.EAGAIN, errno.EDQUOT, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENODEV,
    errno.ENOLCK, errno.ENOMEM, errno.ENOSPC, errno.ENXIO, errno.EROFS, errno.ESTALE,
}  # fmt: skip
"""What the operating system says where it has no room, no memory, no more files, or a bad disk."""

_OWN_SIGNALS = {
    number for name, number in signal.Signals.__members__.items()
    if name in {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"}
}  # fmt: skip
"""What code does to its own process: these deaths are results. Not every system has all."""

_NO_THREAD = {"can't start new thread", "can't allocate lock", "can't allocate read lock"}
_NO_LIBRARY = re.compile(
    r"failed to map segment|[Cc]annot allocate memory|cannot create shared object descriptor"
)
"""What the system says of a shared library that it had no memory to load."""
_NO_PATH = re.compile(rf"os\.PathLike.*, not {type(Path()).__name__}$")
"""What Python says of a path that it had no memory to look into."""
_ERROR = re.compile(r"(?:  .*\n)*([A-Za-z_][\w.]*)(?:: (?:\[Errno (\d+)\])?(.*))?")
_STATUS = re.compile(r"\((-?\d+)\)")
_OF_OLD = re.compile(
    r"the worker process died \(SIG(HUP|INT|KILL|QUIT|TERM)\(|\d+ Dask workers were lost while|"
    r"the Dask worker \S+ was lost again"
)


def machine_fault(error: BaseException) -> str:
    """Return in words which fault of the machine made an error; empty if none did.

    The words quote no value and no path.
    """
    for cause in _chain(error):
        if isinstance(cause, MemoryError):
            return "there was not enough memory (MemoryError); fewer --jobs need less"
        if type(cause) is TypeError and _NO_PATH.search(str(cause)):
            return "there was not enough memory (for a path's name); fewer --jobs need less"
        if isinstance(cause, (ImportError, OSError)) and _NO_LIBRARY.search(str(cause)):
            return "there was not enough memory (for a library); fewer --jobs need less"
        if isinstance(cause, OSError) and cause.errno in _REFUSED:
            return f"the operating system refused ({os.strerror(cause.errno)})"
        if type(cause) is RuntimeError and str(cause) in _NO_THREAD:
            return f"the operating system refused ({cause})"
    return ""


def told_fault(traceback: str) -> tuple[str, str]:
    """Return the kind of error that a traceback ends with, as `` (OSError)``, and `machine_fault`.

    The words quote no value: of a text that has several lines only the kind of error counts.
    """
    kind, fault = "", ""
    for block in traceback.split("Traceback (most recent call last):\n")[1:]:
        if found := _ERROR.match(block):
            name, number, said = found.groups()
            error: BaseException = RuntimeError(said)
            if name == "MemoryError":
                error = MemoryError()
            elif number:
                error = OSError(int(number), "")
            kind, fault = f" ({name})", fault or machine_fault(error)
    return kind, fault


def was_killed(exit_codes: str) -> bool:
    """Whether a worker process was ended from outside, given loky's ``NAME(CODE), ...``.

    A killed process may leave no code. One that ended itself, or crashed, leaves one.
    """
    codes = [int(code) for code in _STATUS.findall(exit_codes)]
    return all(code < 0 and -code not in _OWN_SIGNALS for code in codes)


def was_fault(record: Record) -> bool:
    """Whether the record of an earlier version tells of a fault of the machine."""
    return record.status == "failed" and _OF_OLD.match(record.message) is not None


def is_stopped(process: int) -> bool:
    """Whether a process was stopped (SIGSTOP) and not continued, as far as /proc tells."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:  # not Linux, or no such process
        return False
    return text.rpartition(")")[2].split()[0] in "Tt"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__context__, one.__cause__]
