"""The curator: parts of rows are bounded and weighted, each tree is answered once, noise counts."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.s_bdt.curator import (
    HALVED,
    ExactSums,
    LeafSums,
    Noise,
    SBDTCurator,
    Step,
    TargetSum,
    Weights,
)
from dprepro.methods.s_bdt.losses import UNIT, LogLoss, SquaredLoss
from dprepro.methods.s_bdt.trees import Cells
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ZERO_OUT

CELLS = [Cells.of(NumericFeature("x", 0, 1), 2, None)]
BUDGET = PrivacyBudget(1.0, 1e-6)
WHOLE = Weights.of(0.3, 0.1, 0.1, halved=False)
LEAF_OF = np.array([0, 0, 0, 1, 1])
EVERYONE = np.ones(4, dtype=bool)


def curator(seed=0, targets=(0.0, 1.0, 1.0, 0.0), target=None):
    rows = Rows(pd.DataFrame({"x": [0.1, 0.2, 0.7, 0.8]}), np.array(targets))
    loss = LogLoss() if target is None else SquaredLoss()
    return SBDTCurator(Private(rows), CELLS, loss, target, Ledger(*BUDGET, ZERO_OUT), seed, ())


def noise(multiplier=None, trees=2, sampling=1.0, initial=0.0):
    enough = math.sqrt(trees) / mu_of(*BUDGET)
    return Noise(multiplier or enough, sampling, trees, BUDGET, initial)


def query(tree=0, weights=WHOLE):
    return LeafSums(weights.norm, 1.0, tree, 0, LEAF_OF, 2, weights)


def test_weights_give_a_part_the_norm_1_and_more_where_noise_is_halved():
    assert WHOLE.norm == pytest.approx(1)
    assert Weights.of(0.3, 0.1, 0.1, halved=True).norm == pytest.approx(math.sqrt(1.3))
    # Noise of 1 in the weighted sums is 0.1 / sqrt(0.1) in the curvatures, or half of it.
    assert 1 / WHOLE.curvature == pytest.approx(0.1 / math.sqrt(0.1))
    assert 1 / Weights.of(0.3, 0.1, 0.1, halved=True).curvature == pytest.approx(
        0.05 / math.sqrt(0.1)
    )


def test_sums_are_those_of_clipped_parts_in_each_leaf():
    exact = ExactSums([np.array([0, 1, 3, 4])], np.array([0, 1, 1, 0]) << 24, LogLoss())
    sums = exact.leaf_sums(query(), EVERYONE) * UNIT
    # Residuals of -1/2 and 1/2 are clipped to 0.3, curvatures of 1/4 to 0.1.
    np.testing.assert_allclose(sums, [[0, 0], [0.2, 0.2]], atol=1e-6)
    some = exact.leaf_sums(query(), np.array([True, False, True, False])) * UNIT
    np.testing.assert_allclose(some, [[-0.3, 0.3], [0.1, 0.1]], atol=1e-6)


def test_a_row_moves_no_sum_by_more_than_is_enforced():
    rng = np.random.default_rng(1)
    for _ in range(50):
        targets = rng.integers(0, 2, 4) << 24
        exact = ExactSums([rng.integers(0, 5, 4)], targets, LogLoss())
        exact.add(Step(0, rng.integers(-(2**27), 2**27, 5)))
        without = EVERYONE.copy()
        without[2] = False
        moved = exact.leaf_sums(query(), EVERYONE) - exact.leaf_sums(query(), without)
        weighted = moved * UNIT * np.array([[WHOLE.residual], [WHOLE.curvature]])
        assert np.linalg.norm(weighted) <= query().enforced <= 1 + 1e-12


def test_scores_follow_the_steps_of_a_feature_and_of_all_rows():
    exact = ExactSums([np.array([0, 3])], np.zeros(2, np.int64), SquaredLoss())
    exact.add(Step(None, np.array([1 << 20])))
    exact.add(Step(0, np.array([0, 0, 0, 1 << 22, 0])))
    weights = Weights.of(1.0, 1.0, 0.5, halved=False)
    sums = exact.leaf_sums(LeafSums(1.0, 1.0, 0, 0, LEAF_OF, 2, weights), np.ones(2, dtype=bool))
    assert sums[0].tolist() == [-(1 << 20), -(1 << 20) - (1 << 22)]
    assert sums[1].tolist() == [1 << 24, 1 << 24]


def test_the_ledger_has_the_trees_and_the_first_score():
    made = curator(targets=(0.0, 5.0, 10.0, 10.0), target=(0.0, 10.0))
    made.enter(noise(40.0, sampling=0.5, initial=0.1), WHOLE, 0.5, halved=False)
    initial, trees = made._source.ledger.entries
    assert (initial.mechanism, initial.scale, initial.sensitivity) == ("laplace", 5.0, 0.5)
    assert (trees.sampling, trees.uses) == (0.5, 2)
    assert (trees.scale, trees.sensitivity) == (pytest.approx(40), pytest.approx(1))


def test_each_tree_is_answered_once():
    made = curator()
    made.enter(noise(), WHOLE, 0.5, halved=False)
    assert made.leaf_sums(query()).value.shape == (2, 2)
    with pytest.raises(BudgetError, match="answered before"):
        made.leaf_sums(query())
    with pytest.raises(BudgetError, match="is not in the ledger"):
        made.leaf_sums(query(2))


def test_noise_has_the_stated_scale():
    made = curator()
    made.enter(noise(trees=400), WHOLE, 0.5, halved=False)
    answers = [made.leaf_sums(query(tree)) for tree in range(400)]
    values = np.array([answer.value for answer in answers])
    scale = answers[0].scale
    assert scale == pytest.approx(20 / mu_of(*BUDGET))
    deviations = values.std(axis=(0, 2))
    np.testing.assert_allclose(deviations, scale, rtol=0.12)


def test_a_sample_holds_its_share_of_the_rows():
    made = curator()
    sampled = made._source.sampler.sample(20_000, 0.1)
    assert sampled.mean() == pytest.approx(0.1, abs=0.01)


def test_the_mean_is_of_clipped_targets():
    made = curator(targets=(0.0, 5.0, 10.0, 10.0), target=(0.0, 10.0))
    exact = ExactSums([], np.array([-1, 0, 1, 1]) << 24, SquaredLoss())
    assert exact.target_sum(TargetSum(0.5, 1.0, 0.5)).tolist() == [1 << 23]
    made.enter(noise(100.0, initial=0.2), WHOLE, 0.5, halved=False)
    release = made.target_mean(TargetSum(0.5, 1.0, 0.5))
    assert release.scale == pytest.approx(0.5 / 0.2 / 4)
    with pytest.raises(BudgetError):
        made.target_mean(TargetSum(0.5, 1.0, 0.5))


def test_too_little_noise_is_refused_unless_it_is_halved_and_named():
    with pytest.raises(BudgetError, match="spend more than it states"):
        curator().enter(noise(1.0), WHOLE, 0.5, halved=False)
    halved = Weights.of(0.3, 0.1, 0.5, halved=True)
    made = curator()
    made.enter(noise(), halved, 0.5, halved=True)
    assert made._source.ledger.gaps == [HALVED]
    assert made._source.ledger.spent_epsilon() > 1.4
    made = curator()
    made.enter(noise(40.0), halved, 0.5, halved=True)
    assert made._source.ledger.gaps == []


def test_a_query_that_charges_less_than_a_part_is_refused():
    with pytest.raises(SensitivityError, match="charge at least"):
        LeafSums(0.9, 1.0, 0, 0, LEAF_OF, 2, WHOLE)
    with pytest.raises(SensitivityError, match="charge at least"):
        TargetSum(0.4, 1.0, 0.5)
