"""One pass over the rows: apply a function's change, sum residuals and curvatures per bin."""

from __future__ import annotations

import numpy as np

from dprepro.additive.exact_sums import FINE_BITS, or_zero
from dprepro.additive.sigmoid import sigmoid
from dprepro.compiled import kernel

_BLOCK = 2048
_LANES = 4
"""Partial histograms: rows next to each other often share a bin, and would wait for each other."""

_UNIT = 2**FINE_BITS
_SCALE = np.float32(_UNIT)


@kernel(error_model="numpy")
def _clipped_residuals(scores, targets, logistic, bound, out):  # type: ignore[no-untyped-def]
    """Write residuals in units of 1 / `_UNIT`, truncated towards zero."""
    if logistic:
        for i in range(scores.size):
            residual = or_zero(targets[i] - sigmoid(scores[i]))
            out[i] = np.int32(min(max(residual, -bound), bound) * _SCALE)
    else:
        for i in range(scores.size):
            residual = or_zero(targets[i] - scores[i])
            out[i] = np.int32(min(max(residual, -bound), bound) * _SCALE)


@kernel(error_model="numpy")
def _curvatures(residuals, out):  # type: ignore[no-untyped-def]
    """Write |r| (1 - |r|) in units of 1 / `_UNIT`, truncated: float64 holds the product exactly."""
    for i in range(residuals.size):
        size = np.float64(abs(residuals[i]))
        out[i] = np.int32(size * (_UNIT - size) * (1.0 / _UNIT))


@kernel(
    "(float32[::1], float32[::1], uint8[::1], float32[::1], uint8[::1], int64, float32, boolean)",
)
def residual_sums(scores, targets, last, change, codes, n_bins, bound, logistic):  # type: ignore[no-untyped-def]
    """Add ``change[last]`` to the scores in place; sum residuals and curvatures per bin of `codes`.

    A row adds its residual r, clipped to |r| <= c = `bound`, and for log loss |r| (1 - |r|), or
    p (1 - p) where r is not clipped, to one bin; both truncated towards zero to multiples of 2^-24,
    the second after it was formed of the first. So r is such a multiple itself, the second is at
    most |r| (1 - |r|), and the part has at most the norm |r| sqrt(1 + (1 - |r|)^2), which rises
    with |r|: the sums have L2 sensitivity c for squared error and c sqrt(1 + (1 - c)^2) for log
    loss, whatever the scores are. They are exact up to 5 * 10^8 rows: see `exact_sums`.

    Parameters
    ----------
    scores, targets : float32 (n,)
    last, codes : uint8 (n,)
        Bins in the function that has changed, and in the one whose sums are wanted.
    change : float32 (B',)
    bound : float32
        From 0 to 1.
    logistic : bool
        Residual y - sigmoid(score), else y - score.

    Returns
    -------
    float64 (2, n_bins)
        Sums of residuals, sums of curvatures; zeros instead of the latter for squared error.
    """
    sums = np.zeros((2, _LANES, n_bins), np.int64)
    residuals, curvatures = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.int32)
    for start in range(0, scores.size, _BLOCK):
        stop = min(start + _BLOCK, scores.size)
        block = scores[start:stop]
        for i in range(block.size):
            block[i] += change[last[start + i]]
        _clipped_residuals(block, targets[start:stop], logistic, bound, residuals)
        for i in range(block.size):
            sums[0, i % _LANES, codes[start + i]] += residuals[i]
        if logistic:
            _curvatures(residuals[: block.size], curvatures)
            for i in range(block.size):
                sums[1, i % _LANES, codes[start + i]] += curvatures[i]
    return sums.sum(axis=1) / _UNIT


@kernel("(float32[::1], float32[::1], uint8[::1], float32[::1], int64)")
def magnitude_counts(scores, targets, last, change, n_cells):  # type: ignore[no-untyped-def]
    """Add ``change[last]`` to the scores in place and count |target - score| by half octaves.

    Cell j of the `n_cells` holds 2^(-(j+1)/2) < |r| <= 2^(-j/2); the first also what is larger,
    the last what is smaller. A row adds 1 to exactly one count. int64 (n_cells,).
    """
    counts = np.zeros(n_cells, np.int64)
    for i in range(scores.size):
        scores[i] += change[last[i]]
        size = max(abs(targets[i] - scores[i]), np.float32(1e-30))
        cell = int(np.floor(-2.0 * np.log2(size)))
        counts[min(max(cell, 0), n_cells - 1)] += 1
    return counts
