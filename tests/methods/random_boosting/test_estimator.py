"""The estimator: it learns, keeps to its budget, and names what its options read."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.random_boosting.curator import (
    DELTA_OF_ROWS,
    QUANTILES,
    RANKS,
    UNPAID_HISTOGRAMS,
)
from dprepro.methods.random_boosting.estimator import DPRandomBoostingClassifier

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
