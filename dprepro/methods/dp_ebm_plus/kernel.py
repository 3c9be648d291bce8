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
"""What targets are: how a score becomes a prediction. See `limited_residuals`."""

TO_OCTAVES = 1 / math.log(2.0)
"""A logarithm, times this, is an exponent of 2."""

HALVES = np.ldexp(1.0, -np.arange(64))
"""Powers of 1/2. What is smaller than 2^-63 is 0."""

_TAYLOR = np.array([math.log(2.0) ** k / math.factorial(k) for k in range(9)])
"""Of 2^x; between -1/2 and 1/2 the error is below 3e-10."""

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
