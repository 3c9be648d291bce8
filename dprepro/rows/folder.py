"""The folder that a fit keeps its rows in: whose it is, and what may be done in it.

The folder, and files in it, can be opened by their owner alone: names and lengths of files tell the
number of rows.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from dprepro.runtime.errors import DpreproError, DpreproWarning
from dprepro.runtime.files import refusal, sync_folder
from dprepro.runtime.locks import are_of_posix


def line_of(value: Any) -> bytes:
    """Return a line that holds a value: its checksum (CRC-32), then the value as JSON."""
    text = json.dumps(value).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def value_of(line: bytes) -> Any:
    """Return the value of a line. Raises ValueError if it is not as `line_of` made it."""
    crc, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or crc != b"%08x" % zlib.crc32(text):
        raise ValueError("the line is not as it was written")
    return json.loads(text)


MANIFEST = "store.json"
ANSWERS = "answers.jsonl"
_LOCK, _OVER, _RELEASE = "lock", "over", "book-entry"
_OURS = {MANIFEST, f"{MANIFEST}.new", _OVER, _RELEASE}
"""Where there are files, one of these is there: from the first file to the last."""
_OTHERS = {ANSWERS, "targets", "scores", "marks"}
"""Where these are, and the manifest is not, it was lost."""
_OWN = re.compile(
    rf"({MANIFEST}|codes-\d+)(\.new)?|{ANSWERS}|{_LOCK}|{_OVER}|{_RELEASE}|targets|scores|marks|"
    r"cells-\d+"
)
_BLOCK = bytes(2**20)


class StoreError(DpreproError):
    """The folder cannot keep the rows of this fit."""


class StoreWarning(DpreproWarning):
    """A folder holds what no fit can use."""


class Folder:
    """A folder of a fit's own, which one process uses at a time; it is made if it is not there.

    From then on its owner alone can open it, also if it was there before.

    Raises StoreError if another process uses it, if it holds other files, or if it cannot be made,
    or not be closed to others. In `deletion_at_the_end` of a release it has a note of which one
    that is; it is an error if it holds another, or answers of none.

    Parameters
    ----------
    path
        None is a folder of the system's, which no other fit finds.

    Attributes
    ----------
    path
        Where it is.
    is_temporary
        Whether it is one of the system's.
    """

    def __init__(self, path: Path | None) -> None:
        self.is_temporary = path is None
        with disk_errors(path or tempfile.gettempdir()):
            self.path = path or Path(tempfile.mkdtemp(prefix="dprepro-rows-"))
            self._refuse_other_files()
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.stat().st_mode & 0o077:  # it was there before
                self.path.chmod(0o700)
            self._lock = FileLock(self.path / _LOCK, mode=0o600, thread_local=False)
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise StoreError(
                    f"another fit uses {self.path} now: wait until it is over, or name another "
                    "folder"
                ) from None
            try:
                self._note_release(_OF_RELEASE.get())
            except BaseException:
                self.release()
                raise

    def _note_release(self, name: str) -> None:
        if not name:
            return
        noted = release_in(self.path)
        if noted != name and (noted or (self.path / ANSWERS).is_file()):
            raise StoreError(
                f"{self.path} holds the rows and answers of another fit or release: name another "
                "folder, or delete this one"
            )
        if not noted:
            with self.open_file(_RELEASE, "wb") as file:
                file.write(name.encode())
                synced(file)
            self.sync()

    def read_manifest(self) -> dict[str, Any] | None:
        """Return what `write_manifest` wrote last; None where there is no whole store.

        Raises StoreError if it is damaged, or not there where there are answers.
        """
        path = self.path / MANIFEST
        if not path.is_file() or (self.path / _OVER).is_file():
            if (self.path / ANSWERS).is_file() and not (self.path / _OVER).is_file():
                raise self.damaged(path)
            return None
        try:
            manifest: dict[str, Any] = value_of(path.read_bytes())
        except ValueError:
            raise self.damaged(path) from None
        return manifest

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Let this be the manifest: as a whole, or not at all."""
        new = self.path / f"{MANIFEST}.new"
        with self.open_file(new.name, "wb") as file:
            file.write(line_of(manifest))
            synced(file)
        new.replace(self.path / MANIFEST)
        self.sync()

    @property
    def is_useless(self) -> bool:
        """Whether it holds nothing that a fit could go on from."""
        return not any((self.path / name).exists() for name in (MANIFEST, ANSWERS))

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Fill the folder anew, and mark it as one of ours; if that fails, nothing is left in it.

        No other fit can use a part.
        """
        self._begin()
        try:
            yield
        except BaseException:
            self._begin()
            raise

    def _begin(self) -> None:
        with disk_errors(self.path):
            self._empty()
            self.open_file(f"{MANIFEST}.new", "wb").close()

    def open_file(self, name: str, mode: str) -> BinaryIO:
        """Open a file for the owner alone; "r+b" makes it if it is not there."""
        return open(self.path / name, mode, opener=_open_private)  # type: ignore[return-value]

    def reserve(self, name: str, size: int) -> None:
        """Make a file of zeros that has its place on the disk: writing to a mapping cannot fail.

        Raises OSError if there is no room; the file is not there then.
        """
        try:
            with self.open_file(name, "wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                    return
                for start in range(0, size, len(_BLOCK)):
                    file.write(_BLOCK[: size - start])
        except BaseException:
            (self.path / name).unlink(missing_ok=True)
            raise

    def sync(self) -> None:
        """Let new names of files be on the disk."""
        sync_folder(self.path)

    def damaged(self, path: Path) -> StoreError:
        """Return the error that a file is not as it was written."""
        return StoreError(
            f"{path.name} in {self.path} is damaged or missing: delete {self.path} and start again"
        )

    def end(self, finished: bool) -> None:
        """Delete the folder of a fit that has `finished`, or that no other fit finds.

        In `deletion_at_the_end` the first comes later.
        """
        finished_folders = _FINISHED.get()
        if not (finished or self.is_temporary):
            self.release()
        elif self.is_temporary or finished_folders is None:
            self.delete()
        else:
            finished_folders.append(self)

    def release(self) -> None:
        """Let others use the folder."""
        self._lock.release()

    def delete(self) -> None:
        """Delete all files of ours, and the folder if nothing else is in it.

        What cannot be deleted is a warning: the model of a fit must not be lost by it.
        """
        try:
            # First: where this note is, answers of its release are there, or none was ever given.
            (self.path / _RELEASE).unlink(missing_ok=True)
            self._empty()
            if are_of_posix():
                (self.path / _LOCK).unlink(missing_ok=True)  # before others can lock it
        except OSError as error:
            warnings.warn(
                f"cannot delete {self.path}, which holds private rows: {error.strerror}. Delete it",
                StoreWarning,
                stacklevel=2,
            )
        self.release()
        with suppress(OSError):
            if not are_of_posix():  # there an open file cannot be deleted, by whomever
                (self.path / _LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def _empty(self) -> None:
        # A process that is killed meanwhile leaves something that says whose the folder is, and
        # nothing that another fit could go on from.
        if (self.path / MANIFEST).is_file():
            (self.path / MANIFEST).replace(self.path / _OVER)
        for path in self.path.iterdir():
            if path.name not in {_LOCK, *_OURS}:
                path.unlink()
        for name in _OURS - {_RELEASE}:
            (self.path / name).unlink(missing_ok=True)

    def _refuse_other_files(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path} is a file: name a folder for the rows of the fit")
        paths = list(self.path.iterdir()) if self.path.is_dir() else []
        names = {path.name for path in paths} - {_LOCK}
        own = all(_OWN.fullmatch(path.name) and path.is_file() for path in paths)
        if not own or (names and not names & _OURS and not names >= _OTHERS):
            raise StoreError(
                f"{self.path} holds other files: name a folder of its own for the rows of the fit"
            )


_FINISHED: ContextVar[list[Folder] | None] = ContextVar("finished", default=None)
_OF_RELEASE: ContextVar[str] = ContextVar("of_release", default="")


def release_in(path: Path) -> str:
    """Return the name of the release whose fit left a folder; empty where there is none."""
    note = path / _RELEASE
    with disk_errors(path):
        return note.read_text(encoding="utf-8") if note.is_file() else ""


@contextmanager
def deletion_at_the_end(release: str = "") -> Iterator[None]:
    """Delete the folders of fits that finish in this context at its end, and not if it fails.

    A fit to the same rows then makes the same model again, of the answers that are kept. With the
    name of a `release` it is noted in the folder, until this is deleted: see `release_in`.
    """
    folders: list[Folder] = []
    token, named = _FINISHED.set(folders), _OF_RELEASE.set(release)
    try:
        yield
    except BaseException:
        for folder in folders:
            folder.release()
        raise
    finally:
        _FINISHED.reset(token)
        _OF_RELEASE.reset(named)
    for folder in folders:
        folder.delete()


def synced(file: BinaryIO) -> None:
    """Let what was written to a file be on the disk."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def disk_errors(path: str | Path) -> Iterator[None]:
    """Raise StoreError for what the disk refuses."""
    try:
        yield
    except OSError as error:
        what, advice = refusal(error)
        raise StoreError(
            f"cannot keep the rows of the fit in {path}: {what}. Either {advice}, or name another "
            "folder for them"
        ) from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT if flags & os.O_RDWR else flags, 0o600)
