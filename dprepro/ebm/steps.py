"""What follows from the sums of a step: noise, and the function that is released. No rows here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.compiled import kernel
from dprepro.exact.kernels import MANTISSA_BITS, SMALLEST_SCALE, rounded_normal


@kernel("(int64[::1], uint64[:, ::1], float64, int64, int64[::1])")
def release_sums(sums, normals, scale, n_leaves, released):  # type: ignore[no-untyped-def]
    """Write noisy leaf sums to `released`: Algorithm 2, lines 16 and 17.

    Row leaf of `normals` times `scale`, rounded, is the noise; all in units of the sums.
    """
    mantissa, exponent = math.frexp(max(scale, SMALLEST_SCALE))
    whole = np.uint64(mantissa * 2.0**MANTISSA_BITS)
    for leaf in range(n_leaves):
        inner = sums[leaf + 1] if leaf + 1 < n_leaves else 0
        noise = rounded_normal(normals[leaf], whole, MANTISSA_BITS - exponent)
        released[leaf] = sums[leaf] - inner + noise


@kernel(
    "(int64[::1], uint8[::1], int64[::1], float64[::1], int64, float64, int64, int64, int32[::1])",
)
def add_to_shape(  # type: ignore[no-untyped-def]
    shape, cuts, released, counts, n_leaves, rate, lowest, highest, rises
):
    """Add leaf averages to the bins of a function (lines 18 to 22); write what scores rise by.

    Averages are rounded, and cut where a bin would leave [`lowest`, `highest`].
    """
    rises[:] = 0
    last: Any = 0
    for leaf in range(n_leaves):
        start = cuts[leaf - 1] if leaf > 0 else 0
        stop = cuts[leaf] if leaf + 1 < n_leaves else counts.size
        if start >= stop:
            continue
        bins, count = shape[start:stop], counts[start:stop].sum()
        value = rate * np.float64(released[leaf]) / count if count > 0 else 0.0
        least, most = np.float64(lowest - bins.min()), np.float64(highest - bins.max())
        whole = np.int64(np.rint(min(max(value, least), most)))
        bins += whole
        # Modulo 2^32: what they add up to for a row is within int32.
        rises[leaf] = np.int32(whole - last)
        last = whole
