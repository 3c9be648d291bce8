"""Exact samplers: Gaussian and Laplace noise rounded to whole numbers, choices and random orders.

For a whole number x, x + round(N) = round(x + N). So a sum of whole numbers with rounded noise is
the rounding of what the ideal mechanism releases: its guarantee holds by post-processing.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from dprepro.privacy.sampling.bits import (
    WORDS,
    below,
    forget,
    less,
    next_word,
    product,
    scaled,
    scaled_words,
    word_of,
)
from dprepro.runtime.kernels import kernel

SMALLEST_SCALE, LARGEST_SCALE = 2.0**-10, 2.0**53
"""Scales from the first up to below the second can be sampled."""

MANTISSA_BITS = 53
"""A scale is a whole number below 2^53 times a power of two: what a double is."""

_X, _LAST, _NEXT, _OTHER, _NUMBERS = range(5)
"""Rows of a pool, and their number: what is sampled, two neighbours of a run, one for a choice."""

_LARGEST = 27
"""Whole part at most of a normal number: |N| is above it with probability below e^(-28^2 / 2),
which is below 2^-565. So are all larger whole parts in `_cumulative_table`, together."""

_MOST_WHOLE = 1023
"""Whole part at which an exponential number is cut off; that happens with probability e^-1023,
which is below 2^-1475."""

_DIGITS = 200
"""Decimal digits in which tables are computed: an error below 2^-600."""


def _cumulative_table() -> np.ndarray:
    """Return P(k <= j) for P(k) ~ exp(-k^2 / 2), j below `_LARGEST`, uint64 (.., WORDS).

    Every number is off by less than 2^-511: by its rounding down to 512 bits, and by the larger k
    that are left out.
    """
    bits = 64 * WORDS
    with localcontext() as context:
        context.prec = _DIGITS
        weights = [(Decimal(-k * k) / 2).exp() for k in range(_LARGEST + 1)]
        running = [sum(weights[: k + 1], Decimal(0)) / sum(weights) for k in range(_LARGEST)]
        scaled_up = [int(value * 2**bits) for value in running]
    return np.array(
        [[number >> (bits - 64 * (i + 1)) & (2**64 - 1) for i in range(WORDS)]
         for number in scaled_up],
        dtype=np.uint64,
    )  # fmt: skip


_CUMULATIVE = _cumulative_table()

_HALVINGS = 32
"""How often the weight with which a candidate is proposed is halved, at most."""


def _halvings_table() -> np.ndarray:
    """Return k ln 2 for k = 0 .. `_HALVINGS`, uint64 (.., 1 + WORDS): whole part, then 512 bits."""
    bits = 64 * WORDS
    with localcontext() as context:
        context.prec = _DIGITS
        multiples = [int(k * Decimal(2).ln() * 2**bits) for k in range(_HALVINGS + 1)]
    return np.array(
        [[number >> (bits - 64 * i) & (2**64 - 1) for i in range(WORDS + 1)]
         for number in multiples],
        dtype=np.uint64,
    )  # fmt: skip


_HALVED = _halvings_table()
_LOG_2 = np.uint64(int(_HALVED[1, 1]) + 1)
"""ln 2 in units of 2^-64, rounded up."""


@kernel()
def _whole_part(state, pool):  # type: ignore[no-untyped-def]
    """Return k with probability proportional to exp(-k^2 / 2)."""
    forget(pool, _OTHER)
    for k in range(_LARGEST):
        for i in range(WORDS):
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


@kernel("(uint32[::1], uint32[::1], uint64[:, ::1])")
def normal_words(state, later, out):  # type: ignore[no-untyped-def]
    """Fill rows (k, sign, `WORDS` words of x) with |N(0, 1)| = k + x and the sign of N.

    Two words of every x are drawn from `state`, the others from `later`.
    """
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    for i in range(out.shape[0]):
        out[i, 0] = _half_normal(state, pool)
        out[i, 1] = next_word(state) & np.uint64(1)
        word_of(state, pool, _X, 0)
        word_of(state, pool, _X, 1)
        # Words that a comparison has seen are part of x: only those after them are free.
        known = np.int64(pool[_X, WORDS])
        for j in range(WORDS):
            out[i, 2 + j] = pool[_X, j] if j < known else next_word(later)


@kernel("(const(uint64[::1]), uint64, int64)")
def rounded_normal(words, mantissa, shift):  # type: ignore[no-untyped-def]
    """Return round(s N) as int64, s = `mantissa` 2^-`shift`, N a row of `normal_words`."""
    size = scaled_words(words[0], words[2:], mantissa, shift)
    return size if words[1] != np.uint64(0) else -size


@kernel("(uint32[::1], uint64, int64, int64[::1])")
def rounded_laplace(state, mantissa, shift, out):  # type: ignore[no-untyped-def]
    """Fill with rounded Laplace noise of scale s = `mantissa` 2^-`shift`; see `scaled`."""
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    for i in range(out.size):
        k = _exponential(state, pool)
        size = scaled(state, pool, _X, k, mantissa, shift, True)
        out[i] = size if next_word(state) & np.uint64(1) else -size


@kernel()
def _exceeds(state, pool, mantissa, shift, distance):  # type: ignore[no-untyped-def]
    """Return whether an exponential number with mean s is at least a distance d: exp(-d / s).

    s = `mantissa` 2^-`shift`; 0 <= d <= 2^62.
    """
    if distance == 0:
        return True
    k = _exponential(state, pool)
    return scaled(state, pool, _X, k, mantissa, shift, False) >= distance


@kernel()
def _propose(utilities, lengths, largest, step, halvings):  # type: ignore[no-untyped-def]
    """Set how often each candidate's weight is halved: floor(d / `step`), or `_HALVINGS` if less.

    d is the distance of its utility from the largest. A run of so many candidates has one utility.
    Returns the sum of all weights; the weight of the largest utility is 2^`_HALVINGS`.
    """
    total, far = np.uint64(0), step * np.uint64(_HALVINGS)
    for i in range(utilities.size):
        distance = np.uint64(largest - utilities[i])
        halvings[i] = np.uint64(_HALVINGS) if distance >= far else distance // step
        total += np.uint64(lengths[i]) << np.uint64(_HALVINGS - halvings[i])
    return total


@kernel()
def _at_weight(halvings, lengths, rest):  # type: ignore[no-untyped-def]
    """Return the first candidate at which the running sum of the weights is above `rest`.

    As its run, and its place within the run.
    """
    i = 0
    while True:
        weight = lengths[i] << np.int64(_HALVINGS - halvings[i])
        if rest < weight:
            return i, rest >> np.int64(_HALVINGS - halvings[i])
        rest -= weight
        i += 1


@kernel()
def _plus_halvings(state, pool, k):  # type: ignore[no-untyped-def]
    """Add k ln 2 to number `_X` of the pool; return the whole part of the sum."""
    for i in range(WORDS):
        word_of(state, pool, _X, i)
    carry = np.uint64(0)
    for i in range(WORDS - 1, -1, -1):
        added = _HALVED[k, i + 1] + carry  # no multiple has a word of ones only
        pool[_X, i] += added
        carry = np.uint64(pool[_X, i] < added)
    return np.int64(_HALVED[k, 0] + carry)


@kernel("(uint32[::1], uint64, int64, const(int64[::1]), const(int64[::1]))")
def exponential_choice_of_runs(state, mantissa, shift, utilities, lengths):  # type: ignore[no-untyped-def]
    """Return a candidate with probability proportional to exp(utility / s), s = mantissa 2^-shift.

    Candidates come in runs of one utility each, of `lengths` int64, at least 1. The result is the
    candidate's run and its place in it: the same as without runs.

    With d the distance of its utility from the largest, a candidate is proposed with probability
    proportional to 2^-k and accepted with probability 2^k exp(-d / s): if an exponential number E
    with mean 1 has s (E + k ln 2) >= d. That is a probability as k is at most d / (s ln 2). It is
    at least about 1/2 while k is below `_HALVINGS`, so that few proposals are made, however many
    candidates there are. No distance may exceed 2^62, and there are at most 2^30 candidates.
    """
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    largest, halvings = utilities.max(), np.empty(utilities.size, np.uint8)
    step = (product(mantissa, _LOG_2)[0] >> np.uint64(shift)) + np.uint64(1)  # above s ln 2
    total = _propose(utilities, lengths, largest, step, halvings)
    while True:
        i, place = _at_weight(halvings, lengths, np.int64(below(state, total)))
        distance = largest - utilities[i]
        if distance == 0:
            return i, place
        whole = _exponential(state, pool)
        if halvings[i] > 0:
            whole = min(whole + _plus_halvings(state, pool, halvings[i]), _MOST_WHOLE)
        if scaled(state, pool, _X, whole, mantissa, shift, False) >= distance:
            return i, place


@kernel("(uint32[::1], uint64, int64, const(int64[::1]))")
def exponential_choice(state, mantissa, shift, utilities):  # type: ignore[no-untyped-def]
    """Return i with probability proportional to exp(utilities[i] / s); see above."""
    alone = np.ones(utilities.size, np.int64)
    return exponential_choice_of_runs(state, mantissa, shift, utilities, alone)[0]


@kernel("(uint32[::1], uint64, int64, const(int64[:, ::1]), int64[::1])")
def permute_and_flip(state, mantissa, shift, utilities, out):  # type: ignore[no-untyped-def]
    """Fill with a choice from each row of `utilities` (choices, candidates).

    Candidates come in a random order; each is accepted with probability exp(-d / s), d the distance
    of its utility from the largest of the row (McKenna, Sheldon 2020, algorithm 1), and the first
    that is accepted is chosen. s and the distances are those of `exponential_choice`.
    """
    pool = np.zeros((_NUMBERS, WORDS + 1), np.uint64)
    candidates = utilities.shape[1]
    waiting = np.empty(candidates, np.int64)
    for row in range(utilities.shape[0]):
        for i in range(candidates):
            waiting[i] = i
        largest = utilities[row].max()
        left = candidates
        while left > 0:
            at = np.int64(below(state, np.uint64(left)))
            i, left = waiting[at], left - 1
            if _exceeds(state, pool, mantissa, shift, largest - utilities[row, i]):
                out[row] = i
                break
            waiting[at] = waiting[left]


@kernel("(uint32[::1], int64[::1])")
def shuffle(state, items):  # type: ignore[no-untyped-def]
    """Put the items in an order of which all are equally likely: Fisher, Yates 1938."""
    for i in range(items.size - 1, 0, -1):
        j = np.int64(below(state, np.uint64(i + 1)))
        items[i], items[j] = items[j], items[i]
