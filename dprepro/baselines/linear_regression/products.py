"""Products of columns and target, in whole numbers: exact, in whatever order rows are added."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

FINEST_BITS = 20
_SUM_BITS, _SCALE_BITS = 62, 52
"""Sums stay below 2^62, and noise scales below 2^52 of the unit."""


@dataclass(frozen=True)
class Grid:
    """The public grid of values: whole numbers of 2^-`bits`.

    Attributes
    ----------
    bits
        At least 0.
    """

    bits: int

    @classmethod
    def of(cls, rows: int, scale: float) -> Grid:
        """Return a grid on which products of so many rows, and noise of that scale, have room.

        Noise of a large scale needs a coarse unit; it is then far larger than what rounding moves.
        """
        for_sums = (_SUM_BITS - rows.bit_length()) // 2
        for_noise = (_SCALE_BITS - math.frexp(scale)[1]) // 2
        return cls(max(min(FINEST_BITS, for_sums, for_noise), 0))

    @property
    def unit(self) -> float:
        """That of a product of two values: 2^(-2 bits)."""
        return 2.0 ** (-2 * self.bits)

    def whole(self, values: np.ndarray) -> np.ndarray:
        """Return values as whole numbers, int64, rounded towards zero: none becomes longer."""
        whole: np.ndarray = np.trunc(values * 2.0**self.bits).astype(np.int64)
        return whole


class Moments(NamedTuple):
    """Sums of products over all rows, int64, in units of `Grid.unit`.

    Attributes
    ----------
    target_square : int64 (1,)
    target_products : int64 (columns,)
    squares : int64 (columns,)
    pairs : int64 (columns (columns - 1) / 2,)
        Those above the diagonal of X'X, row by row.
    """

    target_square: np.ndarray
    target_products: np.ndarray
    squares: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray) -> Moments:
        """Return those of whole numbers X, int64 (n, columns), and y, int64 (n,)."""
        gram = X.T @ X  # of int64: no BLAS, no rounding
        return cls(
            target_square=np.array([y @ y]),
            target_products=X.T @ y,
            squares=np.diag(gram).copy(),
            pairs=gram[np.triu_indices(len(gram), 1)],
        )


def symmetric(squares: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the matrix, float64 (k, k), with this diagonal and these entries above and below."""
    matrix = np.diag(squares)
    above = np.triu_indices(len(matrix), 1)
    matrix[above] = pairs
    return matrix + np.triu(matrix, 1).T
