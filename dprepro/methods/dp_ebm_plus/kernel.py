"""One pass over the rows: apply a function's change, limit residuals, and sum them per bin.

Scores, targets and residuals are whole numbers of `UNIT`. What a row adds to a sum is a
function of its own whole numbers and of what is released, and sums of whole numbers are exact: they
are the same in any order of the rows, and on any machine.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.additive.sigmoid import sigmoid
from dprepro.methods.dp_ebm_plus.exponential import TO_OCTAVES, power_of_two
from dprepro.runtime.atomics import add_pair
from dprepro.runtime.kernels import kernel

BITS = 24
UNIT = 2.0**-BITS
"""What scores, targets and sums count in: log odds, or the width of the targets' range."""

_ONE = np.int32(2**BITS)
_LIMIT = 64.0
LARGEST = np.int32(_LIMIT * 2**BITS - 1)
"""Largest score and change of a score, just below `_LIMIT`: their sum fits into int32."""

_MOST = float(LARGEST)

_HALF = np.int32(2 ** (BITS - 1))
"""The range of regression's targets ends here, on either side of 0."""

_LANES = 4
"""Tables of sums: rows next to each other often share a bin, and would wait for each other."""

_ROOT_HALF = math.sqrt(0.5)

NUMBERS, LABELS, COUNTS = 0, 1, 2
"""What targets are: how a score becomes a prediction. See `residual_sums`."""

_EXPONENT = TO_OCTAVES * UNIT

# error_model="numpy": the default checks each division for zero, which stops vectorisation. No
# "fastmath": a row's part must not depend on where the row stands in a loop.
_exact: Any = {"error_model": "numpy"}


def to_units(values: Any) -> np.ndarray:
    """Return the nearest whole numbers of `UNIT`, int32, of released values; below +-64."""
    # On some dozens of values np.clip takes three times as long.
    whole = np.rint(np.minimum(np.maximum(values, -_LIMIT), _LIMIT) * float(_ONE))
    return np.minimum(np.maximum(whole, -_MOST), _MOST).astype(np.int32)


def from_units(whole: Any) -> np.ndarray:
    """Return the values, float64, of whole numbers of `UNIT`: exact."""
    return np.asarray(np.ldexp(np.asarray(whole, float), -BITS))


def rounded(values: Any) -> np.ndarray:
    """Return values, float64, rounded to whole numbers of `UNIT`.

    Queries may follow from them then: an exponential's last digit depends on the machine.
    """
    return from_units(to_units(values))


@kernel(inline="always")
def power_of_two(exponent):  # type: ignore[no-untyped-def]
    """Return 2^exponent, exponent <= 0, float64: of additions and products alone.

    The exponential of a library differs by machine in the last digit, and a row's part would too.
    """
    whole = math.floor(exponent + 0.5)
    if whole <= -HALVES.size:
        return 0.0
    rest, value = exponent - whole, _TAYLOR[_TAYLOR.size - 1]
    for k in range(_TAYLOR.size - 2, -1, -1):
        value = value * rest + _TAYLOR[k]
    return value * HALVES[-np.int64(whole)]


@kernel(inline="always")
def moved(score, change):  # type: ignore[no-untyped-def]
    """Return a score that has moved, int32, no further than the largest."""
    # numba adds int32 as int64: without the casts half as many fit into a register.
    return np.int32(min(max(np.int32(score + change), -LARGEST), LARGEST))


@kernel(inline="always")
def _within(score):  # type: ignore[no-untyped-def]
    """Return the prediction of a regression: the score, clipped to the targets' range."""
    return np.int32(min(max(score, -_HALF), _HALF))


@kernel("(int32[::1], uint8[::1], int32[::1])")
def move_scores(scores, last, change):  # type: ignore[no-untyped-def]
    """Add ``change[last]``, int32 (B,), to the scores in place."""
    for i in range(scores.size):
        scores[i] = moved(scores[i], change[last[i]])


@kernel(**_exact)
def _move_block(scores, last, change, found):  # type: ignore[no-untyped-def]
    """Do what `move_scores` does. `found` takes the changes: the second loop is vectorised then."""
    for i in range(scores.size):
        found[i] = change[last[i]]
    for i in range(scores.size):
        scores[i] = moved(scores[i], found[i])


@kernel(**_exact)
def _clipped_residuals(scores, targets, kind, bound, out):  # type: ignore[no-untyped-def]
    """Write target minus prediction, at most `bound`; a probability or a rate is truncated."""
    if kind == LABELS:
        for i in range(scores.size):
            probability = sigmoid(np.float32(scores[i]) * np.float32(UNIT))
            residual = np.int32(targets[i] - np.int32(probability * np.float32(_ONE)))
            out[i] = np.int32(min(max(residual, -bound), bound))
    elif kind == COUNTS:
        for i in range(scores.size):
            rate = power_of_two(np.float64(min(scores[i], np.int32(0))) * _EXPONENT)
            residual = np.int32(targets[i] - np.int32(rate * np.float64(_ONE)))
            out[i] = np.int32(min(max(residual, -bound), bound))
    else:
        for i in range(scores.size):
            residual = np.int32(targets[i] - _within(scores[i]))
            out[i] = np.int32(min(max(residual, -bound), bound))


@kernel(**_exact)
def _curvatures(residuals, out):  # type: ignore[no-untyped-def]
    """Write |r| (1 - |r|), truncated: float64 holds the product exactly."""
    for i in range(residuals.size):
        size = np.float64(abs(residuals[i]))
        out[i] = np.int32(size * (_ONE - size) * UNIT)


@kernel(**_exact)
def _add_to_bins(residuals, curvatures, codes, sums):  # type: ignore[no-untyped-def]
    """Add (residual, curvature) of every row to its bin; `sums` is int64 (`_LANES`, bins, 2)."""
    first, second, third, fourth = sums[0], sums[1], sums[2], sums[3]
    in_fours = codes.size - codes.size % _LANES
    for i in range(0, in_fours, _LANES):
        add_pair(first, codes[i], residuals[i], curvatures[i])
        add_pair(second, codes[i + 1], residuals[i + 1], curvatures[i + 1])
        add_pair(third, codes[i + 2], residuals[i + 2], curvatures[i + 2])
        add_pair(fourth, codes[i + 3], residuals[i + 3], curvatures[i + 3])
    for i in range(in_fours, codes.size):
        add_pair(first, codes[i], residuals[i], curvatures[i])


@kernel("(int32[::1], int32[::1], uint8[::1], int32[::1], uint8[::1], int64, int32, int64)")
def residual_sums(scores, targets, last, change, codes, n_bins, bound, kind):  # type: ignore[no-untyped-def]
    """Add ``change[last]`` to the scores in place; sum residuals and curvatures per bin of `codes`.

    A row adds its residual r, clipped to |r| <= c = `bound`, and for log loss |r| (1 - |r|), or
    p (1 - p) where r is not clipped, to one bin. The second is formed of the first and truncated,
    so the part has at most the norm |r| sqrt(1 + (1 - |r|)^2), which rises with |r|: the sums have
    L2 sensitivity c for squared error and c sqrt(1 + (1 - c)^2) for log loss, whatever the scores
    are. They are exact up to 2^39 rows.

    Parameters
    ----------
    scores, targets : int32 (n,)
        In units, as all that follows; targets from -1/2 to 1.
    last, codes : uint8 (n,)
        Bins in the function that has changed, and in the one whose sums are wanted.
    change : int32 (B',)
        At most +-`LARGEST`. Scores stay at the largest where they would exceed it.
    bound : int32
        From 0 to 1.
    kind
        `LABELS`: residual y - sigmoid(score). `NUMBERS`: y - score, the score clipped to the
        targets' range. `COUNTS`: y - exp(score), score at most 0, where the largest count is 1.

    Returns
    -------
    int64 (2, n_bins)
        Sums of residuals, sums of curvatures; zeros instead of the latter for squared error.
    """
    sums = np.zeros((_LANES, n_bins, 2), np.int64)
    residuals, curvatures = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.int32)
    for start in range(0, scores.size, _BLOCK):
        stop = min(start + _BLOCK, scores.size)
        block, now = scores[start:stop], codes[start:stop]
        _move_block(block, last[start:stop], change, residuals)
        _clipped_residuals(block, targets[start:stop], kind, bound, residuals)
        if kind == LABELS:
            _curvatures(residuals[: block.size], curvatures)
            _add_to_bins(residuals, curvatures, now, sums)
        else:
            for i in range(block.size):
                sums[i % _LANES, now[i], 0] += residuals[i]
    # Loops: `sums.sum(axis=0)` takes as long to compile as all the rest.
    total = np.zeros((2, n_bins), np.int64)
    for lane in range(_LANES):
        for b in range(n_bins):
            total[0, b] += sums[lane, b, 0]
            total[1, b] += sums[lane, b, 1]
    return total


@kernel("(int32[::1], int32[::1], uint8[::1], int32[::1], int32[::1])")
def move_and_weigh(scores, norms, codes, change, squares):  # type: ignore[no-untyped-def]
    """Add ``change[codes]`` to the scores, and ``squares[codes]`` to `norms`, int32 (n,)."""
    for i in range(scores.size):
        code = codes[i]
        scores[i] = moved(scores[i], change[code])
        norms[i] += squares[code]


@kernel("(int32[::1], int32[::1], int32[::1], float64, int64, int32[::1])", **_exact)
def limited_residuals(scores, targets, norms, bound, kind, out):  # type: ignore[no-untyped-def]
    """Write a residual, clipped to +-`bound` / sqrt(norm), into `out`, int32 (n,).

    Norms are positive. The quotient is rounded down to a whole number of `UNIT`.

    Parameters
    ----------
    scores, targets : int32 (n,)
        In units; targets from -1/2 to 1.
    kind
        `LABELS`: residual y - sigmoid(score). `NUMBERS`: y - score, the score clipped to the
        targets' range. `COUNTS`: y - exp(score), score at most 0, where the largest count is 1.
    """
    _clipped_residuals(scores, targets, kind, _ONE, out)
    for i in range(scores.size):
        limit = np.int32(min(bound / math.sqrt(np.float64(norms[i])), np.float64(_ONE)))
        out[i] = np.int32(min(max(out[i], -limit), limit))


@kernel("(int32[::1], uint8[::1], int64[::1])")
def add_by_code(numbers, codes, sums):  # type: ignore[no-untyped-def]
    """Add every number to the sum of its code; `sums` is int64 (B,)."""
    lanes = np.zeros((_LANES, sums.size), np.int64)
    for i in range(numbers.size):
        lanes[i % _LANES, codes[i]] += numbers[i]
    for lane in range(_LANES):
        for b in range(sums.size):
            sums[b] += lanes[lane, b]


@kernel("(int32[::1], int64)")
def magnitude_cells(residuals, n_cells):  # type: ignore[no-untyped-def]
    """Return the half octave of each |residual|, uint8 (n,).

    Cell j of the `n_cells` holds 2^(-(j+1)/2) < |r| <= 2^(-j/2); the first also what is larger,
    the last what is smaller.
    """
    cells = np.empty(residuals.size, np.uint8)
    for i in range(residuals.size):
        mantissa, exponent = math.frexp(float(abs(residuals[i])))
        cell = 2 * (BITS - exponent) + (mantissa <= _ROOT_HALF) + (mantissa == 0.5)
        # 0 is 0 2^0.
        cell = n_cells - 1 if mantissa == 0.0 else cell
        cells[i] = min(max(cell, 0), n_cells - 1)
    return cells
