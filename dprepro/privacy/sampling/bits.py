"""Random bits from ChaCha20 (RFC 8439), and uniform numbers whose bits are drawn when needed.

Nobody predicts the bits who does not know the key. The state is a uint32 array (33,): the 16 words
of the next block's input, the 16 words of the last block, and how many of these have been used.

A process that is forked off gets a copy of all memory, keys among it. Two processes with one stream
would give two answers with the same noise, whose difference is exact. So whatever has no seed gets
a key of its own in the child, before anything is drawn there.

A number in [0, 1) is a row of a `pool`, uint64 (rows, `WORDS` + 1): its words, the most significant
first, and how many of them are drawn. Comparisons are exact: they draw words until they differ. Two
numbers that agree in all 512 bits, which happens with probability 2^-512, count as equal.

A product s (k + x) is compared with whole numbers (and a half). It reaches them at points that are
1 / s apart. 512 bits of x leave open only whether x is at or above such a point where the point
lies in the same interval of width 2^-512. k + x has a falling density f of at most 1. The value of
f at such an interval is at most its value at the point before. So all these intervals together have
a probability below 2^-512 (2 f(0) + s) < 2^-458, as s is below 2^53.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from dprepro.runtime.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

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


_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
"""The first four words of every block's input: "expand 32-byte k", little-endian."""

KEY_BYTES = 32

_BLOCK = 16
_USED = 2 * _BLOCK


class Bits:
    """A stream of random bits, for the kernels that sample.

    Parameters
    ----------
    seed
        None takes the key from the operating system, and another one in a forked process. A fixed
        seed makes the stream repeatable, and predictable for whoever knows it: in a forked process,
        too, it goes on as in its parent.

    Examples
    --------
    >>> bits = Bits(seed=1)
    >>> bits.words(2) == Bits(seed=1).words(2)
    array([ True,  True])
    """

    def __init__(self, seed: int | np.random.SeedSequence | None = None) -> None:
        self._state, self._later = _streams(_key(seed))
        if seed is None:
            _UNSEEDED.add(self)

    @property
    def state(self) -> np.ndarray:
        """Kernels draw from it and move it on: uint32 (33,). Secret: it tells all draws.

        To be asked for anew at every draw, as the process may have been forked since the last.
        """
        renew_if_forked()
        return self._state

    @property
    def later(self) -> np.ndarray:
        """As `state`, of a second stream of the same key, which moves on by itself."""
        renew_if_forked()
        return self._later

    def words(self, size: int) -> np.ndarray:
        """Return uniform words, uint64 (size,)."""
        drawn = np.empty(size, np.uint64)
        fill(self.state, drawn)
        return drawn

    def renew(self) -> None:
        """Go on with another key of the operating system. That bits were drawn stays known."""
        counter = self._state[12:14].copy()
        self._state[:], self._later[:] = _streams(_key(None))
        self._state[12:14] = counter

    def __repr__(self) -> str:
        return "Bits(...)"


class UnseededGenerator(np.random.Generator):
    """NumPy's default generator, without a seed, and with another state in a forked process."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64())
        _UNSEEDED.add(self)

    def renew(self) -> None:
        """Go on with another state, in place: for whoever has the generator."""
        self.bit_generator.state = np.random.PCG64().state


_UNSEEDED: WeakSet[Bits | UnseededGenerator] = WeakSet()
_drawn_in = os.getpid()


def renew_if_forked() -> None:
    """Give all that has no seed other keys, if this is another process than that of the last draw.

    Python does so when it forks. This is for forks that Python does not know of.
    """
    if os.getpid() != _drawn_in:
        _renew()


def _renew() -> None:
    global _drawn_in
    for source in _UNSEEDED:
        source.renew()
    _drawn_in = os.getpid()  # at last: after a failure the next draw tries again


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew)


def start_state(key: Sequence[int] | np.ndarray, counter: int = 0, nonce: int = 0) -> np.ndarray:
    """Return the state before the first draw.

    Parameters
    ----------
    key : 8 words of 32 bits
    counter
        Of the first block: 64 bits, in words 12 and 13. RFC 8439 has 32 bits there, which would
        repeat after 256 GiB.
    nonce
        64 bits, in words 14 and 15.
    """
    state = np.zeros(_USED + 1, np.uint32)
    low = 2**32 - 1
    tail = (counter & low, counter >> 32, nonce & low, nonce >> 32)
    state[:_BLOCK] = (*_CONSTANTS, *(int(word) for word in key), *tail)
    state[_USED] = _BLOCK
    return state


def _streams(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return start_state(key), start_state(key, nonce=1)


def _key(seed: int | np.random.SeedSequence | None) -> np.ndarray:
    if seed is None:
        return np.frombuffer(os.urandom(KEY_BYTES), dtype="<u4")
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(seed)
    return seed.generate_state(KEY_BYTES // 4)


@kernel(inline="always")
def _rotated(word, by):  # type: ignore[no-untyped-def]
    return np.uint32((word << np.uint32(by)) | (word >> np.uint32(32 - by)))


@kernel(inline="always")
def _quarter_round(a, b, c, d):  # type: ignore[no-untyped-def]
    a = np.uint32(a + b)
    d = _rotated(np.uint32(d ^ a), 16)
    c = np.uint32(c + d)
    b = _rotated(np.uint32(b ^ c), 12)
    a = np.uint32(a + b)
    d = _rotated(np.uint32(d ^ a), 8)
    c = np.uint32(c + d)
    b = _rotated(np.uint32(b ^ c), 7)
    return a, b, c, d


@kernel()
def _next_block(state):  # type: ignore[no-untyped-def]
    """Write the next block and step the counter: RFC 8439, section 2.3."""
    a0, a1, a2, a3 = state[0], state[1], state[2], state[3]
    b0, b1, b2, b3 = state[4], state[5], state[6], state[7]
    c0, c1, c2, c3 = state[8], state[9], state[10], state[11]
    d0, d1, d2, d3 = state[12], state[13], state[14], state[15]
    for _ in range(10):
        a0, b0, c0, d0 = _quarter_round(a0, b0, c0, d0)
        a1, b1, c1, d1 = _quarter_round(a1, b1, c1, d1)
        a2, b2, c2, d2 = _quarter_round(a2, b2, c2, d2)
        a3, b3, c3, d3 = _quarter_round(a3, b3, c3, d3)
        a0, b1, c2, d3 = _quarter_round(a0, b1, c2, d3)
        a1, b2, c3, d0 = _quarter_round(a1, b2, c3, d0)
        a2, b3, c0, d1 = _quarter_round(a2, b3, c0, d1)
        a3, b0, c1, d2 = _quarter_round(a3, b0, c1, d2)
    words = (a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3)
    for i in range(_BLOCK):
        state[_BLOCK + i] = np.uint32(words[i] + state[i])
    state[12] = np.uint32(state[12] + np.uint32(1))
    if state[12] == 0:
        state[13] = np.uint32(state[13] + np.uint32(1))
    state[_USED] = 0


@kernel()
def next_word(state):  # type: ignore[no-untyped-def]
    """Return the next uniform word, uint64."""
    if state[_USED] == _BLOCK:
        _next_block(state)
    at = np.int64(state[_USED])
    state[_USED] = np.uint32(at + 2)
    low, high = state[_BLOCK + at], state[_BLOCK + at + 1]
    return np.uint64(low) | (np.uint64(high) << np.uint64(32))


@kernel("(uint32[::1], uint64[::1])")
def fill(state, out):  # type: ignore[no-untyped-def]
    """Fill with uniform words."""
    for i in range(out.size):
        out[i] = next_word(state)


@kernel("(uint32[::1], uint64)")
def below(state, limit):  # type: ignore[no-untyped-def]
    """Return a uniform uint64 below `limit`, which is at least 1; exactly uniform (Lemire 2019).

    The high word of a uniform word times the limit; words whose low word falls short of 2^64 modulo
    the limit are drawn again.
    """
    limit = np.uint64(limit)
    high, low = product(next_word(state), limit)
    if low < limit:
        rest = (np.uint64(0) - limit) % limit  # 2^64 modulo the limit
        while low < rest:
            high, low = product(next_word(state), limit)
    return high


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
