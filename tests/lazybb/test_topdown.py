"""Trees: gains and routes as one would work them out leaf by leaf."""

from __future__ import annotations

import numpy as np

from dprepro.lazybb.literals import Literals
from dprepro.lazybb.topdown import TopDownLearner, Tree, gini, split_gains
from dprepro.privacy.weighted import WeightedExponential, WeightedNoisyMax

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (300, 6))
LITERALS = Literals(X)
EXACT = (WeightedExponential(), WeightedNoisyMax())


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
    tree = TopDownLearner(2, *EXACT).fit(0, LITERALS, signs / 300)
    np.testing.assert_array_equal(tree.outputs(LITERALS), signs)
    assert tree.columns == {1, 3}


def test_each_split_is_the_best_of_all_leaves() -> None:
    signs, weights = RNG.choice([-1.0, 1.0], 300), RNG.dirichlet(np.ones(300))
    tree = TopDownLearner(4, *EXACT).fit(0, LITERALS, signs * weights)
    leaf = np.zeros(300, dtype=int)
    for k in range(4):
        before = potential(signs, weights, leaf)
        gains = {}
        for candidate in range(k + 1):
            for j in range(6):
                after = np.where((leaf == candidate) & (X[:, j] == 1), k + 1, leaf)
                gains[candidate, j] = before - potential(signs, weights, after)
        chosen = int(tree.leaves[k]), int(tree.splits[k])
        assert gains[chosen] >= max(gains.values()) - 1e-12
        leaf[(leaf == chosen[0]) & (X[:, chosen[1]] == 1)] = k + 1
    for number, label in enumerate(tree.labels):
        votes = np.sum((signs * weights)[leaf == number])
        assert label == (1 if votes > 0 else -1)
