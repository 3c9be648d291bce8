"""The private forest: what a leaf gives away, brute force, and what must be public."""

import math
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.data.encode import OneHotEncoder, one_hot_bounds
from dprepro.methods.diffprivlib_adapter import RandomForestClassifier
from dprepro.methods.forests.estimator import DPRandomForest
from dprepro.privacy.sensitivity import REPLACE_ONE

DOMAIN = Domain((NumericFeature("x", 0, 1),), ("0", "1"))
EPSILON = 1.0


TREES = 800


def share_of_ones(labels):
    """Return how often a leaf with these labels says 1; every tree of the forest gets them."""
    X = np.full((TREES * len(labels), 1), 0.5)
    forest = DPRandomForest(TREES, epsilon=EPSILON, max_depth=1, domain=DOMAIN, random_state=0)
    forest.fit(X, np.tile(labels, TREES))
    return np.mean(
        [tree.tree_.predict(X[:1].astype(np.float32))[0, 1] for tree in forest.estimators_]
    )


@pytest.mark.parametrize(
    ("labels", "gap"), [([1, 0, 0], 1), ([1, 0, 0, 0], 2), ([1, 1, 0, 0, 0, 0], 2)]
)
def test_a_leaf_is_chosen_by_permute_and_flip_with_the_budget_that_the_ledger_states(labels, gap):
    """P(minority) = exp(-epsilon gap) / 2: a row less moves it by e^epsilon, an exchange twice."""
    expected = math.exp(-EPSILON * gap) / 2
    error = 4 * math.sqrt(expected * (1 - expected) / TREES)
    assert share_of_ones(labels) == pytest.approx(expected, abs=error)


def test_the_ledger_doubles_under_replace_one():
    X, y = np.random.default_rng(0).random((60, 1)), np.tile([0, 1], 30)
    ledger = DPRandomForest(epsilon=0.7, domain=DOMAIN).fit(X, y).ledger_
    assert ledger.holds
    assert ledger.spent_epsilon() == pytest.approx(0.7)
    assert ledger.spent_epsilon(REPLACE_ONE) == pytest.approx(1.4)


def test_missing_values_are_refused_whatever_the_trees_of_scikit_learn_take():
    X, y = np.random.default_rng(0).random((60, 1)), np.tile([0, 1], 30)
    forest = DPRandomForest(3, domain=DOMAIN)
    assert not forest.__sklearn_tags__().input_tags.allow_nan
    missing = np.where(np.arange(60)[:, np.newaxis] == 7, np.nan, X)
    with pytest.raises(ValueError, match="contains NaN"):
        forest.fit(missing, y)
    forest.fit(X, y)
    for ask in (forest.predict, forest.predict_proba):
        with pytest.raises(ValueError, match="contains NaN"):
            ask(missing)


def test_splits_do_not_look_at_the_rows():
    X, y = np.random.default_rng(0).random((60, 1)), np.tile([0, 1], 30)
    forests = [
        DPRandomForest(3, domain=DOMAIN, random_state=5).fit(rows, y) for rows in (X, X / 100)
    ]
    for one, other in zip(forests[0].estimators_, forests[1].estimators_, strict=True):
        np.testing.assert_array_equal(one.tree_.threshold, other.tree_.threshold)
        np.testing.assert_array_equal(one.tree_.children_left, other.tree_.children_left)


def test_it_takes_bounds_from_the_domain_and_asks_for_one():
    domain = Domain((NumericFeature("x", -2, 3), CategoricalFeature("c", ("a", "b"))), ("0", "1"))
    lower, upper = one_hot_bounds(domain)
    assert lower.tolist() == [-2, 0, 0]
    assert upper.tolist() == [3, 1, 1]
    rows = np.array([[9.0, 0, 1], [-9.0, 1, 0]] * 20)
    example = pd.DataFrame({"x": [0.0], "c": ["a"]})
    assert rows.shape[1] == OneHotEncoder(domain).transform(example).shape[1]
    forest = DPRandomForest(2, domain=domain, random_state=0).fit(rows, np.tile([0, 1], 20))
    assert np.isin(forest.predict(rows), [0, 1]).all()
    with pytest.raises(ValueError, match="domain must be a Domain"):
        DPRandomForest().fit(rows, np.tile([0, 1], 20))


def leaf_labels(tree):
    leaves = tree.tree_.children_left == -1
    return tree.tree_.value[leaves, 0, 1]


SPREAD, ALIKE = np.random.default_rng(0).random((64, 1)), np.full((64, 1), 0.5)
"""Rows in many leaves, and rows that leave all leaves but one empty."""


@pytest.mark.parametrize("X", [SPREAD, ALIKE], ids=["spread", "alike"])
def test_labels_cannot_be_drawn_again_from_what_a_model_keeps(X):
    """Nor by whoever knows the state of NumPy's global generator."""
    y = np.tile([0, 1], 32)
    found = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        forest = DPRandomForest(1, epsilon=1e-9, max_depth=7, domain=DOMAIN).fit(X, y)
        found.append(forest.estimators_[0])
    assert (forest.random_state, found[0].random_state) == (None, None)
    assert not np.array_equal(leaf_labels(found[1]), leaf_labels(found[0]))


@pytest.mark.parametrize("X", [SPREAD, ALIKE], ids=["spread", "alike"])
def test_thresholds_do_not_tell_the_labels(X):
    """A generator that draws the same thresholds does not draw the same labels."""

    class Fixed(np.random.RandomState):
        def __init__(self, _):
            super().__init__(5)

    with mock.patch("dprepro.methods.forests.curator.np.random.RandomState", Fixed):
        found = [
            DPRandomForest(1, epsilon=1e-9, max_depth=7, domain=DOMAIN).fit(X, np.tile([0, 1], 32))
            for _ in range(2)
        ]
    one, other = (forest.estimators_[0] for forest in found)
    np.testing.assert_array_equal(one.tree_.threshold, other.tree_.threshold)
    assert not np.array_equal(leaf_labels(one), leaf_labels(other))


def test_a_seed_grows_the_trees_of_the_library_and_a_huge_budget_gives_their_labels():
    X, y = np.random.default_rng(0).random((60, 1)), np.tile([0, 1, 1], 20)
    settings = {"random_state": 5, "max_depth": 2, "epsilon": 1e3}
    ours = DPRandomForest(3, domain=DOMAIN, **settings).fit(X, y)
    theirs = RandomForestClassifier(3, bounds=(0, 1), classes=[0, 1], **settings).fit(X, y)
    parts = zip(ours.estimators_, theirs.estimators_, np.split(np.arange(60), 3), strict=True)
    for one, other, part in parts:
        np.testing.assert_array_equal(one.tree_.threshold, other.tree_.threshold)
        np.testing.assert_array_equal(one.tree_.children_left, other.tree_.children_left)
        margins = np.zeros(one.tree_.node_count)
        np.add.at(margins, one.tree_.apply(X[part].astype(np.float32)), 2 * y[part] - 1)
        decided = margins != 0  # others may get either label
        assert decided.sum() >= 2
        for tree in (one, other):
            np.testing.assert_array_equal(tree.tree_.value[decided, 0, 1], margins[decided] > 0)


def test_a_seeded_forest_repeats():
    X, y = np.random.default_rng(0).random((60, 1)), np.tile([0, 1], 30)
    one, other = (
        DPRandomForest(3, epsilon=1e-3, domain=DOMAIN, random_state=5).fit(X, y) for _ in range(2)
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
