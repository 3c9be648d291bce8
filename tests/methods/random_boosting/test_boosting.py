"""The course of a fit: leaves from noisy sums, batches, and candidates that follow curvature."""

import numpy as np
import pytest

from dprepro.methods.random_boosting.candidates import Size
from dprepro.methods.random_boosting.curator import (
    UNIT,
    AddTrees,
    CurvatureHistogram,
    UseCandidates,
)
from dprepro.methods.random_boosting.estimator import Plan, boost, leaf_values
from dprepro.privacy.query import NoisyAnswer


def plan(trees=4, histograms=0, update="newton", additive=True, batch=1, rounds=0, every=False):
    size = Size(trees, histograms, 0, update, False)
    return Plan(size, additive, 2, 4, batch, rounds, every, 0.3, 1.0, 2.0)


class Stub:
    """A curator of answers that are all the same; it writes down what it is asked and told."""

    def __init__(self):
        self.public_generator = np.random.default_rng(0)
        self.asked, self.told = [], []

    def leaf_sums(self, query):
        self.asked.append(query)
        leaves = query.tree.leaves
        return NoisyAnswer(np.stack([np.full(leaves, -10.0), np.full(leaves, 9.0)]), 1.0)

    def histogram(self, query, n_bins):
        self.asked.append(query)
        return NoisyAnswer(np.append(100.0, np.zeros(n_bins - 1)), 1.0)

    def tell(self, instruction):
        self.told.append(instruction)


def run(settings, features=3):
    stub = Stub()
    candidates = [np.arange(4.0)] * features
    return stub, *boost(stub, candidates, settings)


def test_a_leaf_is_a_newton_step_within_bounds_and_0_without_curvature():
    found = leaf_values(np.array([-6.0, 100.0, -5.0]), np.array([5.0, 1.0, -1.0]), plan())
    assert found.tolist() == pytest.approx([0.3, -0.6, 0.0])


def test_an_averaging_leaf_is_a_share_and_a_half_where_nothing_is_known():
    found = leaf_values(
        np.array([2.0, -1.0, 9.0, 1.0]), np.array([8.0, 4.0, 4.0, 0.0]), plan(update="averaging")
    )
    assert found.tolist() == [0.25, 0.0, 1.0, 0.5]


def test_trees_of_a_batch_are_added_averaged_and_told_once():
    stub, trees, values = run(plan(trees=5, batch=2))
    told = [t for t in stub.told if isinstance(t, AddTrees)]
    assert [len(t.trees) for t in told] == [2, 2]  # nobody is told of the last
    assert (len(trees), len(values)) == (5, 5)
    for value, size in zip(values, (2, 2, 2, 2, 1), strict=True):
        wanted = np.rint(0.3 / size / UNIT) * UNIT  # 10 / (9 + 1) times the learning rate
        assert value.tolist() == [wanted] * len(value)


def test_an_additive_model_takes_features_in_turn():
    _, trees, _ = run(plan(trees=6))
    assert [tree.only_feature for tree in trees] == [0, 1, 2, 0, 1, 2]


def test_candidates_are_renewed_after_each_round_but_the_last():
    stub, _, _ = run(plan(trees=4, rounds=3, histograms=3))
    looks = [q.feature for q in stub.asked if isinstance(q, CurvatureHistogram)]
    moved = [t.feature for t in stub.told if isinstance(t, UseCandidates)][3:]
    assert (looks, moved) == ([0, 1, 2], [0, 1])


def test_all_features_are_looked_at_where_the_plan_says_so():
    stub, _, _ = run(plan(trees=4, rounds=2, histograms=6, every=True))
    looks = [q.feature for q in stub.asked if isinstance(q, CurvatureHistogram)]
    assert looks == [0, 1, 2, 0, 1, 2]
