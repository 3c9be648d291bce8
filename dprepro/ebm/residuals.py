"""What a row adds to the sums of a step: a whole number, of its own state and of what is public.

A row's state is one int32 in units of 2^-g, g = `SCORE_BITS` for labels:

* labels: the margin m, which is the score F of a row of label 1 and -F of one of label 0. The
  residual y - sigmoid(F) is 1 / (1 + exp(m)), with the sign of the label;
* targets: the residual y - F itself.

A step adds whole numbers to the state. So it is exact, whatever the order of steps and rows. What
the row adds to sums is a function of the state alone, in units of 2^-(g - `COARSER`), with no more
than float32 operations that IEEE 754 defines.

So sums are exact: a row more or less moves them by its own part, to the last bit. Two rules keep
it so:

* What is computed for a row must not depend on where the row stands. Under "fastmath" LLVM divides
  by reciprocal estimates in the vectorised body of a loop, but not in what is left over at its end.
  Loops that compute a row's part are compiled without; they vectorise as they are, and give the
  same bits with SSE2, AVX2 and AVX-512.
* int32 sums are emptied before they can overflow: `BLOCK_ROWS` parts of at most `LARGEST`. The
  int64 sums over blocks are exact up to 8 * 10^12 rows.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.compiled import kernel

LARGEST = 2**20
"""1 in units of sums: the parts of rows are whole numbers from -LARGEST to LARGEST."""

BLOCK_ROWS = 1984
"""Rows a block. As many parts of size `LARGEST` stay below 2^31; a multiple of 64, which is what
loops are unrolled to."""

SCORE_BITS = 24
"""Scores, and the functions in a model, are multiples of 2^-24: as fine as float32 is near 1, so
that steps of a learning rate of 10^-4 are not rounded away."""

COARSER = 4
"""By how many bits the unit of sums is coarser than that of scores: 1 is `LARGEST` then."""

LIMIT = 2**30 - 1
"""Scores stay within +-LIMIT, +-64 for labels. Targets do, too, so that int32 holds residuals."""

_PER_UNIT = np.float32(math.log2(math.e) * 2.0**-SCORE_BITS)
_NEAREST = np.float32(1.5 * 2**23)
"""Added to a float32 below 2^22 in size it rounds to whole numbers, which the last bits hold."""

_EXPONENT = np.int32(23)
_SCALE = np.float32(LARGEST)

# 2^r on [-1/2, 1/2] is (r^2 + c + d r) / (r^2 + c - d r): the form of Pade's approximant, with our
# own minimax fit of c and d. The relative error is 4.4e-7: half a unit of a residual, or less.
_CENTRE = np.float32(25.03910667973302)
_SLOPE = np.float32(8.677838838052995)

_HALF = np.int32(1 << (COARSER - 1))
_SHIFT = np.int32(COARSER)


@kernel("(int32, int32)", inline="always", error_model="numpy")
def label_part(margin, bound):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(margin)) in units of 1 / `LARGEST`, at least 0 and at most `bound`.

    The margin is within +-`LIMIT`, where no exponent of float32 overflows. It is off by less than 2
    units, and never above `LARGEST`: a divisor is at least as large as the dividend without its
    factor `LARGEST`.
    """
    t = np.float32(margin) * _PER_UNIT
    shifted = t + _NEAREST
    r = t - (shifted - _NEAREST)  # t is a whole number plus r
    even, odd = r * r + _CENTRE, _SLOPE * r
    above, below = even + odd, even - odd  # 2^r is above / below
    exponent = np.int32(np.float32(shifted).view(np.int32) << _EXPONENT)
    raised = np.int32(np.float32(above).view(np.int32) + exponent).view(np.float32)
    return min(np.int32(_SCALE * below / (below + raised)), bound)


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
    return min(np.int64(label_part(np.int32(-reach), np.int32(LARGEST))) + 1, LARGEST)
