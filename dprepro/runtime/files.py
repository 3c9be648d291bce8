"""Files: read whole up to a limit, written whole or not at all, and the folders that dprepro uses.

What is written is on the disk before it gets its name, so that it outlives a crash.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

import platformdirs

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.locks import are_of_posix, lock

MEBIBYTE = 2**20

BINARY: int = getattr(os, "O_BINARY", 0)
"""Opens a file for bytes, where the system makes CR LF of line ends that are written."""

_NO_WAITING: int = getattr(os, "O_NONBLOCK", 0)

# Seconds between attempts to give a name that Windows refuses while somebody reads the file.
_PAUSES = (0.02, 0.1, 0.4, 1.5)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP)

CACHE_VARIABLE = "DPREPRO_CACHE"


class NoFileError(DpreproError):
    """There is no file at a path."""


def written_as_path(name: str) -> bool:
    """Whether a name says where a file is: it has a separator of folders, here or elsewhere."""
    return "/" in name or os.sep in name


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


def refusal(error: OSError) -> tuple[str, str]:
    """Return what the disk refuses, and what to do about it, as a clause."""
    if error.errno in _NO_ROOM:
        return "there is no room left on the disk", "make room there"
    if error.errno == errno.EFBIG:  # a limit of the user's, or of the file system
        return str(error.strerror), "make room there"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file has the name of a folder", "move that file away"
    return error.strerror or str(error), "correct that"


@contextmanager
def appearing_complete(path: Path) -> Iterator[Path]:
    """Do what `replacing` does, for a file of the user's. Raises DpreproError if it cannot."""
    try:
        with replacing(path) as unfinished:
            yield unfinished
    except OSError as error:
        raise DpreproError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield where to write; what is there takes the place of `path` at the end of the context.

    It is on the disk before it gets its name. If the context fails, nothing is left of it, and the
    file that was at `path` stays. What a killed process left of the same file is removed first.

    Parameters
    ----------
    mode
        Of the file; None: that of the file that was at `path`, or as the umask has it.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    name = os.fsencode(unfinished)
    held = None
    make_folder(path.parent)
    _remove_left(path)
    try:
        held = _hold(unfinished, 0o666 if mode is None else mode)
        if mode is None:
            with suppress(FileNotFoundError):
                unfinished.chmod(stat.S_IMODE(path.stat().st_mode))
        yield unfinished
        sync_file(unfinished)
        give_name(unfinished, path)
        sync_folder(path.parent)
    except BaseException:
        discard(name)
        raise
    finally:
        if held is not None:
            os.close(held)


@contextmanager
def owner_only(is_private: bool) -> Iterator[None]:
    """Let nobody but their owner read the files that are made in this context, if it is private.

    A file that is there keeps its mode. It is for the main thread: others share what it sets.
    """
    before = os.umask(0o077) if is_private else None
    try:
        yield
    finally:
        if before is not None:
            os.umask(before)


def require_writable(path: Path) -> None:
    """Raise `DpreproError` if no file can be written at `path`. Its folder is made if need be."""
    if os.path.isdir(path):  # noqa: PTH112 - no name is too long for it
        raise DpreproError(f"cannot write {path}: it is a folder; name a file in it")
    probe = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        make_folder(path.parent)
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        probe.unlink()
    except (OSError, ValueError) as error:
        raise DpreproError(f"cannot write {path}: {reason(error)}") from error


def _hold(path: Path, mode: int) -> int | None:
    """Make a file that is locked until the descriptor that is returned is closed."""
    if not are_of_posix():  # others do not rename open files
        return None
    for last in (False, False, True):
        number = os.open(path, os.O_RDWR | os.O_CREAT, mode)
        try:
            lock_open_file(number, wait=True)
            # Another process may have taken it for one that was left, before it was locked.
            if last or _is_named(number, path):
                return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)
    return None


def _remove_left(path: Path) -> None:
    """Remove unfinished files of `path` that nobody has locked: a killed process left them.

    On Windows they stay: `_hold` locks none there.
    """
    if not are_of_posix():
        return
    for left in path.parent.glob(f".{glob.escape(path.name)}.{8 * '[0-9a-f]'}.part"):
        with suppress(OSError):
            number = os.open(left, os.O_RDWR)
            try:
                if lock_open_file(number) and _is_named(number, left):
                    discard(os.fsencode(left))
            finally:
                os.close(number)


def _is_named(number: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False


def lock_open_file(number: int, wait: bool = False) -> bool:
    """Lock an open file that can lose its name meanwhile, until it is closed.

    False if another has it, or if there are no such locks: Windows moves no open file. With `wait`,
    it waits until another lets go of it.
    """
    try:
        if are_of_posix():
            lock(number, wait)
            return True
    except OSError:
        pass
    return False


def give_name(path: Path, name: Path) -> None:
    """Move a file to a name, in the place of what is there. Raises OSError.

    On Windows nobody may have either open. Who reads one, such as another command or a check for
    viruses, is waited for, for two seconds.
    """
    for pause in () if are_of_posix() else _PAUSES:
        try:
            path.replace(name)
            return
        except PermissionError:
            time.sleep(pause)
    path.replace(name)


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


def sync_file(path: Path) -> None:
    """Let what a file holds outlive a crash of the machine. Raises OSError."""
    try:
        number = os.open(path, os.O_RDWR)  # Windows writes through no file that is open for reading
    except PermissionError:
        number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a crash of the machine. Raises OSError."""
    if not are_of_posix():  # others have no file descriptor of a folder
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:  # some file systems cannot, and need not
            raise
    finally:
        os.close(number)


def write_all(number: int, data: bytes | bytearray) -> None:
    """Write all bytes to a file descriptor and wait until they are on the disk. Raises OSError."""
    while data:
        data = data[os.write(number, data) :]
    os.fsync(number)


def cache_dir() -> Path:
    """Return the folder: ``$DPREPRO_CACHE``, or the user's cache. May not exist."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given).expanduser() if given else platformdirs.user_cache_path("dprepro")


_PACKAGE = Path(__file__).resolve().parents[1]


def checkout() -> Path | None:
    """Return the checkout, which has documents, tests and benchmarks, too; None in a wheel."""
    return _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else None


def builtin(kind: Literal["configs", "datasets", "results"]) -> Path:
    """Return the folder of the built-in `kind`.

    A wheel carries it inside the package; an editable install finds it in the checkout.
    """
    packaged = _PACKAGE / f"_{kind}"
    return packaged if packaged.is_dir() else _PACKAGE.parent / kind
