"""What a row adds to the sums of a step: a whole number, of its own state and of what is public.

A row's state is one int32 in units of 2^-g, g = `SCORE_BITS` for labels:

* labels: the margin m, which is the score F of a row of label 1 and -F of one of label 0. The
  residual y - sigmoid(F) is 1 / (1 + exp(m)), with the sign of the label;
* targets: the residual y - F itself.

A step adds whole numbers to the state. So it is exact, whatever the order of steps and rows. What
the row adds to sums is a function of the state alone, in units of 2^-(g - `COARSER`), with no more
than float32 operations that IEEE 754 defines: without "fastmath" every machine has the same bits,
in the body of a vectorised loop and in what is left over at its end.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.additive.exact_sums import LARGEST
from dprepro.compiled import kernel

SCORE_BITS = 24
"""Scores, and the functions in a model, are multiples of 2^-24: as fine as float32 is near 1, so
that steps of a learning rate of 10^-4 are not rounded away."""

COARSER = 4
"""By how many bits the unit of sums is coarser than that of scores: 1 is `LARGEST` then."""

LIMIT = 2**30 - 1
"""Scores stay within +-LIMIT, +-64 for labels. Targets do, too, so that int32 holds residuals."""

_MARGIN_LIMIT = np.int32(16 << SCORE_BITS)
"""1 / (1 + exp(16)) is less than half a unit."""

_PER_UNIT = np.float32(math.log2(math.e) * 2.0**-SCORE_BITS)
_NEAREST = np.float32(1.5 * 2**23)
"""Added to a float32 below 2^22 in size it rounds to whole numbers, which the last bits hold."""

_EXPONENT = np.int32(23)
_ONE = np.float32(1.0)
_SCALE = np.float32(LARGEST)

# 2^r on [-1/2, 1/2]: our own minimax fit, relative error 2.6e-6, which moves a residual by less
# than one unit.
_P0 = np.float32(0.9999992614413392)
_P1 = np.float32(0.6931218147452939)
_P2 = np.float32(0.24024744842392007)
_P3 = np.float32(0.05591786027324475)
_P4 = np.float32(0.009570101322853608)

_HALF = np.int32(1 << (COARSER - 1))
_SHIFT = np.int32(COARSER)


@kernel("(int32, int32)", inline="always", error_model="numpy")
def label_part(margin, bound):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(margin)) in units of 1 / `LARGEST`, at least 0 and at most `bound`.

    It is off by less than 3 units.
    """
    t = np.float32(min(max(margin, -_MARGIN_LIMIT), _MARGIN_LIMIT)) * _PER_UNIT
    shifted = t + _NEAREST
    r = t - (shifted - _NEAREST)  # t is a whole number plus r
    power = (((_P4 * r + _P3) * r + _P2) * r + _P1) * r + _P0
    exponent = np.int32(np.float32(shifted).view(np.int32) << _EXPONENT)
    odds = np.int32(np.float32(power).view(np.int32) + exponent).view(np.float32)
    return min(np.int32(_SCALE / (_ONE + odds)), bound)


@kernel("(int32, int32)", inline="always")
def target_part(residual, bound):  # type: ignore[no-untyped-def]
    """Return the residual, rounded to units of sums, within +-`bound` of these units.

    It is clipped before it is rounded: `bound` << `COARSER` rounds to `bound`.
    """
    most = np.int32(bound << _SHIFT)
    return np.int32(np.int32(min(max(residual, -most), most) + _HALF) >> _SHIFT)


@kernel("(int64,)")
def largest_label_part(reach):  # type: ignore[no-untyped-def]
    """Return a bound of the parts of all rows whose scores are at most `reach` in size.

    The part of margin -`reach`, and one more: float32 does not fall where exp rises, to the last
    bit. Parts are clipped to it, so that it holds whatever they are.
    """
    margin = np.int32(-min(reach, np.int64(_MARGIN_LIMIT)))
    return min(np.int64(label_part(margin, np.int32(LARGEST))) + 1, LARGEST)
