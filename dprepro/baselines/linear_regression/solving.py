"""Coefficients from noisy products, with the same bits on every machine.

Only elementwise operations and exactly rounded sums are used. What LAPACK and BLAS return differs
between processors in the last bits.
"""

from __future__ import annotations

import math

import numpy as np

_SMALL = 2.0**-53
"""Entries beside the diagonal that are smaller than this, relative to the largest, count as 0."""

_SWEEPS = 60
"""More than Jacobi's method needs: it takes about ten for a hundred columns."""


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
