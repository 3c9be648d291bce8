"""The estimator: it learns, keeps to its budget, and names what its options read."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.random_boosting.candidates import (
    UPDATES,
    Size,
    noise_multiplier,
    part_of_budget,
)
from dprepro.methods.random_boosting.curator import (
    DELTA_OF_ROWS,
    QUANTILES,
    RANKS,
    UNIT,
    UNPAID_HISTOGRAMS,
    AddTrees,
    CurvatureHistogram,
    UseCandidates,
)
from dprepro.methods.random_boosting.estimator import (
    DPRandomBoostingClassifier,
    Plan,
    boost,
    leaf_values,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.query import NoisyAnswer

DOMAIN = Domain(
    (NumericFeature("x", 0, 1000), NumericFeature("z", 0, 1), CategoricalFeature("c", ("a", "b"))),
    ("0", "1"),
)
VARIANTS = [
    {},
    {"additive": False, "candidates": "uniform", "batches": None, "composition": "rdp"},
    {"update": "gbm", "full_cycles": True, "separate": True, "batches": None, "n_trees": 10},
    {"update": "averaging", "additive": False, "candidates": "quantile"},
    {"histograms": "all", "from_ranks": True},
]


def table(n=2000):
    """Return rows whose label follows from x, 0 or far below its upper bound, and from c."""
    rng = np.random.default_rng(0)
    x = rng.random(n) * (rng.random(n) > 0.2)
    X = pd.DataFrame({"x": x, "z": rng.random(n), "c": rng.choice(["a", "b"], n)})
    odds = 4 * (X["x"] > 0.5) + 2 * (X["c"] == "b") - 3
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int).to_numpy()


def fitted(**params):
    settings = {"n_trees": 40, "epsilon": 8.0, "delta": 1e-5, "random_state": 0, "domain": DOMAIN}
    return DPRandomBoostingClassifier(**{**settings, **params}).fit(*table())


@pytest.mark.parametrize("params", VARIANTS)
def test_it_learns_and_spends_what_is_stated(params):
    X, y = table()
    model = fitted(**params)
    assert roc_auc_score(y, model.decision_function(X)) > 0.6
    spent = model.ledger_.spent_epsilon()
    assert spent <= 8.0 + 1e-6
    assert spent > (7.0 if params.get("composition") == "rdp" else 8.0 - 1e-4)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert set(model.predict(X)) <= {0, 1}


def test_adaptive_candidates_find_what_uniform_ones_cannot():
    X, y = table()
    auc = {
        kind: roc_auc_score(
            y, fitted(candidates=kind, epsilon=20.0, n_trees=60).decision_function(X)
        )
        for kind in ("uniform", "adaptive_hessian")
    }
    assert auc["adaptive_hessian"] > auc["uniform"] + 0.1


def test_reads_and_gaps_are_listed_and_by_default_there_are_none():
    assert fitted(random_state=None).ledger_.holds
    read = fitted(
        random_state=None, candidates="quantile", from_ranks=True, delta_from_rows=True
    ).ledger_
    assert read.unaccounted == [DELTA_OF_ROWS, RANKS, QUANTILES]
    assert read.delta == pytest.approx(1 / 2000)
    unpaid = fitted(random_state=None, histograms="all, one paid", n_trees=30).ledger_
    assert unpaid.gaps == [UNPAID_HISTOGRAMS]
    assert unpaid.spent_epsilon() > 8.1


@pytest.mark.parametrize(
    ("params", "uses"),
    [
        ({"n_trees": 6}, [6, 6]),
        ({"additive": False}, [20, 15]),
        ({"histograms": "all", "n_trees": 10}, [10, 30]),
        ({"full_cycles": True, "candidates": "uniform", "separate": True}, [60, 60]),
    ],
)
def test_the_number_of_answers_follows_from_the_plan(params, uses):
    ledger = fitted(**{"n_trees": 20, **params}).ledger_
    assert [entry.uses for entry in ledger.entries] == uses


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_candidates": 128}, "n_candidates must be an integer from 2 to 127"),
        ({"max_depth": 9}, "max_depth must be an integer from 1 to 8"),
        ({"update": "xgboost"}, "update must be one of 'newton'"),
        ({"batches": 0}, "batches must be an integer of at least 1"),
        ({"histograms": "some"}, "histograms must be one of"),
        ({"full_cycles": True, "additive": False}, "full_cycles is for additive models"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1"),
    ],
)
def test_parameters_out_of_range_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        fitted(**params)


BUDGET = PrivacyBudget(0.5, 1e-5)


def size(update="newton", separate=False, histograms=50, unpaid=0):
    return Size(100, histograms, unpaid, update, separate)


def test_answers_are_trees_once_or_twice_and_histograms_but_for_unpaid_ones():
    assert size().answers == 150
    assert size(separate=True).answers == 250
    assert size(histograms=500, unpaid=450).answers == 150


@pytest.mark.parametrize("update", UPDATES)
def test_both_parts_of_a_row_are_covered_alone_and_exchanged(update):
    """Brute force over what two rows can add, in one leaf or in two."""
    curvatures = [0.0, 0.25] if update == "newton" else [1.0]
    gradients = [0.0, 1.0] if update == "averaging" else [-1.0, 0.0, 1.0]
    parts = [(g, h) for g in gradients for h in curvatures]
    both = size(update).both
    assert max(math.hypot(*part) for part in parts) <= both.stated
    for one in parts:
        for other in parts:
            same_leaf = math.dist(one, other)
            two_leaves = math.hypot(*one, *other)
            assert max(same_leaf, two_leaves) <= both.replace_one + 1e-12


def test_gdp_spends_all_and_renyi_less():
    exact = noise_multiplier(100, BUDGET, "gdp")
    assert epsilon_of(10 / exact, BUDGET.delta) == pytest.approx(0.5, rel=1e-6)
    theirs = noise_multiplier(100, BUDGET, "rdp")
    assert exact < theirs < 1.5 * exact


def test_parts_of_the_budget_add_up_by_squares():
    part = part_of_budget(BUDGET, 100, 400)
    whole = 1 / noise_multiplier(1, BUDGET, "gdp")
    assert part.epsilon == pytest.approx(epsilon_of(whole / 2, BUDGET.delta))


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
