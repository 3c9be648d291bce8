"""A Python that lacks what Windows lacks, and refuses what Windows refuses.

It is so in every process that has the folder of this file on its PYTHONPATH.

Stated by the documents of Windows and CPython, not measured there:

- There is no `fcntl`, `resource`, `pwd`, `grp` or `termios`, no `fork`, no user id, no SIGKILL.
  Libraries take the system for Linux, and may use the last three.
- `msvcrt` locks bytes of open files below 2^31 - 1. Others cannot read these.
- A file that anybody has open, or mapped, is neither renamed, replaced nor deleted, nor is a folder
  renamed in which there is one.
- A folder cannot be opened, nothing be synced that is open for reading alone, and users make no
  symbolic links.
- What is written to a descriptor that was not opened with O_BINARY gets CR LF as line ends.
- Processes start by `spawn`.
"""

import asyncio  # noqa: F401 - it and others below stay as they are on this system
import contextlib
import errno
import fcntl
import mmap
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess  # noqa: F401
import sys
import types
from pathlib import Path

import filelock  # noqa: F401 - has locks for Windows, too
import loky  # noqa: F401

O_BINARY = 0x8000  # Linux takes it for O_LARGEFILE, which says nothing on a system of 64 bits
LOCKED_BELOW = 2**31 - 1
PACKAGE = str(Path(__file__).parents[3] / "dprepro") + os.sep

_texts: set[int] = set()
_listdir = os.listdir
_open, _write, _close, _fsync = os.open, os.write, os.close, os.fsync


def _refusal(path: object) -> PermissionError:
    return PermissionError(errno.EACCES, "The process cannot access the file", os.fspath(path))


def _used() -> set[str]:
    """Return the files that processes have open or mapped."""
    found = set()
    for process in _listdir("/proc"):
        if process.isdigit():
            with contextlib.suppress(OSError):
                for number in _listdir(f"/proc/{process}/fd"):
                    with contextlib.suppress(OSError):  # it was that of the list, or is closed
                        found.add(str(Path(f"/proc/{process}/fd/{number}").readlink()))
            with contextlib.suppress(OSError), Path(f"/proc/{process}/maps").open() as maps:
                found |= {line[line.index("/") :].rstrip() for line in maps if "/" in line}
    return found


def _refuse_used(path: object) -> None:
    place = os.path.realpath(os.fsdecode(path))
    for name in _used():
        if name == place or name.startswith(place + "/"):
            raise _refusal(path)


def _refusing(real, both):
    def function(path, *others, **more):
        if more.get("dir_fd") is None and isinstance(path, str | bytes | os.PathLike):
            _refuse_used(path)
            if both:
                _refuse_used(others[0])
                if real is _rename and os.path.lexists(others[0]):
                    raise FileExistsError(errno.EEXIST, "File exists", os.fspath(others[0]))
        return real(path, *others, **more)

    return function


def _opened(path, flags, mode=0o777, **more):
    number = _open(path, flags, mode, **more)
    if stat.S_ISDIR(os.fstat(number).st_mode):
        _close(number)
        raise _refusal(path)
    if not flags & O_BINARY:
        _texts.add(number)
    return number


def _written(number, data):
    if number in _texts:
        _write(number, bytes(data).replace(b"\n", b"\r\n"))
        return len(data)
    return _write(number, data)


def _closed(number):
    _texts.discard(number)
    _close(number)


def _synced(number):
    if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    _fsync(number)


def _locking(number, mode, size):
    place = os.lseek(number, 0, os.SEEK_CUR)
    if not os.fstat(number).st_size <= place <= LOCKED_BELOW - size:
        raise OSError(errno.EINVAL, "bytes that are read, or beyond those that can be locked")
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


def _no_link(*_, **__):
    raise OSError(errno.EPERM, "A required privilege is not held by the client")


_rename = os.rename
_LACKING = {
    os: """fork forkpty register_at_fork getuid geteuid getgid getegid fchmod fchown chown lchown
        killpg setsid getpgid sched_getaffinity sched_yield statvfs fstatvfs mkfifo posix_fallocate
        posix_fadvise getloadavg sysconf uname O_NONBLOCK O_DIRECTORY O_NOFOLLOW O_CLOEXEC WNOHANG
        nice sync sendfile pread pwrite""",
    signal: "SIGHUP SIGKILL SIGSTOP SIGUSR1 SIGUSR2 SIGALRM alarm setitimer pthread_sigmask",
    mmap: "MADV_DONTNEED MADV_HUGEPAGE MAP_PRIVATE MAP_SHARED PROT_READ PROT_WRITE",
}


def _lacking(module, names):
    """Return what gives attributes to others than dprepro: libraries take this system for Linux."""
    taken = {name: vars(module).pop(name) for name in names.split() if name in vars(module)}

    def attribute(name):
        asks = sys._getframe(1).f_code.co_filename
        if name not in taken or asks.startswith(PACKAGE):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return taken[name]

    return attribute


def become() -> None:
    """Take away and refuse what Windows does; once, before anything else is imported."""
    for module in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
        sys.modules[module] = None
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=_locking, LK_NBLCK=2)
    os.O_BINARY = O_BINARY
    os.open, os.write, os.close, os.fsync = _opened, _written, _closed, _synced
    os.rename, os.replace = _refusing(os.rename, True), _refusing(os.replace, True)
    os.unlink, os.remove = _refusing(os.unlink, False), _refusing(os.remove, False)
    os.symlink = _no_link
    for module, names in _LACKING.items():
        module.__getattr__ = _lacking(module, names)
    shutil._use_fd_functions = False
    multiprocessing.set_start_method("spawn")
    os.environ["LOKY_START"] = "spawn"


become()
