"""The algorithms' probabilities, by going through all bits that they may draw.

`tests.privacy.sampling.reference` is run with words of one bit, for every string of bits up to a
length. What has ended has an exact probability, a multiple of a power of 1/2. The rest is not
decided yet. The stated probability of a value has to lie between what has ended with it and that
plus the rest.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.privacy.sampling import reference


class UndecidedError(Exception):
    """The bits are used up."""


def probabilities(draw, length):
    """Return the values of `draw(words)` with their probabilities, and what is undecided.

    Strings are gone through in their order. A draw that ends takes the bits that it needs; the next
    string follows the last that begins with these.
    """
    found, undecided, bits = {}, 0.0, []
    while bits is not None:
        words = Given(bits, length)
        try:
            value = draw(words)
        except UndecidedError:
            undecided += 2.0**-length
        else:
            found[value] = found.get(value, 0.0) + 2.0 ** -len(words.taken)
        bits = _next(words.taken)
    return found, undecided


def _next(bits):
    """Return the bits whose last 0 is a 1 and the last; None after ones alone."""
    while bits and bits[-1]:
        bits = bits[:-1]
    return [*bits[:-1], 1] if bits else None


class Given:
    """An iterator over some bits, then zeros; `UndecidedError` after `length` of them."""

    def __init__(self, bits, length):
        self.bits, self.length, self.taken = bits, length, []

    def __next__(self):
        place = len(self.taken)
        if place == self.length:
            raise UndecidedError
        self.taken.append(self.bits[place] if place < len(self.bits) else 0)
        return self.taken[-1]


def below(words, limit):
    """Stand in for `reference.below`, which needs words of more values than the limit."""
    while True:
        value = 0
        for _ in range((limit - 1).bit_length()):
            value = 2 * value + next(words)
        if value < limit:
            return value


@pytest.fixture(autouse=True)
def bits_for_words(monkeypatch):
    monkeypatch.setattr(reference, "WORD", 2)
    monkeypatch.setattr(reference, "below", below)
    monkeypatch.setattr(reference, "CHOICE_WORDS", 1)
    monkeypatch.setattr(reference, "MOST_HALVINGS", 2)


def check(found, undecided, stated, at_most):
    assert sum(found.values()) + undecided == pytest.approx(1, abs=1e-12)
    assert undecided < at_most
    for value, probability in stated.items():
        assert found.get(value, 0.0) <= probability + 1e-12
        assert probability <= found.get(value, 0.0) + undecided + 1e-12


def interval(distribution, value):
    return float(distribution.cdf(value + 0.5) - distribution.cdf(value - 0.5))


@pytest.mark.parametrize("scale", [0.4, 1.0, 1.7])
def test_rounded_laplace(scale):
    found, undecided = probabilities(lambda words: reference.rounded_laplace(words, scale), 17)
    stated = {k: interval(stats.laplace(scale=scale), k) for k in range(-5, 6)}
    check(found, undecided, stated, 0.2)


@pytest.mark.parametrize("scale", [0.4, 1.7])
def test_rounded_gaussian(scale):
    borders = reference.cumulative(20)
    found, undecided = probabilities(
        lambda words: reference.rounded_gaussian(words, scale, borders), 14
    )
    stated = {k: interval(stats.norm(scale=scale), k) for k in range(-5, 6)}
    check(found, undecided, stated, 0.45)


@pytest.mark.parametrize(
    ("utilities", "scale", "halved"),
    [([0, 2, 1], 0.5, [2, 0, 1]), ([0, 2, 1], 2.0, [1, 0, 0]), ([9, 0, 5], 4.0, [0, 2, 1]),
     ([0, 3], 1.0, [2, 0])],
)  # fmt: skip
def test_choice(utilities, scale, halved):
    """Candidates whose weight is halved never, once, as often as can be, and not often enough."""
    assert reference.halvings(utilities, scale) == halved
    found, undecided = probabilities(lambda words: reference.choice(words, utilities, scale), 17)
    weights = np.exp((np.array(utilities) - max(utilities)) / scale)
    check(found, undecided, dict(enumerate(weights / weights.sum())), 0.4)


def flipped(utilities, scale):
    """Return the probabilities of permute-and-flip, going through all orders."""
    found = dict.fromkeys(range(len(utilities)), 0.0)
    accepted = np.exp((np.array(utilities) - max(utilities)) / scale)
    for order in itertools.permutations(range(len(utilities))):
        reached = 1 / math.factorial(len(utilities))
        for i in order:
            found[i] += reached * accepted[i]
            reached *= 1 - accepted[i]
    return found


@pytest.mark.parametrize(("utilities", "scale"), [([0, 2, 1], 2.0), ([1, 0], 0.5), ([3, 3], 1.0)])
def test_permute_and_flip(utilities, scale):
    found, undecided = probabilities(
        lambda words: reference.permute_and_flip(words, utilities, scale), 16
    )
    check(found, undecided, flipped(utilities, scale), 0.3)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_orders_are_equally_likely(size):
    found, undecided = probabilities(lambda words: tuple(reference.permutation(words, size)), 16)
    orders = list(itertools.permutations(range(size)))
    assert set(found) == set(orders)
    check(found, undecided, dict.fromkeys(orders, 1 / len(orders)), 0.05)


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 16])
def test_numbers_below_a_limit_from_all_words_of_four_bits(limit, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(reference, "WORD", 16)
    found = [accepted(word, limit) for word in range(16)]
    assert len({found.count(value) for value in range(limit)}) == 1
    assert found.count(None) < limit


def accepted(word, limit):
    try:
        return reference.below(iter([word]), limit)
    except StopIteration:
        return None


def test_exponential_numbers():
    found, undecided = probabilities(lambda words: reference.exponential(words)[0], 14)
    check(found, undecided, {k: math.exp(-k) * (1 - math.exp(-1)) for k in range(5)}, 0.25)


def test_a_wrong_probability_is_not_between():
    found, undecided = probabilities(lambda words: reference.exponential(words)[0], 14)
    with pytest.raises(AssertionError):
        check(found, undecided, {0: 0.9}, 1.0)
