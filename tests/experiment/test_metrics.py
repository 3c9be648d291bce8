from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from dprepro.dpboost import DPBoostClassifier
from dprepro.ebm import EBMClassifier
from dprepro.experiment.metrics import METRICS, score

RNG = np.random.default_rng(3)


class Fixed:
    """Returns what it was made with."""

    def __init__(self, **outputs: Any) -> None:
        self.classes_ = np.asarray(outputs.pop("classes", [0, 1]))
        for name, value in outputs.items():
            setattr(self, name, lambda X, value=value: np.asarray(value))


def _rank_auc(scores: np.ndarray, y: np.ndarray) -> float:
    """The share of (positive, negative) pairs in the right order, ties half: the definition."""
    differences = np.subtract.outer(scores[y == 1], scores[y == 0])
    return float((np.sign(differences) / 2 + 0.5).mean())


def test_auc_is_the_share_of_ordered_pairs() -> None:
    y = RNG.integers(0, 2, 60)
    scores = np.round(RNG.normal(size=60) + y, 1)  # with ties
    values = score(Fixed(decision_function=scores, predict=y), None, y, "binary", 2)
    assert values["auc"] == pytest.approx(_rank_auc(scores, y), abs=1e-12)
    assert values["accuracy"] == 1.0
    assert "log_loss" not in values


def test_scores_rank_where_probabilities_saturate() -> None:
    y = np.array([0, 1, 1, 0])
    estimator = Fixed(
        decision_function=[40.0, 50.0, 60.0, 30.0],
        predict_proba=[[0.0, 1.0]] * 4,
        predict=[1, 1, 1, 1],
    )
    assert score(estimator, None, y, "binary", 2)["auc"] == 1.0


def test_probabilities_rank_without_scores_and_labels_without_either() -> None:
    y = np.array([0, 1, 1, 0])
    proba = np.array([0.2, 0.7, 0.9, 0.8])
    by_proba = Fixed(predict_proba=np.column_stack([1 - proba, proba]), predict=[0, 1, 1, 1])
    assert score(by_proba, None, y, "binary", 2)["auc"] == 0.75
    assert score(Fixed(predict=[0, 1, 1, 1]), None, y, "binary", 2)["auc"] == 0.75


def test_log_loss_is_the_mean_negative_log_likelihood() -> None:
    X = RNG.normal(size=(90, 2))
    y = np.repeat([0, 1, 2], 30)
    model = LogisticRegression().fit(X, y)
    values = score(model, X, y, "multiclass", 3)
    likelihood = model.predict_proba(X)[np.arange(90), y]
    assert values["log_loss"] == pytest.approx(-np.log(likelihood).mean())
    assert set(values) == set(METRICS["multiclass"])


def test_a_label_no_training_row_had_counts_as_impossible() -> None:
    y = np.array([0, 1, 2])
    estimator = Fixed(predict_proba=[[0.5, 0.5]] * 3, predict=[0, 1, 1], classes=[0, 1])
    values = score(estimator, None, y, "multiclass", 3)
    assert values["accuracy"] == pytest.approx(2 / 3)
    assert values["log_loss"] > math.log(2)
    assert math.isfinite(values["log_loss"])


def test_regression_metrics_are_their_definitions() -> None:
    y = RNG.normal(size=30)
    predicted = y + RNG.normal(size=30)
    values = score(Fixed(predict=predicted), None, y, "regression", 0)
    error = predicted - y
    assert values["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert values["mae"] == pytest.approx(np.abs(error).mean())
    assert values["r2"] == pytest.approx(1 - np.mean(error**2) / np.var(y))


def test_one_test_row_has_errors_and_no_variance_to_explain() -> None:
    values = score(Fixed(predict=[1.0]), None, np.array([3.0]), "regression", 0)
    assert values == {"rmse": 2.0, "mae": 2.0}
    assert score(Fixed(predict=[1.0, 3.0]), None, np.array([3.0, 1.0]), "regression", 0) == {
        "rmse": 2.0,
        "mae": 2.0,
        "r2": pytest.approx(-3.0),
    }


def test_one_class_among_the_test_rows_is_an_error() -> None:
    with pytest.raises(ValueError, match="one class only"):
        score(Fixed(predict=[1, 1]), None, np.array([1, 1]), "binary", 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predictions_that_are_no_numbers_are_an_error(bad: float) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's wording
        score(Fixed(predict=[bad, 1.0]), None, np.array([0.0, 1.0]), "regression", 0)


def test_an_overflowing_metric_is_an_error() -> None:
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"rmse .* is inf"):
        score(Fixed(predict=[1e200, 1.0]), None, np.array([0.0, 1.0]), "regression", 0)


@pytest.mark.parametrize("model", [EBMClassifier(outer_bags=1), DPBoostClassifier(epsilon=8.0)])
def test_rows_are_scored_once_where_all_follows_from_scores(model):
    """And what follows is what `predict` and `predict_proba` return."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(random_state=0).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.labels_of(scores), model.predict(X))
    np.testing.assert_array_equal(model.probabilities_of(scores), model.predict_proba(X))

    class Counted(type(model)):
        asked = 0

        def _scores(self, rows):
            type(self).asked += 1
            return super()._scores(rows)

    expected = {
        "auc": roc_auc_score(y, scores), "accuracy": accuracy_score(y, model.predict(X)),
        "log_loss": log_loss(y, model.predict_proba(X)),
    }  # fmt: skip
    model.__class__ = Counted
    assert score(model, X, np.asarray(y), "binary", 2) == expected
    assert Counted.asked == 1
