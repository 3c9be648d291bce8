"""A file that one process appends to, and that survives what others do to its name.

The file is locked by its inode, so that two names of it, or a link, are one file. What was written
is also kept in memory. Before each line the file is looked at: where it was replaced, deleted or
changed, it is put back, and what stood there instead is kept beside it.

Windows changes no name of an open file. There the file is closed for the moment in which its name
goes to another; a process that locks it in that moment has it, and this one stops before it writes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import warnings
from pathlib import Path

from dprepro.runtime.errors import DpreproError, DpreproWarning
from dprepro.runtime.files import (
    BINARY,
    discard,
    give_name,
    is_file,
    make_folder,
    sync_folder,
    write_all,
)
from dprepro.runtime.locks import are_of_posix, are_there, lock

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)


class JournalWarning(DpreproWarning):
    """A journal was damaged, or others changed it."""


class AppendedFile:
    """A file open for appending, by one process at a time.

    Parameters
    ----------
    path
        The file; it and its folder are made if need be.
    fresh
        Move what is there aside (``.bak``, ``.bak1``, ...) and begin anew. It is put back if
        nothing is written.
    instead
        Another file, whose content counts where this one is not there and cannot be made.

    Attributes
    ----------
    content
        All that the file holds; a line more takes no time that grows with it.
    refused
        Why this process may read the file and not write it; None if it may. Nobody else is then
        kept from writing it.

    Raises
    ------
    BlockingIOError
        If another process has the file open.
    OSError
        If the file system refuses, or if a file that can only be read is to be fresh. A method that
        writes raises `refused`, too.
    DpreproError
        If the system has no locks that end with their process.
    """

    def __init__(self, path: Path, fresh: bool = False, instead: Path | None = None) -> None:
        self.path = path
        self.content = bytearray()
        self.refused: OSError | None = None
        self._place = Path(os.path.realpath(path))
        self._file = -1
        self._aside: Path | None = None
        _need_locks(self._place)
        make_folder(self._place.parent)
        try:
            self._open(fresh)
        except OSError as error:
            self._release()
            is_there = is_file(self._place)
            can_be_read = is_there or (instead is not None and is_file(instead))
            if fresh or error.errno not in _READ_ONLY or not can_be_read:
                raise
            self.content = bytearray(self._place.read_bytes() if is_there else b"")
            self.refused = error
        except BaseException:
            self._release()
            raise

    def append(self, data: bytes) -> None:
        """Write at the end and wait until it is on the disk.

        Raises
        ------
        OSError
            If it cannot be written; the file then ends as before.
        DpreproError
            If another process took the file's place and writes there.
        """
        self.hold_place(data)
        try:
            write_all(self._file, data)
        except OSError:
            self.cut(len(self.content))
            raise
        self.content += data
        self._note()

    def cut(self, size: int) -> None:
        """Keep the first `size` bytes, as far as the file system lets us."""
        del self.content[size:]
        if self.refused is not None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, size)
            os.fsync(self._file)
        self._note()

    def replace(self, content: bytes | bytearray) -> None:
        """Put other content in the file's place, at once.

        Raises
        ------
        OSError
            If the file system refuses; the file then stays.
        DpreproError
            On Windows, if another process has locked the file meanwhile.
        """
        self._ask_to_write()
        new = self._unfinished
        name = os.fsencode(new)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | BINARY
        number = os.open(new, flags, 0o600)
        try:
            if are_of_posix():
                lock(number)
                os.fchmod(number, stat.S_IMODE(os.fstat(self._file).st_mode))
            write_all(number, content)
            if are_of_posix():
                new.replace(self._place)
        except BaseException:
            os.close(number)
            discard(name)
            raise
        if are_of_posix():
            os.close(self._file)
            self._file = number
        else:
            os.close(number)
            self._replace_closed(new)
        self.content = bytearray(content)
        self._note()
        sync_folder(self._place.parent)

    def _replace_closed(self, new: Path) -> None:
        self._release()
        try:
            give_name(new, self._place)
        except BaseException:
            discard(os.fsencode(new))
            raise
        finally:
            try:
                self._file = _opened(self._place)
            except BlockingIOError as error:
                self.refused = error
                self._give_way(b"")

    def hold_place(self, pending: bytes = b"") -> None:
        """Put the file back if it is no longer what was written here.

        Raises
        ------
        OSError
            If the file system refuses.
        DpreproError
            If another process writes in its place; what is here, and `pending`, is then kept.
        """
        self._ask_to_write()
        try:
            there = self._place.stat()
        except FileNotFoundError:
            what, theirs = "deleted", b""
        else:
            own = os.fstat(self._file)
            is_same = (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)
            if is_same and self._noted == (own.st_size, own.st_mtime_ns):
                return
            theirs = self._place.read_bytes()
            if is_same and theirs == self.content:
                self._note()
                return
            what = "changed" if is_same else "replaced"
            if not is_same and is_locked(self._place):
                self._give_way(pending)
        kept = "" if self.content.startswith(theirs) else self.keep(theirs)
        make_folder(self._place.parent)
        self.replace(self.content)
        warnings.warn(
            f"{self.path}: somebody {what} it while this run wrote to it. It is back as this run "
            f"wrote it, and nothing is lost{kept and f'; what stood there is in {kept}'}",
            JournalWarning,
            stacklevel=3,
        )

    def close(self) -> None:
        """Let go of the file; an empty one leaves no trace, and what was before it is back."""
        if self._file >= 0 and not self.content:
            with contextlib.suppress(OSError):
                self._leave_as_found()
        self._release()

    def _leave_as_found(self) -> None:
        # The name may be that of another run's file by now.
        if not os.path.samestat(os.fstat(self._file), self._place.stat()):
            return
        if not are_of_posix():
            self._release()
            if self._place.stat().st_size:  # it can only be removed if nobody has it open
                return
        if self._aside is not None and self._aside.exists():
            self._aside.replace(self._place)
        else:
            self._place.unlink()

    @property
    def _unfinished(self) -> Path:
        return self._place.with_name(f".{self._place.name}.new")

    def _open(self, fresh: bool) -> None:
        self._file = _opened(self._place)
        self._unfinished.unlink(missing_ok=True)  # of a process that was killed
        if fresh and os.fstat(self._file).st_size:
            self._move_aside()
        self.content = bytearray(self._place.read_bytes())
        if not self.content:
            sync_folder(self._place.parent)
        self._note()

    def _move_aside(self) -> None:
        self._aside = free_name(self._place)
        old, self._file = self._file, -1
        try:
            if not are_of_posix():
                os.close(old)
                old = -1
            self._place.rename(self._aside)
            self._file = _opened(self._place)
        except BlockingIOError:  # another run has the name by now
            raise
        except OSError as error:
            if is_file(self._place) and is_locked(self._place):  # as soon as it was closed
                raise BlockingIOError(errno.EWOULDBLOCK, "another has the lock") from error
            with contextlib.suppress(OSError):
                _give_free_name(self._aside, self._place)
            raise
        finally:
            if old >= 0:
                os.close(old)

    def _note(self) -> None:
        own = os.fstat(self._file)
        self._noted = own.st_size, own.st_mtime_ns

    def _give_way(self, pending: bytes) -> None:
        refused, self.refused = self.refused, None
        kept = self.keep(self.content + pending)
        self.refused = refused
        raise DpreproError(
            f"{self.path}: another run took its place and is writing there. What this run wrote "
            f"is in {kept}. Let the other run end; then give the same command again"
        )

    def keep(self, content: bytes | bytearray, name: str = "bak") -> Path:
        """Write `content` beside the file, as ``.NAME``, ``.NAME1``, ... Raises OSError."""
        self._ask_to_write()
        make_folder(self._place.parent)
        backup = free_name(self._place, name)
        number = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600)
        try:
            write_all(number, content)
        finally:
            os.close(number)
        sync_folder(self._place.parent)
        return backup

    def _ask_to_write(self) -> None:
        if self.refused is not None:
            raise self.refused

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def free_name(path: Path, name: str = "bak") -> Path:
    """Return the first of ``.NAME``, ``.NAME1``, ... that is free."""
    number = 0
    while (backup := path.with_name(f"{path.name}.{name}{number or ''}")).exists():
        number += 1
    return backup


def _give_free_name(path: Path, name: Path) -> None:
    """Move a file to a name, only if nothing is there. Raises OSError."""
    if are_of_posix():
        os.link(path, name)
        path.unlink()
    else:
        path.rename(name)


def _opened(place: Path) -> int:
    """Return a locked file that has the name `place`, made if need be."""
    while True:
        # A journal has exact scores, maybe of private rows.
        number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY, 0o600)
        try:
            lock(number)
            own, there = os.fstat(number), place.stat()
        except FileNotFoundError:
            os.close(number)  # another process took the name away before the lock was ours
            continue
        except BaseException:
            os.close(number)
            raise
        if (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino):
            return number
        os.close(number)


def is_locked(place: Path) -> bool:
    """Whether a process has the file open for appending. Raises OSError."""
    number = os.open(place, os.O_RDONLY)
    try:
        lock(number)
    except BlockingIOError:
        return True
    except ImportError:  # a system on which nothing appends
        return False
    finally:
        os.close(number)
    return False


def _need_locks(place: Path) -> None:
    """Raise DpreproError if `lock` cannot work here, before there is a file to lock."""
    if not are_there():
        raise DpreproError(
            f"{place} cannot be written on this system: its Python has neither a module fcntl nor "
            "msvcrt, whose file locks keep two runs from one journal. Run it on Linux, macOS or "
            "Windows. Finished journals can be read here: dprepro table, check, report"
        )
