"""Weighted rows: each counts for a part of a row in every answer, which no sensitivity notices.

A row of weight w, 0 < w <= W, W public, has q = floor(256 w / W) (`read_weights`), a whole number
from 0 to 256, and counts for q / 256 of a row:

- where a row adds a vector of counts, or of its target and its square, it adds q times that vector,
  in whole numbers of 1 / 256 of the unit: exact;
- where it adds its residual times a code, the residual is limited first, as without weights, and
  then multiplied by q / 256 and truncated, towards zero, to a whole number of `kernel.UNIT`. The
  code, and so what limits the residual, does not depend on the weight.

Sensitivity: let p be the vector that the row would add without weights, and s the sensitivity of
the query, so |p| <= s. With weights it adds a vector p' with |p'_c| <= q / 256 |p_c| <= |p_c| in
every place c: either q / 256 p, or r' u where r' is the truncated q / 256 r. So |p'| <= |p| <= s. A
row more or less moves an answer by p', whatever the weights of other rows are. An exchange
(replace-one) moves it by the difference of two such vectors. Each lies between 0 and what a row can
add without weights. Distance is convex, so it is largest at these ends: it is what an exchange can
do without weights, or s. Only for totals is s the larger one (`queries.totals_sensitivity`).
"""

from __future__ import annotations

import numpy as np

from dprepro.rows.partition import WEIGHT_UNIT
from dprepro.runtime.kernels import kernel

WHOLE = round(1 / WEIGHT_UNIT)
"""The weight of a row that counts once."""


@kernel("(int32[::1], int32[::1])")
def weigh(numbers, weights):  # type: ignore[no-untyped-def]
    """Multiply numbers, int32 (n,), by weights over `WHOLE`, in place: truncated towards zero."""
    for i in range(numbers.size):
        numbers[i] = _part(numbers[i], weights[i])


@kernel("(int32[:, ::1], int32[::1])")
def weigh_vectors(numbers, weights):  # type: ignore[no-untyped-def]
    """Do what `weigh` does with all numbers of a row, int32 (n, S)."""
    for i in range(numbers.shape[0]):
        for s in range(numbers.shape[1]):
            numbers[i, s] = _part(numbers[i, s], weights[i])


@kernel(inline="always")
def _part(number, weight):  # type: ignore[no-untyped-def]
    # Limited here, too, whatever read the weights.
    size = np.int64(abs(number)) * np.int64(min(max(weight, 0), WHOLE)) // WHOLE
    return np.int32(size if number > 0 else -size)


def weighted_counts(places: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Return the sum of the weights in each of `size` places, int64: exact up to 2^45 rows."""
    whole = np.clip(weights, 0, WHOLE).astype(np.float64)
    return np.bincount(places, whole, size).astype(np.int64)
