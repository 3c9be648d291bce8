"""Functions of two features: which cells a pair of features has, and a value for each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.additive.units import Powers, on_grid

MOST_GROUPS = 16
"""Groups of bins along each side of a pair: 16 times 16 cells have a number each in uint8."""

BETWEEN = " & "
"""What stands between the names of two features, or of two bins."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two features whose bins are joined into groups: a pair of groups is a cell.

    Cells are numbered row by row: that of the groups g and h has the number g H + h.

    Attributes
    ----------
    first, second
        Positions of the features, the first one lower.
    first_groups, second_groups : uint8 (B,)
        The group of each bin, from 0 to G - 1 and to H - 1; see `MOST_GROUPS`.
    """

    first: int
    second: int
    first_groups: np.ndarray
    second_groups: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """How many groups G and H there are on each side."""
        return int(self.first_groups.max()) + 1, int(self.second_groups.max()) + 1

    @property
    def n_cells(self) -> int:
        """G times H."""
        rows, columns = self.shape
        return rows * columns

    def cells_of(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the cell, uint8 (n,), of rows whose bins in both features, (n,), are known."""
        steps = self.first_groups * np.uint8(self.shape[1])
        return np.asarray(steps[first] + self.second_groups[second])


@dataclass(frozen=True, eq=False)
class PairTerm:
    """A function of two features. It adds up to zero along both sides, up to rounding.

    Attributes
    ----------
    pair
        Its features and cells.
    values : float64 (G, H)
        Log odds for classification, the target's unit for regression.
    counts : float64 (G, H)
        About how many training rows lie in each cell: made of released numbers.
    noise : float64 (G, H), or None
        Standard deviation a posteriori of each value as it was released, where it is known.
    """

    pair: Pair
    values: np.ndarray
    counts: np.ndarray
    noise: np.ndarray | None = None

    def on_grids(self, powers: Powers) -> PairTerm:
        """Return the same function, rounded to the grids of a model's numbers."""
        return PairTerm(
            self.pair,
            on_grid(self.values, powers.functions),
            on_grid(self.counts, powers.counts),
            None if self.noise is None else on_grid(self.noise, powers.functions),
        )

    def at(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the values, float64 (n,), of rows with these bins; 0 where a bin is -1."""
        cells = self.pair.cells_of(np.maximum(first, 0), np.maximum(second, 0))
        return np.where((first < 0) | (second < 0), 0.0, self.values.ravel()[cells])


def pair_name(first: object, second: object) -> str:
    """Return what a function of two features is called.

    Examples
    --------
    >>> pair_name("age", "hours")
    'age & hours'
    """
    return f"{first}{BETWEEN}{second}"


def even_groups(counts: np.ndarray, order: np.ndarray, most: int = MOST_GROUPS) -> np.ndarray:
    """Join bins that are next to each other in `order` into groups of about as many rows.

    Parameters
    ----------
    counts : float64 (B,)
        Rows in each bin, positive.
    order : int (B,)
        The bins in the order in which they may be joined.
    most
        So many groups at most.

    Returns
    -------
    uint8 (B,)
        The group of each bin; every group has at least one.

    Examples
    --------
    >>> even_groups(np.array([1.0, 1.0, 2.0, 4.0]), np.arange(4), 2)
    array([0, 0, 0, 1], dtype=uint8)
    """
    if counts.size <= most:
        groups = np.arange(counts.size)
    else:
        # The middle of a bin decides in which of the equal parts of all rows it lies.
        sizes = counts[order]
        middles = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
        parts = np.minimum((middles * most).astype(int), most - 1)
        groups = np.cumsum(np.diff(parts, prepend=parts[:1]) > 0)
    found = np.empty(counts.size, np.uint8)
    found[order] = groups
    return found


def without_sides(
    values: np.ndarray, first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray
) -> np.ndarray:
    """Take from values, (G, H), what depends on one side alone: the weighted means along both.

    `first`, (G,), and `second`, (H,), are the weights of the groups on each side. Every row then
    has the mean 0 under `second`, and every column under `first`.
    """
    of_rows = np.average(values, axis=1, weights=second)[:, None]
    of_columns = np.average(values, axis=0, weights=first)[None, :]
    level = np.average(of_rows.ravel(), weights=first)
    return np.asarray(values - of_rows - of_columns + level)
