"""Exact samplers: Gaussian and Laplace noise rounded to whole numbers, and exponential choices.

For a whole number x, x + round(N) = round(x + N). So a sum of whole numbers with rounded noise is
the rounding of what the ideal mechanism releases: its guarantee holds by post-processing.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from dprepro.compiled import kernel
from dprepro.exact.bits import below, next_word
from dprepro.exact.lazy import WORDS, forget, less, scaled, scaled_words, word_of

SMALLEST_SCALE, LARGEST_SCALE = 2.0**-10, 2.0**53
"""Scales from the first up to below the second can be sampled."""

MANTISSA_BITS = 53
"""A scale is a whole number below 2^53 times a power of two: what a double is."""

_X, _LAST, _NEXT, _OTHER, _NUMBERS = range(5)
"""Rows of a pool, and their number: what is sampled, two neighbours of a run, one for a choice."""

_TABLE_WORDS = 4
_LARGEST = 20
"""Whole parts of a normal number: larger ones have together a probability below 2^-280."""

_MOST_WHOLE = 1023
"""Whole part at which an exponential number is cut off; that happens with probability e^-1023."""


def _cumulative_table() -> np.ndarray:
    """Return P(k <= j) for P(k) ~ exp(-k^2 / 2), k = 0 .. `_LARGEST`, uint64 (.., 4): 256 bits.

    Every number is off by less than 2^-256.
    """
    bits = 64 * _TABLE_WORDS
    with localcontext() as context:
        context.prec = 120
        weights = [(Decimal(-k * k) / 2).exp() for k in range(_LARGEST + 1)]
        running = [sum(weights[: k + 1], Decimal(0)) / sum(weights) for k in range(_LARGEST)]
        scaled_up = [int(value * 2**bits) for value in running]
    return np.array(
        [[number >> (bits - 64 * (i + 1)) & (2**64 - 1) for i in range(_TABLE_WORDS)]
         for number in scaled_up],
        dtype=np.uint64,
    )  # fmt: skip


_CUMULATIVE = _cumulative_table()


@kernel()
def _whole_part(state, pool):  # type: ignore[no-untyped-def]
    """Return k with probability proportional to exp(-k^2 / 2)."""
    forget(pool, _OTHER)
    for k in range(_LARGEST):
        for i in range(_TABLE_WORDS):
            word, border = word_of(state, pool, _OTHER, i), _CUMULATIVE[k, i]
            if word != border:
                break
        if word < border:
            return k
    return _LARGEST


@kernel()
def _passes(state, pool, k):  # type: ignore[no-untyped-def]
    """Return True with probability (2k + x) / (2k + 2)."""
    part = below(state, np.uint64(2 * k + 2))
    if part != np.uint64(2 * k):
        return part < np.uint64(2 * k)
    forget(pool, _OTHER)
    return less(state, pool, _OTHER, _X)


@kernel()
def _accepts(state, pool, k):  # type: ignore[no-untyped-def]
    """Return True with probability exp(-x (2k + x) / (2k + 2)): Karney 2016, algorithm B."""
    accepted, last, fresh = True, _X, _NEXT
    while True:
        forget(pool, fresh)
        if not (less(state, pool, fresh, last) and _passes(state, pool, k)):
            return accepted
        accepted = not accepted
        last, fresh = fresh, _LAST if fresh == _NEXT else _NEXT


@kernel()
def _half_normal(state, pool):  # type: ignore[no-untyped-def]
    """Let k + x be |N(0, 1)|, return k: Karney 2016, algorithm N.

    k is drawn with what its steps N1 and N2 come to.
    """
    while True:
        k = _whole_part(state, pool)
        forget(pool, _X)
        trials = 0
        while trials <= k and _accepts(state, pool, k):
            trials += 1
        if trials > k:
            return k


@kernel()
def _exponential(state, pool):  # type: ignore[no-untyped-def]
    """Let k + x be exponential with mean 1, return k: von Neumann 1951.

    A falling run that starts with x ends after an odd number of steps with probability exp(-x).
    """
    for k in range(_MOST_WHOLE):
        forget(pool, _X)
        accepted, last, fresh = True, _X, _NEXT
        forget(pool, fresh)
        while less(state, pool, fresh, last):
            accepted = not accepted
            last, fresh = fresh, _LAST if fresh == _NEXT else _NEXT
            forget(pool, fresh)
        if accepted:
            return k
    return _MOST_WHOLE


@kernel("(uint32[::1], uint64, int64, int64[::1])")
def rounded_gaussian(state, mantissa, shift, out):  # type: ignore[no-untyped-def]
    """Fill with round(N(0, s^2)), s = `mantissa` 2^-`shift`; see `scaled` for their ranges."""
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    for i in range(out.size):
        k = _half_normal(state, pool)
        size = scaled(state, pool, _X, k, mantissa, shift, True)
        out[i] = size if next_word(state) & np.uint64(1) else -size


@kernel("(uint32[::1], uint64[:, ::1])")
def normal_words(state, out):  # type: ignore[no-untyped-def]
    """Fill rows (k, sign, first word, second word) with |N(0, 1)| = k + x and the sign of N."""
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    for i in range(out.shape[0]):
        out[i, 0] = _half_normal(state, pool)
        out[i, 1] = next_word(state) & np.uint64(1)
        out[i, 2] = word_of(state, pool, _X, 0)
        out[i, 3] = word_of(state, pool, _X, 1)


@kernel("(const(uint64[::1]), uint64, int64)")
def rounded_normal(words, mantissa, shift):  # type: ignore[no-untyped-def]
    """Return round(s N) as int64, s = `mantissa` 2^-`shift`, N a row of `normal_words`."""
    size = scaled_words(words[0], words[2], words[3], mantissa, shift)
    return size if words[1] != np.uint64(0) else -size


@kernel("(uint32[::1], uint64, int64, int64[::1])")
def rounded_laplace(state, mantissa, shift, out):  # type: ignore[no-untyped-def]
    """Fill with rounded Laplace noise of scale s = `mantissa` 2^-`shift`; see `scaled`."""
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    for i in range(out.size):
        k = _exponential(state, pool)
        size = scaled(state, pool, _X, k, mantissa, shift, True)
        out[i] = size if next_word(state) & np.uint64(1) else -size


@kernel("(uint32[::1], uint64, int64, const(int64[::1]))")
def exponential_choice(state, mantissa, shift, utilities):  # type: ignore[no-untyped-def]
    """Return i with probability proportional to exp(utilities[i] / s), s = `mantissa` 2^-`shift`.

    A uniform i is accepted if an exponential number with mean s is at least the distance d of its
    utility from the largest: with probability exp(-d / s). No distance may exceed 2^62.
    """
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    largest = utilities.max()
    while True:
        i = np.int64(below(state, np.uint64(utilities.size)))
        distance = largest - utilities[i]
        if distance == 0:
            return i
        k = _exponential(state, pool)
        if scaled(state, pool, _X, k, mantissa, shift, False) >= distance:
            return i
