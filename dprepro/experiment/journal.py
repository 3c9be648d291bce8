"""The journal: one JSON line a finished task, on disk before the next one counts.

Lines of two other kinds stand between them: the environment of a run, before the tasks that it
added, and the plan of its config, whenever that is not the one stated last.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from dprepro.errors import DpreproError, DpreproWarning
from dprepro.experiment.record import Record
from dprepro.experiment.stated import StatedPlan
from dprepro.files import MEBIBYTE, NoFileError, read_bytes

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)
_MOST_BYTES = 1024 * MEBIBYTE


class JournalWarning(DpreproWarning):
    """A journal had a torn last line."""


@dataclass(frozen=True)
class JournalContents:
    """What a journal holds.

    Attributes
    ----------
    environments
        One dict a run that added something, oldest first.
    records
        In the order written; of several with one key only the last.
    computed_in
        By the key of a record's task the environment that precedes it; nothing where none does.
    plan
        What the config asked for at the last run; None where no run has said.
    """

    environments: list[dict[str, Any]]
    records: list[Record]
    computed_in: dict[str, dict[str, Any]]
    plan: StatedPlan | None = None


def read_journal(path: Path) -> JournalContents:
    """Read a journal; a last line torn by a crash is left out with a `JournalWarning`.

    Raises
    ------
    DpreproError
        If the file cannot be read, or a line is not what `Journal` writes.
    """
    try:
        raw = read_bytes(path, _MOST_BYTES)
    except NoFileError as error:
        raise DpreproError(f"no journal {path}; `dprepro run {path.stem}` writes it") from error
    lines = _whole_lines(raw, path)
    environments: list[dict[str, Any]] = []
    records: dict[str, Record] = {}
    computed_in: dict[str, dict[str, Any]] = {}
    plan = None
    for number, line in enumerate(lines, start=1):
        fields = _parse(line, path, number)
        if fields["kind"] == "environment":
            environments.append(fields)
        elif fields["kind"] == "plan":
            plan = _plan(fields, path, number)
        else:
            key, record = _record(fields, path, number)
            # Last place too, so that the order tells which of two settings came later.
            records.pop(key, None)
            records[key] = record
            if environments:
                computed_in[key] = environments[-1]
    return JournalContents(environments, list(records.values()), computed_in, plan)


def last_plan(path: Path) -> StatedPlan | None:
    """Return the plan that a journal states last, without reading its records.

    None where it states none, or none that can be read: `read_journal` says what is wrong.
    """
    try:
        with path.open("rb") as lines:
            stated = [line for line in lines if line.startswith(b'{"kind":"plan"')]
        return StatedPlan.from_json(json.loads(stated[-1])) if stated else None
    except (OSError, *_MALFORMED):
        return None


class Journal:
    """A journal open for appending, by one run at a time. Use it as a context manager.

    Parameters
    ----------
    path
        The ``.jsonl`` file; its folder is made if need be.
    fresh
        Move an existing journal aside (``.bak``, ``.bak1``, ...) and begin a new one.

    Raises
    ------
    DpreproError
        If another run has it open, or the file system refuses.
    """

    def __init__(self, path: Path, fresh: bool = False) -> None:
        self.path = path
        self._fresh = fresh
        self._lock = FileLock(f"{path}.lock", timeout=0)
        self._file = -1

    def __enter__(self) -> Journal:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
        except Timeout as error:
            raise DpreproError(
                f"another run is writing {self.path}; wait for it to end, stop it, or give "
                "this one another folder with --results"
            ) from error
        except OSError as error:
            raise DpreproError(f"{self.path}: cannot be written: {error}") from error
        try:
            if self._fresh:
                _move_aside(self.path)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._cut_torn_line()
        except BaseException as error:
            self._close()
            if isinstance(error, OSError):
                raise DpreproError(f"{self.path}: cannot be written: {error}") from error
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def append(self, entry: Record | StatedPlan | Mapping[str, Any]) -> None:
        """Write one line and wait until it is on disk.

        Raises
        ------
        DpreproError
            If it cannot be written (disk full, ...); the journal then ends with the line before.
        ValueError
            If the entry holds NaN or infinity, which strict JSON lacks.
        """
        fields = entry.to_json() if isinstance(entry, Record | StatedPlan) else dict(entry)
        line = json.dumps(fields, allow_nan=False, separators=(",", ":")) + "\n"
        size = os.fstat(self._file).st_size
        try:
            _write_all(self._file, line.encode())
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)
            raise DpreproError(
                f"{self.path}: cannot be written: {error.strerror}. All earlier lines are safe: "
                "make room, then give the same command again to resume"
            ) from error

    def _cut_torn_line(self) -> None:
        raw = self.path.read_bytes()
        whole = sum(len(line) + 1 for line in _whole_lines(raw, self.path))
        if whole < len(raw):
            os.ftruncate(self._file, whole)

    def _close(self) -> None:
        if self._file >= 0:
            if os.fstat(self._file).st_size == 0:
                self.path.unlink()  # nothing came of it
            os.close(self._file)
            self._file = -1
        self._lock.release()


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _whole_lines(raw: bytes, path: Path) -> list[bytes]:
    """Return the complete lines; warn about what a crash left after them."""
    *lines, tail = raw.split(b"\n")
    if not tail and lines and not _is_json(lines[-1]):
        tail = lines.pop()  # after a power cut, blocks of zeros can end in a newline
    if tail:
        warnings.warn(
            f"{path}: the last line was torn by a crash and is dropped ({len(tail)} bytes)",
            JournalWarning,
            stacklevel=3,
        )
    return lines


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        fields = json.loads(line)
        if fields["kind"] in ("environment", "plan", "record"):
            return dict(fields)
        problem = f"unknown kind {fields['kind']!r}"
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise DpreproError(
        f"{path}, line {number}: not a journal line ({problem}); take the line out, or begin "
        "again with --fresh, which keeps the old file as .bak"
    )


def _record(fields: dict[str, Any], path: Path, number: int) -> tuple[str, Record]:
    try:
        record = Record.from_json(fields)
        for name, value in (*record.metrics.items(), *record.seconds.items()):
            if not math.isfinite(value):
                raise ValueError(f"{name} is {value}")
        return record.task.key, record
    except _MALFORMED as error:
        raise DpreproError(
            f"{path}, line {number}: a record of another version of dprepro "
            f"({type(error).__name__}: {error}); begin again with --fresh, which keeps the old "
            "file as .bak"
        ) from error


def _plan(fields: dict[str, Any], path: Path, number: int) -> StatedPlan:
    try:
        return StatedPlan.from_json(fields)
    except _MALFORMED as error:
        raise DpreproError(
            f"{path}, line {number}: not a plan that this version of dprepro can read "
            f"({type(error).__name__}: {error}). The records are intact: remove line {number}. "
            f"The next `dprepro run {path.stem}` writes the plan again"
        ) from error


def _move_aside(path: Path) -> None:
    if not path.exists():
        return
    number = 0
    while (backup := path.with_name(f"{path.name}.bak{number or ''}")).exists():
        number += 1
    path.rename(backup)
