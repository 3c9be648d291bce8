"""The exact samplers again, in plain Python: lists of words, and fractions instead of 128 bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

WORD = 2**64
TABLE_BITS = 512
MOST_HALVINGS = 32
CHOICE_WORDS = 8
"""How many words of a number are drawn before a multiple of ln 2 is added to it."""
KEPT_WORDS = 8
"""How many words of a normal number are kept."""

with localcontext() as _context:
    _context.prec = 200
    LOG_2 = Fraction(Decimal(2).ln())

Words = Iterator[int]


def chacha20(key: list[int], counter: int = 0, nonce: int = 0) -> Iterator[int]:
    """Yield words of 64 bits: two of 32 bits each, the first the lower half."""

    def rotated(word: int, by: int) -> int:
        return (word << by | word >> (32 - by)) & 0xFFFFFFFF

    def quarter_round(s: list[int], a: int, b: int, c: int, d: int) -> None:
        for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & 0xFFFFFFFF
            s[z] = rotated(s[z] ^ s[x], by)

    columns = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
    diagonals = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
    constants = [int.from_bytes(b"expand 32-byte k"[4 * i : 4 * i + 4], "little") for i in range(4)]
    while True:
        tail = [counter % 2**32, counter >> 32, nonce % 2**32, nonce >> 32]
        start = [*constants, *key, *tail]
        state = list(start)
        for _ in range(10):
            for places in columns + diagonals:
                quarter_round(state, *places)
        block = [(a + b) % 2**32 for a, b in zip(state, start, strict=True)]
        yield from (block[i] | block[i + 1] << 32 for i in range(0, 16, 2))
        counter += 1


class Uniform:
    """A number in [0, 1) whose words are drawn when they are needed."""

    def __init__(self, words: Words) -> None:
        self.source = words
        self.drawn: list[int] = []

    def word(self, i: int) -> int:
        while len(self.drawn) <= i:
            self.drawn.append(next(self.source))
        return self.drawn[i]

    def __lt__(self, other: Uniform) -> bool:
        i = 0
        while self.word(i) == other.word(i):
            i += 1
        return self.word(i) < other.word(i)

    def ends(self, words: int) -> tuple[Fraction, Fraction]:
        """Return between which fractions the number lies, given its first words."""
        value = 0
        for i in range(words):
            value = value * WORD + self.word(i)
        return Fraction(value, WORD**words), Fraction(value + 1, WORD**words)


def below(words: Words, limit: int) -> int:
    while True:
        high, low = divmod(next(words) * limit, WORD)
        if low >= WORD % limit:
            return high


def cumulative(largest: int) -> list[Fraction]:
    """Return the borders of the whole parts, cut off after 512 bits."""
    with localcontext() as context:
        context.prec = 200
        weights = [(Decimal(-k * k) / 2).exp() for k in range(largest + 1)]
        total = sum(weights, Decimal(0))
        return [
            Fraction(int(sum(weights[: k + 1], Decimal(0)) / total * 2**TABLE_BITS), 2**TABLE_BITS)
            for k in range(largest)
        ]


def whole_part(words: Words, borders: list[Fraction]) -> int:
    u = Uniform(words)
    for k, border in enumerate(borders):
        wanted = 1
        while u.ends(wanted)[0] < border < u.ends(wanted)[1]:
            wanted += 1
        if u.ends(wanted)[1] <= border:
            return k
    return len(borders)


def accepts(words: Words, k: int, x: Uniform) -> bool:
    steps, last = 0, x
    while True:
        fresh = Uniform(words)
        if not fresh < last:
            return steps % 2 == 0
        part = below(words, 2 * k + 2)
        if part > 2 * k or (part == 2 * k and not Uniform(words) < x):
            return steps % 2 == 0
        steps, last = steps + 1, fresh


def half_normal(words: Words, borders: list[Fraction]) -> tuple[int, Uniform]:
    while True:
        k = whole_part(words, borders)
        x = Uniform(words)
        if all(accepts(words, k, x) for _ in range(k + 1)):
            return k, x


def exponential(words: Words) -> tuple[int, Uniform]:
    k = 0
    while True:
        x = Uniform(words)
        steps, last, fresh = 1, x, Uniform(words)
        while fresh < last:
            steps, last, fresh = steps + 1, fresh, Uniform(words)
        if steps % 2 == 1:
            return k, x
        k += 1


def scaled(scale: float, k: int, x: Uniform, shift: Fraction) -> int:
    """Return floor(scale (k + x) + shift), with as many words as decide."""
    wanted = 1
    while True:
        low, high = (Fraction(scale) * (k + end) + shift for end in x.ends(wanted))
        # The number lies strictly between the two.
        if math.floor(low) == math.ceil(high) - 1:
            return math.floor(low)
        wanted += 1


def rounded(words: Words, scale: float, size: tuple[int, Uniform]) -> int:
    value = scaled(scale, *size, Fraction(1, 2))
    return value if next(words) % 2 else -value


def rounded_gaussian(words: Words, scale: float, borders: list[Fraction]) -> int:
    return rounded(words, scale, half_normal(words, borders))


def rounded_laplace(words: Words, scale: float) -> int:
    return rounded(words, scale, exponential(words))


def halvings(utilities: list[int], scale: float) -> list[int]:
    """Return how often the weight with which each candidate is proposed is halved."""
    step = math.floor(Fraction(scale) * Fraction(math.floor(LOG_2 * 2**64) + 1, 2**64)) + 1
    return [min((max(utilities) - u) // step, MOST_HALVINGS) for u in utilities]


def choice(words: Words, utilities: list[int], scale: float) -> int:
    halved = halvings(utilities, scale)
    weights = [2 ** (MOST_HALVINGS - k) for k in halved]
    while True:
        rest = below(words, sum(weights))
        i = next(i for i in range(len(weights)) if sum(weights[: i + 1]) > rest)
        distance = max(utilities) - utilities[i]
        if distance == 0:
            return i
        whole, x = exponential(words)
        if halved[i]:
            x.word(CHOICE_WORDS - 1)
        added = Fraction(math.floor(halved[i] * LOG_2 * 2**512), 2**512)
        if scaled(scale, whole, x, Fraction(scale) * added) >= distance:
            return i


def permute_and_flip(words: Words, utilities: list[int], scale: float) -> int:
    waiting = list(range(len(utilities)))
    while True:
        at = below(words, len(waiting))
        i, waiting[at] = waiting[at], waiting[-1]
        waiting.pop()
        distance = max(utilities) - utilities[i]
        if distance == 0 or scaled(scale, *exponential(words), Fraction(0)) >= distance:
            return i


def permutation(words: Words, size: int) -> list[int]:
    items = list(range(size))
    for i in range(size - 1, 0, -1):
        j = below(words, i + 1)
        items[i], items[j] = items[j], items[i]
    return items


def normals(
    words: Words, later: Words, borders: list[Fraction], size: int
) -> list[tuple[int, ...]]:
    """Return k, sign and the words of standard normal numbers, from the third on of `later`."""
    drawn = []
    for _ in range(size):
        k, x = half_normal(words, borders)
        sign = next(words) % 2
        x.word(1)
        x.source = later
        drawn.append((k, sign, *(x.word(i) for i in range(KEPT_WORDS))))
    return drawn


def nearest(scale: float, number: tuple[int, ...]) -> int:
    """Return the nearest whole number to a scale times a normal number, of what is known of it.

    The number is taken as the smallest that begins with its words.
    """
    k, sign, *words = number
    x = sum(Fraction(word, WORD ** (i + 1)) for i, word in enumerate(words))
    size = math.floor(Fraction(scale) * (k + x) + Fraction(1, 2))
    return size if sign else -size


def number_at(place: int) -> tuple[int, ...]:
    """Return the positive normal number that begins with `place` / 2^512: k, sign and words."""
    k, x = divmod(place, WORD**KEPT_WORDS)
    return k, 1, *(x // WORD**i % WORD for i in reversed(range(KEPT_WORDS)))
