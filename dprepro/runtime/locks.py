"""Locks on open files, which end when the file is closed, also because its process was killed.

POSIX has `flock`: of the whole file, whatever its name. Windows locks ranges of bytes, and keeps
others from reading them, so one byte is locked there that no file reaches.
"""

from __future__ import annotations

import errno
import os
import time
from importlib import import_module
from typing import Any

UNREACHED = 2**31 - 2
"""The byte: Windows locks the first 2^31 - 1 alone, and a file of ours has 2^30 at most."""

_PAUSE = 0.05  # in seconds, until a lock is asked for again


def lock(number: int, wait: bool = False) -> None:
    """Lock an open file until it is closed; with `wait`, as soon as no other has it locked.

    Raises
    ------
    BlockingIOError
        If another has it locked, be it in this process.
    ImportError
        If the system has no such locks.
    OSError
        If the file system has none.
    """
    if are_of_posix():
        fcntl = import_module("fcntl")
        fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    msvcrt = import_module("msvcrt")
    while True:
        try:
            _lock_byte(msvcrt, number)
            return
        except PermissionError as error:  # what it raises if the byte is locked
            if not wait:
                raise BlockingIOError(errno.EWOULDBLOCK, "another has the lock") from error
        time.sleep(_PAUSE)


def _lock_byte(msvcrt: Any, number: int) -> None:
    place = os.lseek(number, 0, os.SEEK_CUR)
    os.lseek(number, UNREACHED, os.SEEK_SET)
    try:
        msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
    finally:
        os.lseek(number, place, os.SEEK_SET)


def are_of_posix() -> bool:
    """Whether the system is one of POSIX, where names of open files can be changed and removed."""
    return _has("fcntl")


def are_there() -> bool:
    """Whether the system has locks that `lock` knows."""
    return are_of_posix() or _has("msvcrt")


def _has(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True
