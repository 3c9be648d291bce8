"""One row more or less: brute force over small nodes stays within the stated sensitivities."""

import itertools

import numpy as np
import pytest

from dprepro.dpboost.sensitivity import GAIN, leaf_clip, leaf_sensitivity

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
    ridge = 0.1
    first = (3 * ridge + 2) / ((2 + ridge) * (1 + ridge))
    assert min(moves(score, ridge)) < -2.9 * first


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
    expected = np.where(position + 1 <= change, 1 / 1.1, 2 * 0.9**position)
    np.testing.assert_allclose(leaf_sensitivity(0.1, 0.1, position), expected)


def test_leaf_bounds_shrink_geometrically_from_one():
    np.testing.assert_allclose(leaf_clip(0.1, np.arange(3)), [1.0, 0.9, 0.81])
