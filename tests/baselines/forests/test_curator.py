"""The curator of the forest: a row moves the counts of the leaves by at most what is charged."""

import numpy as np
import pytest

from dprepro.baselines.forests import DPRandomForest
from dprepro.baselines.forests.curator import ForestCurator, LeafLabels
from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.inputs import Arrays
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private import Private
from dprepro.privacy.release import BudgetError, SensitivityError, listening
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT

DOMAIN = Domain((NumericFeature("x", 0, 1),), ("0", "1"))
QUERY = LeafLabels(1.0, 1.0, ZERO_OUT)


def rows(n=60):
    return np.random.default_rng(0).random((n, 1)), np.tile([0, 1], n // 2)


def forest(**settings):
    grown = DPRandomForest(3, max_depth=3, domain=DOMAIN, random_state=5, **settings)
    grown.bounds, grown.classes = (np.zeros(1), np.ones(1)), np.arange(2)
    return grown


def curator(adjacency=ZERO_OUT, epsilon=1.0):
    return ForestCurator(Private(Arrays(*rows())), Ledger(epsilon, 0.0, adjacency), 5, ())


def leaf_counts(X, y):
    """Return the labels in every leaf of every tree, float64 (leaves, 2), the splits being fixed.

    Trees get rows by their position, as in the library.
    """
    trees = forest().fit(*rows()).estimators_
    parts = np.array_split(np.arange(len(X)), len(trees))
    counts = []
    for tree, part in zip(trees, parts, strict=True):
        leaves = tree.tree_.apply(X[part].astype(np.float32))
        found = np.zeros((tree.tree_.node_count, 2))
        np.add.at(found, (leaves, y[part]), 1)
        counts.append(found)
    return np.concatenate(counts)


def test_an_exchange_of_a_row_moves_two_counts_and_its_loss_one():
    X, y = rows()
    before = leaf_counts(X, y)
    largest = 0.0
    for row in (0, 17, 59):
        for x, label in ((0.0, 0), (1.0, 1), (X[row, 0], 1 - y[row])):
            X_other, y_other = X.copy(), y.copy()
            X_other[row], y_other[row] = x, label
            largest = max(largest, np.abs(leaf_counts(X_other, y_other) - before).sum())
    assert largest == LeafLabels(2.0, 1.0, REPLACE_ONE).enforced
    one_row = np.zeros_like(before)
    one_row[np.unravel_index(before.argmax(), before.shape)] = 1
    assert np.abs(one_row).sum() == QUERY.enforced


@pytest.mark.parametrize(
    ("charged", "adjacency"), [(0.99, ZERO_OUT), (1.99, REPLACE_ONE), (1e300, ADD_REMOVE)]
)
def test_a_query_that_charges_less_than_it_enforces_cannot_be_built(charged, adjacency):
    with pytest.raises(SensitivityError, match="charge at least"):
        LeafLabels(charged, 1.0, adjacency)


def test_a_query_for_another_relation_or_charge_than_the_librarys_is_refused():
    for query in (LeafLabels(2.0, 1.0, REPLACE_ONE), LeafLabels(2.0, 1.0, ZERO_OUT)):
        with pytest.raises(SensitivityError, match="the library chooses labels"):
            curator().grow(forest(), query)


def test_a_forest_that_would_read_bounds_or_labels_is_refused():
    for name in ("bounds", "classes"):
        reading = forest()
        setattr(reading, name, None)
        with pytest.raises(SensitivityError, match="would read them from the rows"):
            curator().grow(reading, QUERY)


def test_the_rows_are_handed_over_once():
    made = curator()
    made.grow(forest(), QUERY)
    with pytest.raises(BudgetError, match="one use"):
        made.grow(forest(), QUERY)


def test_a_library_that_spends_more_than_the_ledger_states_does_not_get_the_rows():
    rich = forest(epsilon=1.5)
    with pytest.raises(BudgetError, match="divide the budget"):
        curator(epsilon=1.0).grow(rich, QUERY)
    assert not hasattr(rich, "estimators_")


def test_listeners_hear_the_labels_of_all_leaves():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append((query, release))

    with listening(Listener()):
        made = curator()
    grown = forest()
    release = made.grow(grown, QUERY)
    assert heard == [(QUERY, release)]
    assert release.value.size == sum(tree.tree_.n_leaves for tree in grown.estimators_)
    assert set(release.value) <= {0.0, 1.0}
    with pytest.raises(TypeError, match="queries only"):
        made._follow(None)
