"""Rows of a table become the columns of a store, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.rows.partition import SortedRows
from dprepro.rows.progress import report


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


@dataclass
class Filled:
    """What is known of rows in a store; all of it is private.

    Attributes
    ----------
    ends : list of int
        Where each chunk of rows ends.
    counts : list of int64 (cells,)
        Rows in each cell, of each feature.
    """

    ends: list[int]
    counts: list[np.ndarray]

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
        return np.dtype(np.uint8 if kind == "codes" else np.int32)


def fill(source: Source, write: Callable[[str, int, np.ndarray], None]) -> Filled:
    """Write "targets" and "cells-K" of every chunk, in order; return what is known of the rows."""
    filled = Filled([], [])
    for chunk in source.chunks:  # `enumerate` would hold a chunk while the next one is read
        _add(filled, source.sort(chunk), write)
        del chunk
        report("reading rows", filled.n_rows, source.n_rows)
    return filled


def _add(filled: Filled, rows: SortedRows, write: Callable[[str, int, np.ndarray], None]) -> None:
    number = len(filled.ends)
    filled.ends.append((filled.ends[-1] if filled.ends else 0) + rows.targets.size)
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
