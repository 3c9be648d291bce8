"""Answers that a fit has had already, so that none is drawn twice.

Noise drawn anew for the same query would be another answer, which the ledger does not count. So an
answer is on the disk before anything is made of it. A fit that was killed goes on with the answers
that it had.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple, is_dataclass
from typing import Any

import numpy as np

from dprepro.rows.folder import ANSWERS, Folder, StoreError, disk_errors, line_of, synced, value_of


class UnkeptAnswers:
    """Answers of a fit that cannot go on once it was interrupted: none is kept.

    Attributes
    ----------
    public_entropy : int
        What seeds the choices that show in what is released.
    """

    def __init__(self) -> None:
        self.public_entropy = secrets.randbits(128)

    def next(self, question: Any) -> tuple[np.ndarray, float | np.ndarray] | None:
        """Return the answer that this question has had and its unit, or None if it has had none."""
        return None

    def keep(self, question: Any, answer: np.ndarray, unit: float | np.ndarray = 1.0) -> None:
        """Keep an answer; it may be used when this returns."""

    def once(self, question: Any, answer: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the answer that this question has had; else what is called, once it is kept."""
        kept = self.next(question)
        if kept is not None:
            return kept[0]
        found = answer()
        self.keep(question, found)
        return found

    def close(self) -> None:
        """Nothing is open."""


class KeptAnswers(UnkeptAnswers):
    """The answers of one fit in a file, in the order of the queries; see `UnkeptAnswers`.

    What stands at its end and is not a whole line was never used, and is left out.

    Raises StoreError if the file is damaged, or too short.

    Parameters
    ----------
    folder
        Where the file is.
    least
        So many lines were written for certain.
    mark
        Is told how many there are, each time that one was written.
    """

    def __init__(self, folder: Folder, least: int, mark: Callable[[int], None]) -> None:
        self._folder, self._mark = folder, mark
        self._path = folder.path / ANSWERS
        lines, size = self._whole_lines()
        if len(lines) < least:
            raise folder.damaged(self._path)
        self._lines = len(lines)
        with disk_errors(folder.path):
            self._file = folder.open_file(ANSWERS, "ab")
            self._file.truncate(size)
            synced(self._file)  # a process that was killed may not have come to this
        if not lines:
            lines = [{"public_entropy": secrets.randbits(128)}]
            self._write(lines[0])
            folder.sync()
        self.public_entropy = int(lines[0]["public_entropy"])
        self._kept, self._next = lines[1:], 0

    def next(self, question: Any) -> tuple[np.ndarray, float | np.ndarray] | None:
        """See `UnkeptAnswers`. Raises StoreError if another question was answered in its place."""
        if self._next == len(self._kept):
            return None
        line = self._kept[self._next]
        if line["question"] != digest(question):
            raise StoreError(
                f"{self._path} has the answer to another question: it is of another fit. Delete "
                f"{self._folder.path} and start again"
            )
        self._next += 1
        unit = line["unit"]
        answer = np.array(line["answer"], line["dtype"]).reshape(line["shape"])
        return answer, np.array(unit) if isinstance(unit, list) else unit

    def keep(self, question: Any, answer: np.ndarray, unit: float | np.ndarray = 1.0) -> None:
        """Write an answer to the disk; it may be used when this returns."""
        self._write(
            {
                "question": digest(question), "answer": answer.ravel().tolist(),
                "dtype": answer.dtype.name, "shape": answer.shape,
                "unit": unit.tolist() if isinstance(unit, np.ndarray) else unit,
            }
        )  # fmt: skip

    def close(self) -> None:
        """Close the file. What could not be written was refused before."""
        with suppress(OSError):
            self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        with disk_errors(self._folder.path):
            self._file.write(line_of(line))
            synced(self._file)
        self._lines += 1
        self._mark(self._lines)

    def _whole_lines(self) -> tuple[list[dict[str, Any]], int]:
        """Return the lines, and how many bytes they take. The last may be cut off."""
        found, size = [], 0
        data = self._path.read_bytes() if self._path.is_file() else b""
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            try:
                found.append(value_of(line))
            except ValueError:
                raise self._folder.damaged(self._path) from None
            size += len(line)
        return found, size


def digest(question: Any) -> str:
    """Return a digest of all that a question asks; it is made of public things alone."""
    return hashlib.sha256(repr(_plain(question)).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, _plain(astuple(value))
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else type(value).__name__
