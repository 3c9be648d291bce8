"""Rows of a table become the columns of a store, chunk by chunk, and are read from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.rows.answer_log import UnkeptAnswers
from dprepro.rows.folder import Folder
from dprepro.rows.partition import SortedRows, score_type
from dprepro.rows.table import report


@dataclass(frozen=True)
class Source:
    """The rows of a fit, and how they become whole numbers.

    Attributes
    ----------
    identity
        What tells this fit and its rows from others, JSON-able.
    chunks
        They are read once, if at all.
    sort
        Makes `SortedRows` of a chunk.
    n_rows
        How many rows there are, if that is known.
    """

    identity: Any
    chunks: Iterable[Any]
    sort: Callable[[Any], SortedRows]
    n_rows: int | None = None


@dataclass(repr=False)
class Ingested:
    """What is known of rows in a store; all of it is private.

    Attributes
    ----------
    ends : list of int
        Where each chunk of rows ends.
    counts : list of int64 (cells,)
        Rows in each cell, of each feature.
    n_scores : int
        How many scores a row has.
    """

    ends: list[int]
    counts: list[np.ndarray]
    n_scores: int = 1

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.ends[-1]

    def rows(self, chunk: int) -> slice:
        """Return the rows of a chunk."""
        return slice(self.ends[chunk - 1] if chunk else 0, self.ends[chunk])

    def dtype(self, name: str) -> np.dtype:
        """Return the dtype of a column: of cells the smallest that holds their numbers."""
        kind, _, feature = name.partition("-")
        if kind == "cells":
            return cell_type(self.counts[int(feature)])
        if kind == "scores":
            return score_type(self.n_scores)
        return np.dtype(np.uint8 if kind == "codes" else np.int32)


def ingest(
    source: Source, filled: Ingested, write: Callable[[str, int, np.ndarray], None]
) -> Ingested:
    """Write "targets" and "cells-K" of every chunk, in order; return what is known of the rows.

    `filled` is of no rows yet.
    """
    for chunk in source.chunks:  # `enumerate` would hold a chunk while the next one is read
        _add(filled, source.sort(chunk), write)
        del chunk
        report("reading rows", filled.n_rows, source.n_rows)
    return filled


def _add(filled: Ingested, rows: SortedRows, write: Callable[[str, int, np.ndarray], None]) -> None:
    number = len(filled.ends)
    filled.ends.append((filled.ends[-1] if filled.ends else 0) + rows.targets.size)
    filled.n_scores = rows.n_scores
    if not filled.counts:
        filled.counts.extend(np.zeros_like(counts) for counts in rows.counts)
    for total, counts in zip(filled.counts, rows.counts, strict=True):
        total += counts
    columns = {"targets": rows.targets, **{f"cells-{k}": c for k, c in rows.cells.items()}}
    for name, values in columns.items():
        write(name, number, np.ascontiguousarray(values, filled.dtype(name)))


def cell_type(counts: np.ndarray) -> np.dtype:
    """Return the smallest dtype that holds the numbers of so many cells."""
    return np.min_scalar_type(counts.size - 1)


class ChunkStore(ABC):
    """Columns of rows in the files of a folder, chunk by chunk.

    Parameters
    ----------
    folder
        Where the files are.
    filled
        What is known of the rows.
    """

    def __init__(self, folder: Folder, filled: Ingested) -> None:
        self._folder, self.filled = folder, filled

    @property
    def features(self) -> int:
        """How many there are."""
        return len(self.filled.counts)

    def columns(self) -> list[StoredColumns]:
        """Return the columns of every chunk."""
        return [StoredColumns(self, chunk) for chunk in range(len(self.filled.ends))]

    def has(self, name: str) -> bool:
        """Whether a column is there: "targets", "scores", "cells-K" or "codes-K"."""
        return (self._folder.path / name).is_file()

    def answers(self) -> UnkeptAnswers:
        """Return the answers that this fit has had: none, unless a fit can go on with the files."""
        return UnkeptAnswers()

    @abstractmethod
    def read(self, name: str, chunk: int) -> np.ndarray:
        """Return a chunk of a column, (n,); of scores see `Columns`.

        What is written to scores stays, once it is let go.
        """

    @abstractmethod
    def write(self, name: str, chunk: int, values: np.ndarray) -> None:
        """Write a chunk of a column."""

    @abstractmethod
    def finish(self, feature: int) -> None:
        """Let the codes of a feature take the place of its cells: all chunks are written."""

    @abstractmethod
    def let_go(self, chunk: int, columns: Mapping[str, np.ndarray]) -> None:
        """Give back the memory of what was read of a chunk."""

    @abstractmethod
    def followed(self, chunk: int) -> int:
        """Return how many moves the scores have followed, or `MOVING`."""

    @abstractmethod
    def set_followed(self, chunk: int, moves: int) -> None:
        """Set it, after what was written before."""

    @abstractmethod
    def close(self, finished: bool) -> None:
        """Let others use the files, or delete them."""


class StoredColumns:
    """See `dprepro.rows.partition.Columns`."""

    weights = None  # the reader refuses weights of rows that are not in memory

    def __init__(self, store: ChunkStore, chunk: int) -> None:
        self._store, self._chunk = store, chunk
        self._read: dict[str, np.ndarray] = {}
        self.cells: MutableMapping[int, np.ndarray] = _Features(self, store, "cells")
        self.codes: MutableMapping[int, np.ndarray] = _Features(self, store, "codes")

    @property
    def targets(self) -> np.ndarray:
        """See `Columns`."""
        return self.read("targets")

    @property
    def scores(self) -> np.ndarray:
        """See `Columns`."""
        return self.read("scores")

    @property
    def followed(self) -> int:
        """See `Columns`."""
        return self._store.followed(self._chunk)

    @followed.setter
    def followed(self, moves: int) -> None:
        self._store.set_followed(self._chunk, moves)

    def read(self, name: str) -> np.ndarray:
        """Return a column, the same array until it is let go."""
        if name not in self._read:
            self._read[name] = self._store.read(name, self._chunk)
        return self._read[name]

    def write(self, name: str, values: np.ndarray) -> None:
        """Write a column."""
        self._store.write(name, self._chunk, values)

    def let_go(self) -> None:
        """See `Columns`."""
        read, self._read = self._read, {}
        self._store.let_go(self._chunk, read)


class _Features(MutableMapping[int, np.ndarray]):
    """The cells or the codes of the features that have them."""

    def __init__(self, columns: StoredColumns, store: ChunkStore, kind: str) -> None:
        self._columns, self._store, self._kind = columns, store, kind

    def __getitem__(self, feature: int) -> np.ndarray:
        if feature not in self:
            raise KeyError(feature)
        return self._columns.read(f"{self._kind}-{feature}")

    def __setitem__(self, feature: int, values: np.ndarray) -> None:
        self._columns.write(f"{self._kind}-{feature}", values)

    def __delitem__(self, feature: int) -> None:
        """Leave it to the holder, who deletes the cells of all chunks at once."""

    def __contains__(self, feature: object) -> bool:
        # A feature that has codes needs no cells, though a process was killed before it deleted
        # them.
        told = self._store.has(f"codes-{feature}")
        return told if self._kind == "codes" else not told and self._store.has(f"cells-{feature}")

    def __iter__(self) -> Iterator[int]:
        return (k for k in range(self._store.features) if k in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)
