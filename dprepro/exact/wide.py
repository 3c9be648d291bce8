"""Products of 128 bits from words of 64, for kernels."""

from __future__ import annotations

import numpy as np

from dprepro.compiled import kernel

_LOW = np.uint64(0xFFFFFFFF)
_HALF_WORD = np.uint64(32)


@kernel(inline="always")
def product(a, b):  # type: ignore[no-untyped-def]
    """Return the high and the low word of a b."""
    a1, a0 = a >> _HALF_WORD, a & _LOW
    b1, b0 = b >> _HALF_WORD, b & _LOW
    low = a0 * b0
    middle = a1 * b0 + (low >> _HALF_WORD)  # below 2^64: (2^32 - 1)^2 + 2^32 - 1
    other = a0 * b1 + (middle & _LOW)
    high = a1 * b1 + (middle >> _HALF_WORD) + (other >> _HALF_WORD)
    return high, a * b
