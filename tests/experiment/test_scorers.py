"""scikit-learn's scorers as metrics: every name gives what scikit-learn gives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.naive_bayes import GaussianNB

from dprepro.experiment.metrics import (
    METRICS,
    is_error,
    is_scorer,
    recorded_name,
    score,
    scorer_names,
)

SAMPLES = {
    "binary": (load_breast_cancer, LogisticRegression(max_iter=50)),
    "multiclass": (load_iris, GaussianNB()),  # without scores: see `Outputs.ranking`
    "regression": (load_diabetes, LinearRegression()),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", list(SAMPLES))
def test_each_scorer_gives_its_own_value_and_errors_are_positive(task):
    load, model = SAMPLES[task]
    X, y = load(return_X_y=True)
    X, y = X[::3, :4], y[::3]
    model.fit(X, y)
    names = scorer_names(task)
    found = score(model, X, y, task, len(np.unique(y)), names)
    assert set(found.values) >= set(names)
    assert found.absent == {}
    for name in names:
        original = f"neg_{name}" if f"neg_{name}" in get_scorer_names() else name
        expected = get_scorer(original)(model, X, y) * (-1 if is_error(name) else 1)
        assert found.values[name] == pytest.approx(expected, rel=1e-12), name
        assert not is_error(name) or found.values[name] >= 0


def test_scorers_go_with_their_kind_of_task():
    assert {"f1", "balanced_accuracy", "matthews_corrcoef", "roc_auc_ovr"} <= {
        *scorer_names("binary")
    }
    assert "f1" not in scorer_names("multiclass")
    assert {"f1_macro", "roc_auc_ovr"} <= {*scorer_names("multiclass")}
    assert {"explained_variance", "max_error", "median_absolute_error"} <= {
        *scorer_names("regression")
    }
    assert not {*scorer_names("regression")} & {*scorer_names("binary")}
    every = {name for task in METRICS for name in scorer_names(task)}
    assert not {"adjusted_rand_score", "v_measure_score", "f1_samples"} & every


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("roc_auc", "auc"), ("neg_root_mean_squared_error", "rmse"), ("f1", "f1"),
        ("neg_mean_absolute_error", "mae"), ("neg_log_loss", "log_loss"),
        ("neg_brier_score", "brier_score"), ("neg_max_error", "max_error"),
        ("max_error", "max_error"),
    ],
)  # fmt: skip
def test_names_of_scikit_learn_are_those_of_records(given, recorded):
    assert recorded_name(given) == recorded


def test_what_is_no_scorer_is_none():
    assert is_scorer("f1")
    assert not is_scorer("f9")
    assert not is_scorer("adjusted_rand_score")
