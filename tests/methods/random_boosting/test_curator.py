"""The curator of random boosting: exact sums, noise for all that a row moves, listed reads."""

import math

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.random_boosting.candidates import UPDATES, Size
from dprepro.methods.random_boosting.curator import (
    DELTA_OF_ROWS,
    QUANTILES,
    RANKS,
    UNIT,
    UNPAID_HISTOGRAMS,
    AddTrees,
    CurvatureHistogram,
    ExactRows,
    LeafSums,
    RandomBoostingCurator,
    UseCandidates,
    delta_of_rows,
)
from dprepro.methods.random_boosting.trees import draw_tree
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE

DOMAIN = Domain(
    (NumericFeature("x", 0, 4), CategoricalFeature("c", ("a", "b"), missing=True)), ("0", "1")
)
X = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0, 0.5], "c": ["a", "b", None, "a", "b", "a"]})
Y = np.array([0, 1, 0, 1, 1, 0], dtype=np.float32)
CANDIDATES = [np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0])]
PARTS = ("gradient", "curvature")
BOTH = math.hypot(1, 0.25)


def tree(seed=0):
    return draw_tree(np.random.default_rng(seed), CANDIDATES, (0, 1), 3)


def exact(update="newton", X=X, y=Y):
    rows = ExactRows(Rows(X, y), DOMAIN, update)
    for feature, candidates in enumerate(CANDIDATES):
        rows.use(feature, candidates)
    return rows


def curator(epsilon=20.0, size=None, gaps=(), seed=0):
    ledger = Ledger(epsilon, 1e-5, ADD_REMOVE, gaps=list(gaps))
    size = size or Size(2, 1, 0, "newton", False)
    made = RandomBoostingCurator(Private(Rows(X, Y)), DOMAIN, size, "gdp", ledger, seed)
    for feature, candidates in enumerate(CANDIDATES):
        made.tell(UseCandidates(feature, candidates))
    return made


def sums_of(asked, parts=PARTS, update="newton", charged=BOTH):
    return LeafSums(charged, 1.0, asked, update, parts)


@pytest.mark.parametrize("update", UPDATES)
def test_a_row_more_or_less_moves_the_sums_by_no_more_than_the_query_enforces(update):
    """Add/remove brute force, at scores of 0 and after a tree that moved them far."""
    asked = tree()
    enforced = LeafSums(9.0, 1.0, asked, update, PARTS).enforced
    for far in (0.0, 30.0):
        for left in range(len(Y)):
            kept = np.arange(len(Y)) != left
            answers = []
            for rows in (exact(update), exact(update, X[kept], Y[kept])):
                rows.leaf_sums(asked, PARTS)
                rows.add([asked], [np.linspace(-far, far, asked.leaves)])
                answers.append(rows.leaf_sums(asked, PARTS))
            moved = np.linalg.norm((answers[0] - answers[1]) * UNIT)
            assert moved <= enforced


def test_sums_are_those_of_the_log_loss_in_whole_units():
    rows, asked = exact(), tree()
    before = rows.leaf_sums(asked, PARTS) * UNIT
    places = asked.places_of(np.stack([X["x"], [0, 1, np.nan, 0, 1, 0]]))
    for leaf in range(asked.leaves):
        inside = Y[places == leaf]
        np.testing.assert_allclose(before[:, leaf], [np.sum(0.5 - inside), len(inside) / 4])
    values = np.full(asked.leaves, 0.7)
    rows.add([asked], [values])
    p = 1 / (1 + math.exp(-np.rint(0.7 / UNIT) * UNIT))
    after = rows.leaf_sums(asked, PARTS).sum(axis=1) * UNIT
    np.testing.assert_allclose(after, [np.sum(p - Y), 6 * p * (1 - p)], atol=6 * UNIT)


def test_trees_are_added_by_the_candidates_of_the_time_when_they_were_asked_about():
    rows, asked = exact(), tree(1)
    first = rows.leaf_sums(asked, PARTS)
    rows.use(0, np.array([3.9]))
    rows.add([asked], [np.zeros(asked.leaves)])
    rows.use(0, CANDIDATES[0])
    np.testing.assert_array_equal(rows.leaf_sums(asked, PARTS), first)


def test_an_answer_is_the_sum_and_noise_of_what_is_charged():
    made, asked = curator(), tree()
    noisy = made.leaf_sums(sums_of(asked))
    np.testing.assert_allclose(noisy.value, exact().leaf_sums(asked, PARTS) * UNIT, atol=4)
    assert noisy.scale == pytest.approx(made._multiplier * math.hypot(1, 0.25))
    held = made.histogram(CurvatureHistogram(0.25, 1.0, 0, "newton"), 5)
    np.testing.assert_allclose(held.value, [0.25, 0.5, 0.25, 0.25, 0.25], atol=1.5)
    made.tell(AddTrees((asked,), (np.zeros(asked.leaves),)))


def test_what_charges_less_than_a_row_moves_cannot_be_asked():
    with pytest.raises(SensitivityError, match="charge at least"):
        sums_of(tree(), charged=1.0)
    with pytest.raises(SensitivityError, match="charge at least"):
        CurvatureHistogram(0.25, 1.0, 0, "gbm")


def test_no_more_is_answered_than_the_ledger_has():
    made = curator()
    for seed in range(2):
        made.leaf_sums(sums_of(tree(seed)))
    with pytest.raises(BudgetError, match="3 uses where the ledger has 2"):
        made.leaf_sums(sums_of(tree(2)))


def test_entries_add_up_to_the_budget_and_unpaid_histograms_are_a_gap():
    assert curator(1.0)._source.ledger.spent_epsilon() == pytest.approx(1.0, abs=1e-6)
    separate = curator(1.0, Size(2, 1, 0, "newton", True))._source.ledger
    assert [entry.sensitivity for entry in separate.entries] == [1.0, 0.25, 0.25]
    assert separate.spent_epsilon() == pytest.approx(1.0, abs=1e-6)
    unpaid = Size(2, 10, 9, "newton", False)
    with pytest.raises(SensitivityError, match="has to list the gap"):
        curator(1.0, unpaid)
    assert curator(1.0, unpaid, gaps=[UNPAID_HISTOGRAMS])._source.ledger.spent_epsilon() > 1.5


def test_quantiles_ranks_and_the_number_of_rows_are_listed():
    made = curator(seed=None)
    made.ranks()
    made.quantiles(4)
    assert made._source.ledger.unaccounted == [RANKS, QUANTILES]
    ledger = Ledger(1.0, 1e-6, ADD_REMOVE)
    delta_of_rows(Private(Rows(X, Y)), ledger)
    assert (ledger.delta, ledger.unaccounted) == (1 / 6, [DELTA_OF_ROWS])


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [("x", [np.nan] * 6, "'x' has missing values"), ("c", ["z"] * 6, "'c' holds a category")],
)
def test_values_that_the_domain_rules_out_are_refused(column, values, message):
    with pytest.raises(ValueError, match=message):
        exact(X=X.assign(**{column: values}))
