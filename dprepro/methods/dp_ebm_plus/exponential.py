"""Powers of 2 and e for kernels, of additions and products alone: the same bits on any machine.

The exponential of a library differs by machine in the last digit, and a row's part would with it.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.runtime.kernels import kernel

TO_OCTAVES = 1 / math.log(2.0)
"""A logarithm, times this, is an exponent of 2."""

HALVES = np.ldexp(1.0, -np.arange(64))
"""Powers of 1/2. What is smaller than 2^-63 is 0."""

_TAYLOR = np.array([math.log(2.0) ** k / math.factorial(k) for k in range(9)])
"""Of 2^x; between -1/2 and 1/2 the error is below 3e-10."""


@kernel(inline="always")
def power_of_two(exponent):  # type: ignore[no-untyped-def]
    """Return 2^exponent, exponent <= 0, float64."""
    whole = math.floor(exponent + 0.5)
    if whole <= -HALVES.size:
        return 0.0
    rest, value = exponent - whole, _TAYLOR[_TAYLOR.size - 1]
    for k in range(_TAYLOR.size - 2, -1, -1):
        value = value * rest + _TAYLOR[k]
    return value * HALVES[-np.int64(whole)]
