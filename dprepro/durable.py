"""Files and names that outlive a crash: written as a whole, on the disk, and then named."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dprepro.errors import DpreproError

_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)


@contextmanager
def appearing_complete(path: Path) -> Iterator[Path]:
    """Yield where to write; what is there takes the place of `path` at the end of the context.

    It is on the disk before it gets its name. If the context fails, nothing is left of it, and a
    file that was at `path` stays.

    Raises
    ------
    DpreproError
        If the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    name = os.fsencode(unfinished)
    try:
        make_folder(path.parent)
        try:
            yield unfinished
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            unfinished.replace(path)
            sync_folder(path.parent)
        finally:
            discard(name)
    except OSError as error:
        raise DpreproError(f"cannot write {path}: {error.strerror or error}") from error


def discard(name: bytes) -> None:
    """Delete a file, if it is there. To do so takes no memory: it may have run out."""
    try:  # noqa: SIM105 - a context and a path object would take memory
        os.unlink(name)  # noqa: PTH108
    except (OSError, MemoryError):
        pass


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and let their names outlive a crash. Raises OSError."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a crash of the machine. Raises OSError."""
    if os.name != "posix":  # others have no file descriptor of a folder
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:  # some file systems cannot, and need not
            raise
    finally:
        os.close(number)


def write_all(number: int, data: bytes) -> None:
    """Write all bytes to a file descriptor and wait until they are on the disk. Raises OSError."""
    while data:
        data = data[os.write(number, data) :]
    os.fsync(number)
