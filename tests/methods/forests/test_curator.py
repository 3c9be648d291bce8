"""The curator of the forest: a row moves the counts of the leaves by at most what is charged."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.inputs import Arrays
from dprepro.methods.forests.curator import ForestCurator, LeafLabels, UnlabelledTree
from dprepro.methods.forests.estimator import DPRandomForest
from dprepro.privacy.curator_base import listening
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import PermuteAndFlipMechanism
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT

DOMAIN = Domain((NumericFeature("x", 0, 1),), ("0", "1"))
QUERY = LeafLabels(0.5, 1.0, ZERO_OUT)


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
    assert largest / 2 == LeafLabels(1.0, 1.0, REPLACE_ONE).enforced
    one_row = np.zeros_like(before)
    one_row[np.unravel_index(before.argmax(), before.shape)] = 1
    assert np.abs(one_row).sum() / 2 == QUERY.enforced


@pytest.mark.parametrize(
    ("charged", "adjacency"), [(0.49, ZERO_OUT), (0.99, REPLACE_ONE), (1e300, ADD_REMOVE)]
)
def test_a_query_that_charges_less_than_it_enforces_cannot_be_built(charged, adjacency):
    with pytest.raises(SensitivityError, match="charge at least"):
        LeafLabels(charged, 1.0, adjacency)


def test_a_query_for_another_relation_is_refused():
    for made, query in (
        (curator(REPLACE_ONE), QUERY),
        (curator(), LeafLabels(1.0, 1.0, REPLACE_ONE)),
    ):
        with pytest.raises(SensitivityError, match="ask for the ledger's"):
            made.grow(forest(), query)


@pytest.mark.parametrize(
    ("adjacency", "charged", "scale"),
    [(ZERO_OUT, 0.5, 0.5), (ZERO_OUT, 1.0, 1.0), (REPLACE_ONE, 1.0, 1.0)],
)
def test_the_ledger_states_what_is_charged_and_spends_epsilon(adjacency, charged, scale):
    made = curator(adjacency, epsilon=2.0)
    release = made.grow(forest(epsilon=2.0), LeafLabels(charged, 1.0, adjacency))
    (entry,) = made._source.ledger.entries
    assert (entry.mechanism, entry.sensitivity, entry.uses) == ("permute-and-flip", charged, 1)
    assert release.scale == entry.scale == 2 * charged / 2.0 == scale
    assert made._source.ledger.spent_epsilon() == 2.0


def test_trees_keep_no_count():
    """And until they are given, only a curator may look at them."""
    grown, made = forest(epsilon=0.1), curator()
    made.grow(grown, QUERY)
    clean = DecisionTreeClassifier(max_depth=3).fit(*rows())
    for tree in grown.estimators_:
        assert set(vars(tree)) - set(vars(clean)) <= {"epsilon", "bounds", "classes", "accountant"}
    counted = clone(UnlabelledTree(3, bounds=([0.0], [1.0]), classes=[0, 1]))._fit(*rows())
    with pytest.raises(PrivateRowsError):
        counted.give_counts().open()
    assert not hasattr(counted, "_counts")


def test_labels_are_chosen_by_the_counts_of_all_leaves(monkeypatch):
    X, y = rows()
    given, choose = [], PermuteAndFlipMechanism.choose

    def spy(self, use, utilities, query):
        given.append(utilities)
        return choose(self, use, utilities, query)

    monkeypatch.setattr(PermuteAndFlipMechanism, "choose", spy)
    release = curator().grow(forest(), QUERY)
    counts = leaf_counts(X, y)
    filled = counts.sum(axis=1) > 0
    assert given[0].dtype == np.int64
    assert given[0].sum() == len(X)
    np.testing.assert_array_equal(given[0][given[0].sum(axis=1) > 0], counts[filled])
    assert len(given[0]) == release.value.size == 3 * 2**3


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
    assert set(release.value) <= {0, 1}
    found = [tree.tree_.value[tree.tree_.children_left == -1, 0, 1] for tree in grown.estimators_]
    np.testing.assert_array_equal(np.concatenate(found), release.value)
    with pytest.raises(TypeError, match="queries only"):
        made._follow(None)
