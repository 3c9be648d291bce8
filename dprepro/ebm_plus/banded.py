"""Positive definite matrices with some bands on either side of the diagonal.

A matrix A of n rows is float64 (n, w + 1), for w bands on either side: row i holds the entries
(i, i - w) to (i, i). Those left of the first column are not read. A matrix that is not positive
definite gives NaN.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.compiled import kernel


@kernel("(float64[:, ::1])", error_model="numpy")
def factor(band):  # type: ignore[no-untyped-def]
    """Let a band of A become that of its Cholesky factor L, A = L L'; return log |A|."""
    size, width = band.shape[0], band.shape[1] - 1
    logarithm = 0.0
    for i in range(size):
        for j in range(max(0, i - width), i + 1):
            total = band[i, j - i + width]
            for k in range(max(0, i - width), j):
                total -= band[i, k - i + width] * band[j, k - j + width]
            if j < i:
                band[i, j - i + width] = total / band[j, width]
            else:
                band[i, width] = math.sqrt(total)
                logarithm += math.log(total)
    return logarithm


@kernel(error_model="numpy")
def solve(factors, right, found):  # type: ignore[no-untyped-def]
    """Fill in `found` = A^-1 `right`, by the band of the Cholesky factor of A."""
    size, width = factors.shape[0], factors.shape[1] - 1
    for i in range(size):
        total = right[i]
        for k in range(max(0, i - width), i):
            total -= factors[i, k - i + width] * found[k]
        found[i] = total / factors[i, width]
    for i in range(size - 1, -1, -1):
        total = found[i]
        for k in range(i + 1, min(size, i + width + 1)):
            total -= factors[k, i - k + width] * found[k]
        found[i] = total / factors[i, width]


@kernel(error_model="numpy")
def band_of_inverse(factors):  # type: ignore[no-untyped-def]
    """Return the band of A^-1, float64 (n, w + 1): row i holds (i, i) to (i, i + w).

    It follows from the band of L, from the last row up.

    With the columns l of L below its diagonal d, (A^-1)_ij = [i = j] / d_i^2 - (1 / d_i) sum over
    k > i of l_ki (A^-1)_kj, for j >= i (Takahashi et al. 1973).
    """
    size, width = factors.shape[0], factors.shape[1] - 1
    inverse = np.zeros((size, width + 1))
    for i in range(size - 1, -1, -1):
        last = min(size - 1, i + width)
        for j in range(last, i - 1, -1):
            total = 1 / factors[i, width] if j == i else 0.0
            for k in range(i + 1, last + 1):
                low, high = min(k, j), max(k, j)
                total -= factors[k, i - k + width] * inverse[low, high - low]
            inverse[i, j - i] = total / factors[i, width]
    return inverse
