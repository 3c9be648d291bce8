"""Trees: gains and routes as one would work them out leaf by leaf."""

from __future__ import annotations

import numpy as np

from dprepro.lazybb.literals import Literals
from dprepro.lazybb.topdown import LeafWeights, Tree, gini, split_gains
from dprepro.lazybb.weighing import Weighing
from tests.lazybb.lab import exact

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
    signs, weights = RNG.choice([-1.0, 1.0], 300), RNG.dirichlet(np.ones(300))
    by_label = np.column_stack([weights * (signs < 0), weights * (signs > 0)])
    alone = potential(signs, weights, np.zeros(300))
    expected = [alone - potential(signs, weights, X[:, j]) for j in range(6)]
    np.testing.assert_allclose(gains_of(LITERALS, by_label), expected, atol=1e-14)
    assert gini(np.array([0.0, 0.0])) == 0


def test_a_tree_routes_rows_by_its_splits() -> None:
    tree = Tree(np.array([0, 1]), np.array([2, 4]), np.array([-1, 1, -1]))
    expected = np.where(X[:, 2], np.where(X[:, 4], -1, 1), -1)
    np.testing.assert_array_equal(tree.outputs(LITERALS), expected)
    assert tree.columns == {2, 4}


def test_the_exact_learner_finds_a_tree_that_is_there() -> None:
    signs = np.where(X[:, 1], np.where(X[:, 3], 1.0, -1.0), -1.0)
    [tree], _ = exact(X, signs, Weighing(0.4, 1.0), 1, splits=2)
    np.testing.assert_array_equal(tree.outputs(LITERALS), signs)
    assert tree.columns == {1, 3}


def test_the_gains_and_weights_of_leaves_are_those_of_their_rows() -> None:
    signs, weights = RNG.choice([-1.0, 1.0], 300), RNG.dirichlet(np.ones(300))
    leaves, at = LeafWeights(LITERALS, signs * weights), np.zeros(300, dtype=int)
    for new, (leaf, column) in enumerate([(0, 3), (1, 0), (0, 5), (2, 1)], start=1):
        leaves.split(leaf, column)
        at[(at == leaf) & (X[:, column] == 1)] = new
        before = potential(signs, weights, at)
        for (k, j), gain in np.ndenumerate(leaves.gains()):
            after = np.where((at == k) & (X[:, j] == 1), 99, at)
            assert abs(gain - (before - potential(signs, weights, after))) < 1e-12
    by_label = [[weights[(at == k) & (signs == s)].sum() for s in (-1, 1)] for k in range(5)]
    np.testing.assert_allclose(leaves.weights(), by_label, atol=1e-14)


def test_each_split_of_the_exact_learner_is_the_best_of_all_leaves() -> None:
    signs = RNG.choice([-1.0, 1.0], 300)
    [tree], _ = exact(X, signs, Weighing(0.4, 1.0), 1, splits=4)
    leaves = LeafWeights(LITERALS, signs / 300)
    for leaf, column in zip(tree.leaves, tree.splits, strict=True):
        assert leaves.gains()[leaf, column] >= leaves.gains().max() - 1e-12
        leaves.split(leaf, column)
    np.testing.assert_array_equal(tree.labels, 2 * leaves.weights().argmax(axis=1) - 1)
