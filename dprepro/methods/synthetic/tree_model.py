"""A distribution of rows whose columns depend on each other along a tree, from noisy counts.

All of it is post-processing. It uses sums, quotients and sorting alone, and rounds tables to a
grid, so that other processors find the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_ROWS, MOST_ROWS = 2, 2**20
"""Of synthetic rows, however many were estimated."""

_SUPPORT = 3.0
"""A cell keeps its place if its noisy count is at least so many standard deviations of the noise,
as in the paper."""

_SWEEPS = 50
"""How often a table is fitted to the counts of its rows, and of its columns."""

_GRID = 2.0**-16
"""What counts of tables are rounded to."""

Pair = tuple[int, int]
"""Two columns, by their numbers."""


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy counts of all cells of one column, or of one table of two.

    Attributes
    ----------
    counts : float64 (m,) or (m_a, m_b)
    variance : float64, broadcasts to the counts
        Of the noise.
    """

    counts: np.ndarray
    variance: np.ndarray

    @property
    def total(self) -> tuple[float, float]:
        """The sum of the counts, and the variance of its noise."""
        spread = np.broadcast_to(self.variance, self.counts.shape)
        return float(self.counts.sum()), float(spread.sum())

    def margin(self, axis: int) -> Noisy:
        """Return the counts of the column along an axis of a table."""
        other = 1 - axis
        spread = np.broadcast_to(self.variance, self.counts.shape)
        return Noisy(self.counts.sum(axis=other), spread.sum(axis=other))


def merged_places(counts: np.ndarray, deviation: float) -> np.ndarray:
    """Return the place of each cell, int64 (m,): cells with hardly any rows share the last place.

    Parameters
    ----------
    counts
        Noisy counts of the cells of a column, float64 (m,).
    deviation
        Of their noise.
    """
    keeps = counts >= _SUPPORT * deviation
    return np.where(keeps, np.cumsum(keeps) - 1, keeps.sum())


def merged(counts: np.ndarray, places: np.ndarray, variance: float) -> Noisy:
    """Return the noisy counts of places, and the variance of each: float64 (places,)."""
    return Noisy(np.bincount(places, counts), variance * np.bincount(places))


def estimated_rows(measured: Sequence[Noisy]) -> int:
    """Return the number of rows that noisy counts say, each of all rows, weighed by their noise."""
    totals, variances = np.array([each.total for each in measured]).T
    found = float((totals / variances).sum() / (1 / variances).sum())
    return round(min(max(found, LEAST_ROWS), MOST_ROWS))


def estimated_column(measured: Sequence[Noisy], rows: int) -> np.ndarray:
    """Return counts of the cells of a column, float64 (m,), none below 0, that add up to `rows`.

    They are the nearest such counts to the means of all noisy counts, weighed by their noise.
    """
    weights = sum(1 / each.variance for each in measured)
    means = sum(each.counts / each.variance for each in measured) / weights
    return np.maximum(means - _excess(means[None, :], np.array([float(rows)]))[0], 0.0)


def fitted_table(noisy: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return counts of a table, float64 (m_a, m_b), none below 0, near noisy ones.

    They are max(0, noisy - u_i - v_j): of all tables with the counts `first` of the cells along
    axis 0 and `second` along axis 1, the nearest one. u and v are found in turn, by `_SWEEPS`
    sweeps; what they leave is an error of the counts along axis 0.
    """
    along_second = np.zeros(len(second))
    for _ in range(_SWEEPS):
        along_first = _excess(noisy - along_second, first)
        along_second = _excess((noisy - along_first[:, None]).T, second)
    found = np.maximum(noisy - along_first[:, None] - along_second, 0.0)
    return np.rint(found / _GRID) * _GRID


def _excess(values: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the u of each line of values (k, m) for which max(0, values - u) adds up to a total.

    Parameters
    ----------
    totals
        Not below 0, float64 (k,).
    """
    falling = -np.sort(-values, axis=1)
    numbers = np.arange(1, values.shape[1] + 1)
    found = (falling.cumsum(axis=1) - totals[:, None]) / numbers
    last = np.maximum((falling > found).sum(axis=1), 1) - 1
    return np.take_along_axis(found, last[:, None], axis=1)[:, 0]


@dataclass(frozen=True, eq=False)
class TreeModel:
    """The distribution.

    Attributes
    ----------
    rows
        How many rows there are.
    columns : float64 (m,) each
        Counts of the cells of each column.
    tables : float64 (m_a, m_b), by pair (a, b)
        Counts of the pairs of the tree, which reaches all columns.
    """

    rows: int
    columns: tuple[np.ndarray, ...]
    tables: dict[Pair, np.ndarray]

    @classmethod
    def of(cls, columns: Sequence[Noisy], pairs: dict[Pair, Noisy]) -> TreeModel:
        """Return the model of noisy counts of all columns and of the pairs of a tree."""
        rows = estimated_rows([*columns, *pairs.values()])
        found = []
        for number, column in enumerate(columns):
            margins = [
                noisy.margin(pair.index(number)) for pair, noisy in pairs.items() if number in pair
            ]
            found.append(estimated_column([column, *margins], rows))
        tables = {
            (a, b): fitted_table(noisy.counts, found[a], found[b])
            for (a, b), noisy in pairs.items()
        }
        return cls(rows, tuple(found), tables)

    def draw(self, generator: np.random.Generator) -> np.ndarray:
        """Return rows, int64 (rows, columns): the cells of each.

        The last column is drawn first, and then each along the tree, given the one before it. Cells
        are as frequent as they should be to less than one row, whoever gets them by chance.
        """
        drawn = np.zeros((self.rows, len(self.columns)), np.int64)
        last = len(self.columns) - 1
        drawn[:, last] = _dealt(self.rows, self.columns[last], generator)
        for known, new, table in self._along_the_tree(last):
            for cell, counts in enumerate(table):
                own = np.flatnonzero(drawn[:, known] == cell)
                drawn[own, new] = _dealt(
                    own.size, counts if counts.any() else self.columns[new], generator
                )
        return drawn

    def _along_the_tree(self, root: int) -> list[tuple[int, int, np.ndarray]]:
        """Return, for each column but the root, the one before it, it, and their table."""
        reached, found, left = {root}, [], dict(self.tables)
        while left:
            a, b = next(pair for pair in left if reached & {*pair})
            table = left.pop((a, b))
            step = (a, b, table) if a in reached else (b, a, table.T)
            reached.add(step[1])
            found.append(step)
        return found


def _dealt(rows: int, weights: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return cells, int64 (rows,), in a random order, each about as often as its weight says.

    By systematic sampling: each cell is expected exactly as often, and is there that often rounded
    up or down.
    """
    sums = weights.cumsum()
    ends = np.floor(np.append(0.0, sums / sums[-1]) * rows + generator.random()).astype(np.int64)
    ends[-1] = rows
    cells = np.repeat(np.arange(len(weights)), np.diff(ends))
    return generator.permutation(cells)
