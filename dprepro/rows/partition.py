"""Some of the rows of a fit, in one place, and what they add to every answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from dprepro.data.domain import Feature
from dprepro.privacy.query import Instruction
from dprepro.runtime.kernels import kernel
from dprepro.runtime.threads import ALONE, Threads

MAX_BINS = 256
"""Bins that a feature can have, those of missing values and of other categories included: codes are
uint8."""


WEIGHT_UNIT = 2.0**-8
"""What the weights of rows count in, where the largest is 1."""


def as_codes(bins: np.ndarray) -> np.ndarray:
    """Return numbers of bins as uint8.

    Raises ValueError if one is not from 0 to 255: as a byte it would be another bin's.
    """
    if bins.size and not 0 <= bins.min() <= bins.max() < MAX_BINS:
        raise ValueError(
            f"bins {bins.min()} to {bins.max()} of a feature do not fit into a byte: a feature has "
            f"at most {MAX_BINS} bins, numbered from 0. Merge cells into fewer bins"
        )
    return bins.astype(np.uint8)


def recode(
    cells: np.ndarray, bin_of_cell: np.ndarray, order: np.ndarray, codes: np.ndarray
) -> None:
    """Write the bin of every row's cell to `codes`, uint8 (n,), rows in `order`.

    Raises ValueError if a cell's bin does not fit into uint8.
    """
    _recode(cells, as_codes(bin_of_cell), order, codes)


@kernel(
    "(uint8[::1], uint8[::1], int64[::1], uint8[::1])",
    "(uint16[::1], uint8[::1], int64[::1], uint8[::1])",
    "(uint32[::1], uint8[::1], int64[::1], uint8[::1])",
)
def _recode(cells, bin_of_cell, order, codes):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        codes[i] = bin_of_cell[cells[order[i]]]


@kernel("(uint8[::1], int64)", "(uint16[::1], int64)", "(uint32[::1], int64)")
def count_rows(codes, size):  # type: ignore[no-untyped-def]
    """Return how many rows have each code below `size`, int64 (size,).

    As ``np.bincount``, without its copy of the codes as int64. Other threads run meanwhile.
    """
    counts = np.zeros(size, np.int64)
    for code in codes:
        counts[code] += 1
    return counts


MOVING = -1
"""In place of the number of moves that scores have followed, while they follow some."""


class Columns(Protocol):
    """The columns of a partition's n rows, in whole numbers.

    Attributes
    ----------
    targets : int32 (n,)
        In the unit and order of the method.
    scores : int32 (n,), or (n, S) where a row has S of them
        What was released so far makes of each row. Written to in place.
    weights : int32 (n,) or None
        See `SortedRows`.
    cells : dict of uint8, uint16 or uint32 (n,)
        The cell of every row, of the features whose bins are not told yet.
    codes : dict of uint8 (n,)
        The bin of every row, of the features whose bins are told.
    followed : int
        How many moves the scores have followed, or `MOVING`.
    """

    cells: MutableMapping[int, np.ndarray]
    codes: MutableMapping[int, np.ndarray]
    followed: int

    @property
    def targets(self) -> np.ndarray:
        """See the class."""

    @property
    def scores(self) -> np.ndarray:
        """See the class."""

    @property
    def weights(self) -> np.ndarray | None:
        """See the class."""

    def let_go(self) -> None:
        """Give back the memory of what was read: a question is answered."""


@dataclass(frozen=True, eq=False, repr=False)
class SortedRows:
    """Rows in whole numbers, as a method takes them.

    Attributes
    ----------
    targets : int32 (n,)
        In the unit and order of the method.
    cells : dict of uint8, uint16 or uint32 (n,)
        The cell of every row, in this order, for each feature.
    counts : list of int64 (cells,)
        Rows in each cell, for each feature; with weights, their sums.
    n_scores : int
        How many scores a row has.
    weights : int32 (n,) or None
        What part of a row each counts for, in whole numbers of `WEIGHT_UNIT` from 0 to 1. None:
        each row is one.
    """

    targets: np.ndarray
    cells: dict[int, np.ndarray]
    counts: list[np.ndarray]
    n_scores: int = 1
    weights: np.ndarray | None = None


def score_type(n_scores: int) -> np.dtype:
    """Return the dtype of a row's scores: arrays of it are int32 (n,), or (n, S) of several."""
    return np.dtype(np.int32 if n_scores == 1 else (np.int32, (n_scores,)))


class Partition(ABC):
    """Rows whose scores follow what is released.

    What they add is a function of these rows and of the instructions so far. So it does not matter
    when they follow an instruction, or whether a partition is lost and read again.

    Parameters
    ----------
    columns
        Where their numbers lie.
    counts : list of int64 (cells,)
        Rows in each cell, of each feature.
    moves
        Instructions about scores, in order; all partitions of a holder may share them. Those that
        `columns` has followed are not followed again.
    """

    def __init__(
        self,
        columns: Columns,
        counts: Sequence[np.ndarray],
        moves: list[Instruction],
    ) -> None:
        self._columns = columns
        self._counts = counts
        self._moves = moves

    @abstractmethod
    def answer(self, question: Any) -> Any:
        """Return what these rows add to the answer, in whole numbers: private."""

    @abstractmethod
    def _move(self, instruction: Any) -> None:
        """Let the scores follow one more instruction."""

    def follow(self, instruction: Instruction) -> None:
        """Do what an instruction says: bins at once, scores with the next question."""
        if instruction.tells_bins:
            self.merge(instruction)
        else:
            self._moves.append(instruction)

    def merge(self, instruction: Any) -> None:
        """Give every row the bin of its cell; the cells are not needed again."""
        k, columns = instruction.feature, self._columns
        if k in columns.cells:
            cells = columns.cells[k]
            codes = np.empty(cells.size, np.uint8)
            recode(cells, instruction.bin_of_cell, np.arange(codes.size), codes)
            columns.codes[k] = codes
            del columns.cells[k]
        columns.let_go()

    @contextmanager
    def _up_to_date(self, *fused: type[Instruction]) -> Iterator[Any]:
        """Let the scores follow all moves, the last one in the block if it is one of the `fused`.

        So that one pass over the rows follows it and sums what is asked. The block gets this last
        move, or None if it has nothing to follow.
        """
        columns = self._columns
        if 0 <= columns.followed <= len(self._moves):
            behind = self._moves[columns.followed :]
        else:  # `MOVING`
            columns.scores[:] = 0
            behind = self._moves
        if behind:
            columns.followed = MOVING
        last = behind[-1] if behind and isinstance(behind[-1], fused) else None
        for instruction in behind if last is None else behind[:-1]:
            self._move(instruction)
        yield last
        columns.followed = len(self._moves)
        columns.let_go()


def sort_columns(
    frame: pd.DataFrame,
    features: Sequence[Feature],
    sort: Callable[[pd.Series, Any], tuple[np.ndarray, np.ndarray]],
    threads: Threads = ALONE,
) -> tuple[dict[int, np.ndarray], list[np.ndarray]]:
    """Return the cell of every row, and the rows in each cell, for each feature.

    Parameters
    ----------
    frame : (n, K)
        The rows, with a column for each feature.
    features
        In the order of the columns.
    sort
        Returns both for one column and its feature; see `SortedRows`.
    threads
        They share the features.
    """
    columns = [frame[name] for name in frame.columns]
    found = threads.map(lambda given: sort(*given), zip(columns, features, strict=True))
    return {k: cells for k, (cells, _) in enumerate(found)}, [counts for _, counts in found]


class MemoryColumns:
    """See `dprepro.rows.partition.Columns`."""

    def __init__(self, rows: SortedRows) -> None:
        self.targets, self.weights = rows.targets, rows.weights
        self.scores = np.zeros(rows.targets.size, score_type(rows.n_scores))
        self.cells: MutableMapping[int, np.ndarray] = dict(rows.cells)
        self.codes: MutableMapping[int, np.ndarray] = {}
        self.followed = 0

    def let_go(self) -> None:
        """Nothing was read."""
