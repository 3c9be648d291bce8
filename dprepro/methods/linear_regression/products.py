"""Products of columns and target in [-1, 1], and the coefficients that follow from them.

Products are sums of whole numbers: exact, in whatever order rows are added. Coefficients have the
same bits on every machine, as only elementwise operations and exactly rounded sums are used: what
LAPACK and BLAS return differs between processors in the last bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

FINEST_BITS = 20
_SUM_BITS, _SCALE_BITS = 62, 52
"""Sums stay below 2^62, and noise scales below 2^52 of the unit."""

_SMALL = 2.0**-53
"""Entries beside the diagonal that are smaller than this, relative to the largest, count as 0."""

_SWEEPS = 60
"""More than Jacobi's method needs: it takes about ten for a hundred columns."""


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


def scaled(
    X: np.ndarray, y: np.ndarray, bounds: tuple[float, float], limit: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return X (n, columns) and y (n,), y in units of half its range from its middle, clipped.

    Parameters
    ----------
    bounds
        Of the target, which they take to -1 and 1.
    limit
        Both lie in [-limit, limit] afterwards.
    """
    lower, upper = bounds
    targets = (2 * y - lower - upper) / (upper - lower)
    return np.clip(X, -limit, limit), np.clip(targets, -limit, limit)


def trim_and_solve(gram: np.ndarray, products: np.ndarray, scale: float) -> np.ndarray:
    """Return w that minimises w'Gw - 2p'w over the directions in which that has a minimum.

    Parameters
    ----------
    gram, products
        Noisy X'X (k, k), symmetric, and X'y (k,).
    scale
        Of their Laplace noise. Four of its standard deviations, 4 sqrt(2) scale, are added to the
        diagonal of G first (Zhang et al. 2012, section 6.1); directions that are still not positive
        are dropped (section 6.2).
    """
    eigenvalues, vectors = eigen(gram)
    eigenvalues = eigenvalues + 4 * math.sqrt(2) * scale
    kept = eigenvalues > 0
    along = _times(vectors[:, kept].T, products) / eigenvalues[kept]
    return _times(vectors[:, kept], along)


def eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues (k,), in no order, and vectors (k, k) in columns, of a symmetric matrix.

    Jacobi's method: rotate two coordinates so that the entry that couples them becomes 0, for all
    pairs in turn, until none is left (Golub, Van Loan 2013, section 8.5).
    """
    work, vectors = np.array(matrix, dtype=np.float64), np.eye(len(matrix))
    least = _SMALL * float(np.abs(work).max(initial=0.0))
    for _ in range(_SWEEPS):
        pairs = np.argwhere(np.triu(np.abs(work), 1) > least)
        if not len(pairs):
            break
        for p, q in pairs:
            _rotate(work, vectors, p, q)
    return np.diag(work).copy(), vectors


def _rotate(work: np.ndarray, vectors: np.ndarray, p: int, q: int) -> None:
    coupling = float(work[p, q])
    if coupling == 0:
        return
    ratio = (float(work[q, q]) - float(work[p, p])) / (2 * coupling)
    tangent = math.copysign(1 / (abs(ratio) + math.sqrt(1 + ratio * ratio)), ratio)
    cosine = 1 / math.sqrt(1 + tangent * tangent)
    for rows in (work, work.T, vectors.T):
        first, second = rows[p].copy(), rows[q].copy()
        rows[p] = cosine * first - tangent * cosine * second
        rows[q] = tangent * cosine * first + cosine * second
    work[p, q] = work[q, p] = 0.0


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the matrix times a vector: each sum of products is rounded once."""
    return np.array([math.fsum(row) for row in matrix * vector])
