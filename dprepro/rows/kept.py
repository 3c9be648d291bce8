"""Answers that a fit has had already, so that none is drawn twice.

Noise drawn anew for the same query would be another release, which the ledger does not count. So an
answer is on the disk before anything is made of it. A fit that was killed goes on with the answers
that it had.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dprepro.rows.store import StoreError


class KeptAnswers:
    """The answers of one fit in a file, in the order of the queries.

    Parameters
    ----------
    path
        The file; what was not written as a whole at its end is left out.

    Attributes
    ----------
    public_entropy : int
        What seeds the choices that show in what is released, so that they are the same again.

    Raises
    ------
    StoreError
        If the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        lines, size = _whole_lines(path)
        self._path = path
        self._file = path.open("ab")
        self._file.truncate(size)
        if not lines:
            lines = [{"public_entropy": secrets.randbits(128)}]
            self._write(lines[0])
        self.public_entropy = int(lines[0]["public_entropy"])
        self._kept, self._next = lines[1:], 0

    def next(self, question: Any) -> tuple[np.ndarray, float | np.ndarray] | None:
        """Return the answer that this question has had and its unit, or None if it has had none.

        Raises
        ------
        StoreError
            If another question was answered in its place.
        """
        if self._next == len(self._kept):
            return None
        line = self._kept[self._next]
        if line["question"] != digest(question):
            raise StoreError(
                f"{self._path} has the answer to another question: it is of another fit. Delete "
                f"{self._path.parent} and start again"
            )
        self._next += 1
        unit = line["unit"]
        answer = np.array(line["answer"], line["dtype"]).reshape(line["shape"])
        return answer, np.array(unit) if isinstance(unit, list) else unit

    def keep(self, question: Any, answer: np.ndarray, unit: float | np.ndarray = 1.0) -> None:
        """Write an answer to the disk; it may be used when this returns."""
        line = {
            "question": digest(question), "answer": answer.ravel().tolist(),
            "dtype": answer.dtype.name, "shape": answer.shape,
            "unit": unit.tolist() if isinstance(unit, np.ndarray) else unit,
        }  # fmt: skip
        self._write(line)
        self._kept.append(line)
        self._next += 1

    def once(self, question: Any, answer: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the answer that this question has had; else what is called, once it is kept."""
        kept = self.next(question)
        if kept is not None:
            return kept[0]
        found = answer()
        self.keep(question, found)
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line).encode()
        self._file.write(b"%08x %s\n" % (zlib.crc32(text), text))
        self._file.flush()
        os.fsync(self._file.fileno())


def digest(question: Any) -> str:
    """Return a digest of all that a question asks; it is made of public things alone."""
    return hashlib.sha256(repr(_plain(question)).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [_plain(getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else type(value).__name__


def _whole_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the lines that are whole, and how many bytes they take.

    The last one may be cut off: then nothing was made of its answer.
    """
    found, size = [], 0
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    for line in lines:
        crc, _, text = line.rstrip(b"\n").partition(b" ")
        if not line.endswith(b"\n") or crc != b"%08x" % zlib.crc32(text):
            if line is not lines[-1]:
                raise StoreError(f"{path} is damaged: delete {path.parent} and start again")
            break
        found.append(json.loads(text))
        size += len(line)
    return found, size
