"""Trees: gains and routes as one would work them out leaf by leaf."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dprepro.methods.lazybb.hypotheses import LeafWeights, Tree, gini, split_gains
from dprepro.methods.lazybb.queries import Literals
from dprepro.methods.lazybb.sensitivity import GAIN_ROUNDING, TOTAL
from dprepro.methods.lazybb.weights import Weighing
from tests.methods.lazybb.lab import exact

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (300, 6))
LITERALS = Literals(X)


def gains_of(literals: Literals, weights: np.ndarray) -> np.ndarray:
    return split_gains(weights.sum(axis=0), literals.sums(weights))


def potential(signs: np.ndarray, weights: np.ndarray, leaf: np.ndarray) -> float:
    """Sum of w(leaf) G(q(leaf)) over the leaves."""
    total = 0.0
    for number in np.unique(leaf):
        w = weights[leaf == number].sum()
        q = weights[(leaf == number) & (signs > 0)].sum() / w
        total += w * 4 * q * (1 - q)
    return total


def test_gains_are_differences_of_the_potential() -> None:
    signs, weights = RNG.choice([-1, 1], 300), RNG.integers(0, TOTAL // 300, 300)
    by_label = np.column_stack([weights * (signs < 0), weights * (signs > 0)])
    alone = potential(signs, weights, np.zeros(300))
    expected = [alone - potential(signs, weights, X[:, j]) for j in range(6)]
    assert np.abs(gains_of(LITERALS, by_label) - expected).max() < 1e-14 * TOTAL
    assert gini(np.array([0, 0])) == 0


def exact_gini(a: int, b: int) -> Fraction:
    return Fraction(4 * a * b, a + b) if a + b else Fraction(0)


def test_gains_are_off_by_no_more_than_is_charged() -> None:
    """Against rational numbers. Two gains move apart by four errors: the charge is half of that."""
    rng, worst = np.random.default_rng(0), Fraction(0)
    for _ in range(4000):
        parts = rng.dirichlet(np.full(4, rng.choice([0.05, 0.5, 5.0])))
        (a0, b0), (a1, b1) = (np.floor(parts * TOTAL)).astype(np.int64).reshape(2, 2).tolist()
        exact = exact_gini(a0 + a1, b0 + b1) - exact_gini(a0, b0) - exact_gini(a1, b1)
        found = split_gains(np.array([a0 + a1, b0 + b1]), np.array([[a1, b1]]))
        worst = max(worst, abs(int(found[0]) - exact))
    assert 100 < worst <= GAIN_ROUNDING / 2


def test_gini_is_rounded_as_any_machine_rounds_it() -> None:
    """To the bit what Python's doubles give one by one, by IEEE 754."""
    weights = RNG.integers(0, TOTAL // 2, (1000, 2)) >> RNG.integers(0, 60, (1000, 2))
    expected = [int(4 * float(a) * float(b) / (a + b)) if a + b else 0 for a, b in weights.tolist()]
    assert gini(weights).tolist() == expected


def test_whole_weights_of_leaves_are_exact() -> None:
    """Of more bits than a double has, and from any order of rows."""
    signs, weights = RNG.choice([-1, 1], 300), RNG.integers(0, TOTAL // 300, 300)
    order = RNG.permutation(300)
    leaves = LeafWeights(LITERALS, signs * weights)
    others = LeafWeights(Literals(X[order]), (signs * weights)[order])
    for leaf, column in [(0, 3), (1, 0), (0, 5)]:
        leaves.split(leaf, column)
        others.split(leaf, column)
    assert leaves.weights().dtype == leaves.gains().dtype == np.int64
    assert leaves.weights().sum() == weights.sum()
    np.testing.assert_array_equal(leaves.weights(), others.weights())
    np.testing.assert_array_equal(leaves.gains(), others.gains())


def test_a_tree_routes_rows_by_its_splits() -> None:
    tree = Tree(np.array([0, 1]), np.array([2, 4]), np.array([-1, 1, -1]))
    expected = np.where(X[:, 2], np.where(X[:, 4], -1, 1), -1)
    np.testing.assert_array_equal(tree.outputs(LITERALS), expected)
    assert tree.columns == {2, 4}


def test_the_exact_learner_finds_a_tree_that_is_there() -> None:
    signs = np.where(X[:, 1], np.where(X[:, 3], 1, -1), -1)
    [tree], _ = exact(X, signs, Weighing(0.4, 1.0), 1, splits=2)
    np.testing.assert_array_equal(tree.outputs(LITERALS), signs)
    assert tree.columns == {1, 3}


def test_the_gains_and_weights_of_leaves_are_those_of_their_rows() -> None:
    signs, weights = RNG.choice([-1, 1], 300), RNG.integers(0, TOTAL // 300, 300)
    leaves, at = LeafWeights(LITERALS, signs * weights), np.zeros(300, dtype=int)
    for new, (leaf, column) in enumerate([(0, 3), (1, 0), (0, 5), (2, 1)], start=1):
        leaves.split(leaf, column)
        at[(at == leaf) & (X[:, column] == 1)] = new
        before = potential(signs, weights, at)
        for (k, j), gain in np.ndenumerate(leaves.gains()):
            after = np.where((at == k) & (X[:, j] == 1), 99, at)
            assert abs(gain - (before - potential(signs, weights, after))) < 1e-12 * TOTAL
    by_label = [[weights[(at == k) & (signs == s)].sum() for s in (-1, 1)] for k in range(5)]
    np.testing.assert_array_equal(leaves.weights(), by_label)


def test_each_split_of_the_exact_learner_is_the_best_of_all_leaves() -> None:
    signs = RNG.choice([-1, 1], 300)
    [tree], _ = exact(X, signs, Weighing(0.4, 1.0), 1, splits=4)
    leaves = LeafWeights(LITERALS, signs * (TOTAL // 300))
    for leaf, column in zip(tree.leaves, tree.splits, strict=True):
        assert leaves.gains()[leaf, column] >= leaves.gains().max()
        leaves.split(leaf, column)
    np.testing.assert_array_equal(tree.labels, 2 * leaves.weights().argmax(axis=1) - 1)
