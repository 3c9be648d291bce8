"""One row more or less: brute force over small nodes stays within the stated sensitivities."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dprepro.methods.dpboost.kernel import UNIT
from dprepro.methods.dpboost.sensitivity import (
    GAIN,
    GAIN_UNIT,
    MAX_ROWS,
    first_gain,
    gain_sensitivity,
    leaf_clip,
    leaf_sensitivity,
)
from tests.methods.dpboost.lab import of_cuts

LAMBDAS = [0.0, 0.1, 1.0]
GRADIENTS = [-1.0, -0.5, 0.0, 1.0]
NODES = [
    *(np.array(node) for size in range(5) for node in itertools.product(GRADIENTS, repeat=size)),
    *(np.full(size, sign) for size in (10, 100, 1000) for sign in (-1.0, 1.0)),
]


def score(gradients, ridge):
    """One side's part in the gain."""
    return gradients.sum() ** 2 / (len(gradients) + ridge) if len(gradients) else 0.0


def leaf(gradients, ridge):
    return -gradients.sum() / (len(gradients) + ridge) if len(gradients) else 0.0


def moves(quantity, ridge):
    """By how much `quantity` moves when each node gains each possible row."""
    return [
        quantity(np.append(node, g), ridge) - quantity(node, ridge)
        for node in NODES
        for g in GRADIENTS
    ]


@pytest.mark.parametrize("ridge", LAMBDAS)
def test_a_gain_moves_by_at_most_three_and_nearly_so(ridge):
    # A row lies on one side of a split: the other side's part does not move.
    changes = moves(score, ridge)
    assert -GAIN <= min(changes) < -2.98
    assert 0.3 < max(changes) <= 1.0


def test_the_papers_first_gain_sensitivity_was_too_small():
    first = first_gain(0.1)
    assert first == pytest.approx(0.9957, abs=5e-5)
    assert min(moves(score, 0.1)) < -2.9 * first
    assert gain_sensitivity(1.0, first) == pytest.approx(first, rel=1e-5)


@pytest.mark.parametrize("ridge", LAMBDAS)
def test_a_leaf_moves_by_at_most_its_sensitivity_and_exactly_so(ridge):
    unclipped = 1 / (1 + ridge)
    assert max(np.abs(moves(leaf, ridge))) == pytest.approx(unclipped)
    for position in (0, 7, 8, 30):
        clip = leaf_clip(0.1, position)
        worst = max(np.abs(moves(lambda g, r, c=clip: np.clip(leaf(g, r), -c, c), ridge)))
        assert worst <= leaf_sensitivity(0.1, ridge, position) + 1e-12


def test_the_clipped_branch_takes_over_from_the_ninth_tree():
    """The authors' code: the first form while k + 1 <= int(log(1 / 2.2) / log(0.9)) + 1 = 8."""
    change = int(np.log(1 / 1.1 / 2) / np.log(0.9)) + 1
    assert change == 8
    position = np.arange(50)
    expected = np.where(position + 1 <= change, 1 / 1.1 + UNIT, 2 * 0.9**position)
    np.testing.assert_allclose(leaf_sensitivity(0.1, 0.1, position), expected, rtol=1e-13)


def test_leaf_bounds_shrink_geometrically_from_one():
    np.testing.assert_allclose(leaf_clip(0.1, np.arange(3)), [1.0, 0.9, 0.81])


def test_leaf_bounds_are_products_in_one_order():
    """A power may differ in its last bit from one processor to the next."""
    clip, expected = leaf_clip(0.3, np.arange(50)), 1.0
    for bound in clip:
        assert bound == expected
        expected *= 1 - 0.3
    assert leaf_clip(0.3, 49) == clip[49]
    assert leaf_clip(0.3, np.arange(0)).size == 0


# --- gains in whole units -------------------------------------------------------------------------


def large_nodes(seed, count=1000):
    """Yield (left sum, left rows, right sum, right rows, lambda): up to `MAX_ROWS` rows in all."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        rows = int(MAX_ROWS * rng.random() ** 3)
        left = int(rows * rng.random())
        means = rng.choice([-1, 1, rng.random()], 2)
        sums = [int(n * 2**24 * mean) for n, mean in zip((left, rows - left), means, strict=True)]
        yield sums[0], left, sums[1], rows - left, float(rng.choice([0.0, 0.1, rng.random()]))


def exactly(total, rows, ridge):
    return Fraction(total, 2**24) ** 2 / (rows + Fraction(ridge)) if rows else Fraction(0)


def test_a_computed_gain_is_within_the_stated_rounding_error():
    """Off by less than 2^-22 before it is rounded down: a quarter of a unit."""
    worst = 0
    for s, n, t, m, ridge in large_nodes(0):
        real = (exactly(s, n, ridge) + exactly(t, m, ridge)) / Fraction(GAIN_UNIT)
        excess = of_cuts([(s, n), (t, m)], ridge)[0] - real
        assert Fraction(-5, 4) < excess < Fraction(1, 4)
        worst = max(worst, excess)
    # Floating point does round up past a whole number, so an error has to be charged.
    assert worst > 0


@pytest.mark.parametrize(("bound", "alone"), [(0.9, False), (1.0, True)])
def test_a_row_in_a_large_node_moves_a_computed_gain_by_at_most_what_is_charged(bound, alone):
    """The worst case, many rows with one gradient and one with its opposite, up to `MAX_ROWS`."""
    most, rng, worst = math.floor(bound / UNIT), np.random.default_rng(1), 0.0
    for _ in range(1000):
        n, ridge = MAX_ROWS - int(rng.integers(2, 2**27)), float(rng.random())
        before, after = (
            of_cuts([(s, rows), (most // 3, 1)], ridge)[0]
            for s, rows in ((n * most, n), (n * most - most, n + 1))
        )
        worst = max(worst, abs(after - before) * GAIN_UNIT)
    assert worst <= gain_sensitivity(bound)
    # Real numbers' sensitivity alone does where it is a multiple of the unit, and not elsewhere.
    assert (worst <= GAIN * bound**2) == alone
    assert worst > (GAIN - 1e-5) * bound**2


def test_rounding_costs_less_than_a_millionth_of_the_noise():
    assert GAIN < gain_sensitivity(1.0) < GAIN * (1 + 1e-6)
    assert 1 / 1.1 < leaf_sensitivity(0.1, 0.1, 0) < 1 / 1.1 * (1 + 1e-7)
