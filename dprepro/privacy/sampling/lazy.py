"""Uniform numbers in [0, 1) whose bits are drawn when they are needed, for kernels.

A number is a row of a `pool`, uint64 (rows, `WORDS` + 1): its words, the most significant first,
and how many of them are drawn. Comparisons are exact: they draw words until they differ. Two
numbers that agree in all 512 bits, which happens with probability 2^-512, count as equal.

A product s (k + x) is compared with whole numbers (and a half). It reaches them at points that are
1 / s apart. 512 bits of x leave open only whether x is at or above such a point where the point
lies in the same interval of width 2^-512. k + x has a falling density f of at most 1. The value of
f at such an interval is at most its value at the point before. So all these intervals together have
a probability below 2^-512 (2 f(0) + s) < 2^-458, as s is below 2^53.
"""

from __future__ import annotations

import numpy as np

from dprepro.privacy.sampling.bits import next_word, product
from dprepro.runtime.kernels import kernel

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


_BELOW, _OPEN, _ABOVE = -1, 0, 1
"""What a word says of a number and a border: less than it, not known yet, at least it."""


@kernel()
def _compared(word, numerator, denominator):  # type: ignore[no-untyped-def]
    """Compare a number that starts with `word` to a fraction; return the verdict and what is left.

    The fraction is below 1, its denominator below 2^63. While the verdict is open, the number's
    next words are to be compared to what is left over the same denominator: long division.
    """
    # With T this word and t the rest: (T + t) / 2^64 >= n / d, or d t >= n 2^64 - d T.
    high, low = product(word, denominator)
    if high >= numerator:
        return _ABOVE, numerator
    gap_high, gap_low = numerator - high, np.uint64(0) - low
    if low > np.uint64(0):
        gap_high -= _ONE
    if gap_high > np.uint64(0) or gap_low >= denominator:
        return _BELOW, numerator
    return _OPEN, gap_low


@kernel()
def _started(word, whole, mantissa, shift, rounded):  # type: ignore[no-untyped-def]
    """Return what `scaled` is by the first word alone, whether one more is open, and from where.

    It is one more if the words after the first, as a number, are at least the third result over
    the mantissa.
    """
    high, low = product(word, mantissa)
    high += mantissa * np.uint64(whole)
    # In units of 2^-(64 + shift), the number lies between (high, low) and that plus the mantissa.
    if rounded:
        if shift > 0:
            high += _ONE << np.uint64(shift - 1)
        else:
            low += _ONE << np.uint64(63)
            high += np.uint64(low < _ONE << np.uint64(63))
    step = _ONE << np.uint64(shift)
    # The gap to the next whole number: (step, 0) - (high modulo step, low).
    gap_high, gap_low = step - (high & (step - _ONE)), np.uint64(0) - low
    if low > np.uint64(0):
        gap_high -= _ONE
    is_open = gap_high == np.uint64(0) and gap_low < mantissa
    return np.int64(high >> np.uint64(shift)), is_open, gap_low


@kernel()
def scaled(state, pool, x, whole, mantissa, shift, rounded):  # type: ignore[no-untyped-def]
    """Return floor(s (k + x)) as int64, or with `rounded` the nearest whole number, exactly.

    x is number `x` of the pool, k = `whole` < 2^10, s = `mantissa` 2^-`shift` with a mantissa below
    2^53 and a shift from 0 to 62. Where the first word of x does not decide, more are drawn.
    """
    first = word_of(state, pool, x, 0)
    result, is_open, border = _started(first, whole, mantissa, shift, rounded)
    if not is_open:
        return result
    for i in range(1, WORDS):
        verdict, border = _compared(word_of(state, pool, x, i), border, mantissa)
        if verdict != _OPEN:
            return result + np.int64(verdict == _ABOVE)
    return result + 1


@kernel()
def scaled_words(whole, words, mantissa, shift):  # type: ignore[no-untyped-def]
    """Return the whole number nearest to s (k + x), int64, from the `WORDS` words of x.

    Arguments are those of `scaled`. Where all words do not decide, it rounds down: the words are
    those of many x, and the smallest of them is rounded so.
    """
    result, is_open, border = _started(words[0], whole, mantissa, shift, True)
    if not is_open:
        return result
    for i in range(1, WORDS):
        verdict, border = _compared(words[i], border, mantissa)
        if verdict != _OPEN:
            return result + np.int64(verdict == _ABOVE)
    return result
