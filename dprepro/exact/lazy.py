"""Uniform numbers in [0, 1) whose bits are drawn when they are needed, for kernels.

A number is a row of a `pool`, uint64 (rows, `WORDS` + 1): its words, the most significant first,
and how many of them are drawn. Comparisons are exact: they draw words until they differ. Two
numbers that agree in all 512 bits, which happens with probability 2^-512, count as equal.
"""

from __future__ import annotations

import numpy as np

from dprepro.compiled import kernel
from dprepro.exact.bits import next_word
from dprepro.exact.wide import product

WORDS = 8
_ONE = np.uint64(1)


@kernel(inline="always")
def forget(pool, x):  # type: ignore[no-untyped-def]
    """Make row `x` a new number: none of its words is drawn."""
    pool[x, WORDS] = np.uint64(0)


@kernel(inline="always")
def word_of(state, pool, x, i):  # type: ignore[no-untyped-def]
    """Return word `i` of number `x`; words are asked for in order."""
    if pool[x, WORDS] <= np.uint64(i):
        pool[x, i] = next_word(state)
        pool[x, WORDS] += _ONE
    return pool[x, i]


@kernel()
def less(state, pool, x, y):  # type: ignore[no-untyped-def]
    """Return whether number `x` is below number `y`."""
    for i in range(WORDS):
        a, b = word_of(state, pool, x, i), word_of(state, pool, y, i)
        if a != b:
            return a < b
    return False


@kernel()
def _at_least(state, pool, x, numerator, denominator):  # type: ignore[no-untyped-def]
    """Return whether the words of `x` after its first, as a number, are at least a fraction.

    The fraction is below 1, its denominator below 2^63. Long division gives it word by word.
    """
    for i in range(1, WORDS):
        # With T this word and t the rest: (T + t) / 2^64 >= n / d, or d t >= n 2^64 - d T.
        high, low = product(word_of(state, pool, x, i), denominator)
        if high >= numerator:
            return True
        gap_high, gap_low = numerator - high, np.uint64(0) - low
        if low > np.uint64(0):
            gap_high -= _ONE
        if gap_high > np.uint64(0) or gap_low >= denominator:
            return False
        numerator = gap_low
    return True


@kernel()
def scaled(state, pool, x, whole, mantissa, shift, rounded):  # type: ignore[no-untyped-def]
    """Return floor(s (k + x)) as int64, or with `rounded` the nearest whole number, exactly.

    x is number `x` of the pool, k = `whole` < 2^10, s = `mantissa` 2^-`shift` with a mantissa below
    2^53 and a shift from 0 to 62. Where the first word of x does not decide, more are drawn.
    """
    high, low = product(word_of(state, pool, x, 0), mantissa)
    high += mantissa * np.uint64(whole)
    # In units of 2^-(64 + shift), the number lies between (high, low) and that plus the mantissa.
    if rounded:
        if shift > 0:
            high += _ONE << np.uint64(shift - 1)
        else:
            low += _ONE << np.uint64(63)
            high += np.uint64(low < _ONE << np.uint64(63))
    step = _ONE << np.uint64(shift)
    result = high >> np.uint64(shift)
    inside = high & (step - _ONE)
    # The gap to the next whole number: (step, 0) - (inside, low).
    gap_high, gap_low = step - inside, np.uint64(0) - low
    if low > np.uint64(0):
        gap_high -= _ONE
    if gap_high == np.uint64(0) and gap_low < mantissa:
        result += np.uint64(_at_least(state, pool, x, gap_low, mantissa))
    return np.int64(result)
