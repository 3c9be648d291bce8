"""Files of users, read whole: a limit on their size, and one line where they cannot be read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from dprepro.errors import DpreproError

MEBIBYTE = 2**20


class NoFileError(DpreproError):
    """There is no file at a path."""


def is_file(path: Path) -> bool:
    """Whether there is a regular file at a path; false where no file can have that path."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, a folder that is closed, a NUL
        return False


def read_bytes(path: Path, most: int) -> bytes:
    """Return what a regular file holds. Folders, pipes and devices are not waited for.

    Parameters
    ----------
    most
        Bytes that it may have.

    Raises
    ------
    NoFileError
        If there is none.
    DpreproError
        If it cannot be read, is no regular file, or is larger. The message begins with the path.
    """
    try:
        # Else a pipe would be waited for. Windows has no such flag, and no pipe with a file's name.
        number = os.open(path, os.O_RDONLY | _NO_WAITING)
        try:
            found = os.fstat(number)
            if stat.S_ISDIR(found.st_mode):
                raise DpreproError(f"{path}: cannot be read: it is a folder; name a file")
            if not stat.S_ISREG(found.st_mode):
                raise DpreproError(
                    f"{path}: cannot be read: it is a pipe or a device; name a file, into which "
                    "you can copy what comes from it"
                )
            with os.fdopen(number, "rb", closefd=False) as file:
                data = _read(file, found.st_size, most) if found.st_size <= most else None
        finally:
            os.close(number)
    except FileNotFoundError as error:
        raise NoFileError(f"{path}: cannot be read: {reason(error)}") from error
    except (OSError, ValueError) as error:
        raise DpreproError(f"{path}: cannot be read: {reason(error)}") from error
    if data is None or len(data) > most:
        raise DpreproError(
            f"{path}: larger than a file of its kind can be ({most // MEBIBYTE} MiB)"
        )
    return data


def _read(file: BinaryIO, size: int, most: int) -> bytes:
    """Return at most one byte more than `most`; no more memory is taken than there is to read."""
    parts, left = [], most + 1
    # Files of the kernel have the size 0, whatever is in them.
    while left and (part := file.read(min(left, max(size, MEBIBYTE) + 1))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_text(path: Path, most: int) -> str:
    r"""Return the text of a file in UTF-8, without a byte order mark, with "\n" as line ends.

    Raises
    ------
    NoFileError, DpreproError
        As `read_bytes`; also if it is not such a text.
    """
    try:
        text = read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DpreproError(
            f"{path}: cannot be read: not a text file in UTF-8, from byte {error.start} on; save "
            "it as UTF-8"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def reason(error: OSError | ValueError) -> str:
    """Return why a file cannot be used, in the words of the operating system."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


_NO_WAITING: int = os.O_NONBLOCK if os.name == "posix" else 0
