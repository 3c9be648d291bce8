"""The public grid that a released model lies on: whole numbers of one power of two.

What leaves is rounded to it, so that a number in a file has no low bits that say how it was
computed, and reads the same on every machine. Rounding what is released costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_DIGITS = 30
"""Binary digits of the largest number; the rounding is at most 2^-30 of it."""

_MORE_DIGITS = 53 - _DIGITS
_COARSER = 16
"""Binary digits that an intercept may have fewer behind the point than functions."""
BEHIND = 60
"""Binary digits by which the noise of functions may have more than they have."""

LEAST_POWER, MOST_POWER = -1000, 900
"""Powers of two by which whole numbers can be multiplied without loss."""


class Powers(NamedTuple):
    """The powers of two that a model's numbers count in.

    `functions` is that of their noise and of edits, too. The intercept has one of its own: it can
    be far larger than all functions.
    """

    functions: int
    intercept: int
    counts: int

    @classmethod
    def of(
        cls,
        functions: Sequence[np.ndarray],
        intercept: np.ndarray,
        counts: Sequence[np.ndarray],
        noise: Sequence[np.ndarray] = (),
    ) -> Powers:
        """Return the powers for released numbers; see `power_for`.

        Functions that are 0 everywhere, or next to it, count in what their noise is a number of.
        An intercept that is far larger than all functions has more digits, up to those of float64.
        """
        of_functions, of_intercept = power_for(functions), power_for([intercept])
        all_zero = not any(each.any() for each in functions)
        if any(each.any() for each in noise):
            of_noise = power_for(noise)
            of_functions = of_noise if all_zero else max(of_functions, of_noise - BEHIND)
        if not all_zero:
            finest = max(of_intercept - _MORE_DIGITS, LEAST_POWER)
            of_intercept = min(of_intercept, max(of_functions + _COARSER, finest))
        return cls(of_functions, of_intercept, power_for(counts))


def power_for(numbers: Sequence[np.ndarray]) -> int:
    """Return p such that all numbers, float64, are less than 2^30 in units of 2^p; 0 for zeros."""
    largest = max((float(np.abs(each).max()) for each in numbers if each.size), default=0.0)
    if largest == 0.0:
        return 0
    return min(max(math.frexp(largest)[1] - _DIGITS, LEAST_POWER), MOST_POWER)


def whole_numbers(values: np.ndarray, power: int) -> list[int]:
    """Return values, float64 (n,), in units of 2^power, rounded to the nearest whole numbers."""
    return [int(value) for value in np.rint(np.ldexp(values, -power))]


def on_grid(values: np.ndarray, power: int) -> np.ndarray:
    """Return values, float64, rounded to the nearest whole numbers of 2^power."""
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, -power)), power))
