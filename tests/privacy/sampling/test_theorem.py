"""The steps of docs/evidence/exact.md on small grids, by all whole numbers that can come out.

What `tests/privacy/sampling/test_exhaustion.py` checks of the algorithms is taken as given here: a
release has the probabilities of a rounded normal or Laplace number.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dprepro.privacy.gdp import delta_of

EPSILONS = (0.0, 0.1, 0.5, 1.0, 3.0)
ROUNDING = 1e-12
"""Of sums of probabilities in doubles."""


def rounded(t):
    return math.floor(t + Fraction(1, 2))


def probabilities(distribution, sum_of_rows, most=400):
    """Return P(k) for k = -most .. most of the sum plus rounded noise, float64."""
    edges = np.arange(-most, most + 2) - 0.5 - sum_of_rows
    # By the nearer tail: differences of numbers near 1 would be rounded.
    return np.where(
        edges[:-1] < 0,
        np.diff(distribution.cdf(edges)),
        -np.diff(distribution.sf(edges)),
    )


def delta(one, other, epsilon):
    """Return the smallest delta at an epsilon: the test that takes every outcome above it."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def test_whole_numbers_can_be_added_before_or_after_rounding():
    for x, t in itertools.product(range(-9, 10), range(-300, 301)):
        noise = Fraction(t, 64)
        assert rounded(x + noise) == x + rounded(noise)


@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 2.5, 20.0])
def test_rounded_gaussian_noise_is_gaussian_differentially_private(scale, bound):
    noise = stats.norm(scale=scale)
    for x, moved in itertools.product((0, 5), range(-bound, bound + 1)):
        one, other = probabilities(noise, x), probabilities(noise, x + moved)
        for epsilon in EPSILONS:
            assert delta(one, other, epsilon) <= delta_of(epsilon, bound / scale) + ROUNDING


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.5])
def test_rounded_laplace_noise_is_differentially_private(scale):
    noise = stats.laplace(scale=scale)
    for moved in (1, 2):
        one, other = probabilities(noise, 0, 20), probabilities(noise, moved, 20)
        ratios = np.maximum(one / other, other / one)
        assert ratios.max() <= math.exp(moved / scale) * (1 + ROUNDING)
        assert ratios.max() > 0.99 * math.exp(moved / scale)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_exponential_choices_are_differentially_private(epsilon):
    """All utilities from 0 to 2 of three candidates, each moved by at most 1."""
    scale, largest = 2 / epsilon, 0.0
    for utilities in itertools.product(range(3), repeat=3):
        before = chosen(utilities, scale)
        for moves in itertools.product((-1, 0, 1), repeat=3):
            after = chosen(np.add(utilities, moves), scale)
            largest = max(largest, float((before / after).max()))
    assert largest <= math.exp(epsilon) * (1 + ROUNDING)
    assert largest > math.exp(epsilon / 2)


def chosen(utilities, scale):
    weights = np.exp(np.asarray(utilities) / scale)
    return weights / weights.sum()


def test_no_part_exceeds_its_bound():
    """All residuals of 8 bits and a sign, all bounds of 4 bits, grids coarser and finer."""
    for g, residual, c in itertools.product((0, 3, 6, 9), range(-255, 256), range(1, 16)):
        r, bound = Fraction(residual, 64), math.floor(Fraction(c, 16) * 2**g)
        part = min(max(math.trunc(r * 2**g), -bound), bound)
        assert abs(part) <= Fraction(c, 16) * 2**g
        assert abs(part) <= abs(r) * 2**g


def test_a_row_moves_a_sum_of_whole_numbers_by_its_own_part_and_no_sum_of_doubles():
    parts = [2**20 - 1, -(2**20), 7, 1, -3]
    whole = np.array(parts, dtype=np.int64)
    for k, order in itertools.product(range(5), itertools.permutations(range(5))):
        kept = [i for i in order if i != k]
        assert whole[list(order)].sum() - whole[kept].sum() == parts[k]
    tenths = [0.1, 0.2, 0.3]
    assert sum(tenths) - sum(tenths[1:]) != tenths[0]


def test_noise_may_be_scaled_by_what_was_released_before():
    """Two steps: the second has another bound and scale after each outcome of the first."""
    mu, most = 0.8, 60
    first = [probabilities(stats.norm(scale=1 / mu), moved, most) for moved in (0, 1)]
    one, other = [], []
    for k in range(2 * most + 1):
        bound = 1 + k % 4
        noise = stats.norm(scale=bound / mu)
        one.append(first[0][k] * probabilities(noise, 0))
        other.append(first[1][k] * probabilities(noise, bound))
    for epsilon in EPSILONS:
        spent = delta(np.array(one), np.array(other), epsilon)
        assert spent <= delta_of(epsilon, math.sqrt(2) * mu) + ROUNDING
        assert spent > delta_of(epsilon, 1.2 * mu) or epsilon > 1


def test_a_distance_in_total_variation_adds_to_delta():
    """delta' = delta + (1 + exp(epsilon)) t, for all pairs on a grid that are t off."""
    ideal = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25]])
    moves = [np.array(m) / 100 for m in ((1, -1, 0), (-1, 0, 1), (0, 2, -2), (0, 0, 0))]
    for a, b in itertools.product(moves, repeat=2):
        t = max(np.abs(a).sum(), np.abs(b).sum()) / 2
        for epsilon in EPSILONS:
            exact = delta(ideal[0], ideal[1], epsilon)
            actual = delta(ideal[0] + a, ideal[1] + b, epsilon)
            assert actual <= exact + (1 + math.exp(epsilon)) * t + ROUNDING
