from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    get_scorer,
    log_loss,
    roc_auc_score,
)

from dprepro.experiment import metrics
from dprepro.experiment.metrics import CALIBRATION_BINS, METRICS, calibration_error
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dpboost.estimator import DPBoostClassifier

RNG = np.random.default_rng(3)


def score(*arguments: Any) -> dict[str, float]:
    return metrics.score(*arguments).values


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

    likely = model.predict_proba(X)
    expected = {
        "auc": roc_auc_score(y, scores), "accuracy": accuracy_score(y, model.predict(X)),
        "log_loss": log_loss(y, likely), "average_precision": average_precision_score(y, scores),
        "brier_score": brier_score_loss(y, likely[:, 1]),
    }  # fmt: skip
    model.__class__ = Counted
    found = metrics.score(model, X, np.asarray(y), "binary", 2, ["f1", "balanced_accuracy"])
    assert {name: found.values[name] for name in expected} == pytest.approx(expected, rel=1e-14)
    for name in ("f1", "balanced_accuracy"):
        assert found.values[name] == get_scorer(name)(model, X, y)
    assert Counted.asked == 3  # once by `score`, twice by scikit-learn's scorers


def binary(n: int = 400) -> tuple[Fixed, np.ndarray]:
    """Return an estimator whose probabilities are too sure of themselves, and the labels."""
    truth = RNG.random(n)
    y = (RNG.random(n) < truth).astype(int)
    proba = np.clip(np.round(truth * 1.4 - 0.2, 2), 0, 1)  # with ties
    outputs = {"predict_proba": np.column_stack([1 - proba, proba]), "predict": proba > 0.5}
    return Fixed(**outputs), y


def test_average_precision_and_brier_score_are_scikit_learns() -> None:
    estimator, y = binary()
    proba = estimator.predict_proba(None)[:, 1]
    values = score(estimator, None, y, "binary", 2)
    assert values["average_precision"] == pytest.approx(
        average_precision_score(y, proba), abs=1e-14
    )
    assert values["brier_score"] == pytest.approx(brier_score_loss(y, proba), abs=1e-14)
    assert tuple(values) == METRICS["binary"]


def test_the_calibration_error_weighs_the_gaps_of_fifteen_bins_of_equal_width() -> None:
    estimator, y = binary()
    proba = estimator.predict_proba(None)[:, 1]
    shares, means = calibration_curve(y, proba, n_bins=CALIBRATION_BINS, strategy="uniform")
    inner = np.linspace(0, 1, CALIBRATION_BINS + 1)[1:-1]
    rows = np.bincount(np.searchsorted(inner, proba))
    expected = np.sum(rows[rows > 0] * np.abs(shares - means)) / len(y)
    assert expected > 0.05
    values = score(estimator, None, y, "binary", 2)
    assert values["calibration_error"] == pytest.approx(expected, abs=1e-14)
    assert CALIBRATION_BINS == 15


@pytest.mark.parametrize(
    ("stated", "came_true", "error"),
    [
        ([0.0, 1.0], [0, 1], 0.0),
        ([0.0, 1.0], [1, 0], 1.0),
        ([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 1], 0.0),
        ([0.25, 0.25], [1, 0], 0.25),
        ([1 / 15, 1 / 15 + 1e-9], [0, 0], 1 / 15),  # a bin holds its upper edge
    ],
)
def test_calibration_errors_by_hand(
    stated: list[float], came_true: list[int], error: float
) -> None:
    found = calibration_error(np.array(stated), np.array(came_true))
    assert found == pytest.approx(error, abs=1e-8)


def test_metrics_of_probabilities_of_several_labels() -> None:
    y = np.array([0, 1, 2, 2])
    proba = np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.9, 0.05, 0.05]])
    values = score(Fixed(predict_proba=proba, predict=[0, 1, 2, 0], classes=[0, 1, 2]), None, y,
                   "multiclass", 3)  # fmt: skip
    squares = ((proba - np.eye(3)[y]) ** 2).sum(axis=1)
    assert values["brier_score"] == pytest.approx(squares.mean())
    # Each row is alone in its bin: 0.8, 0.6 and 0.7 came true, 0.9 did not.
    assert values["calibration_error"] == pytest.approx((0.2 + 0.4 + 0.3 + 0.9) / 4)


def test_what_was_asked_for_and_cannot_be_had_has_a_reason() -> None:
    y = np.array([0, 1, 1, 0])
    estimator = Fixed(predict=[0, 1, 0, 0])
    found = metrics.score(estimator, None, y, "binary", 2, ["auc", "brier_score", "roc_auc_ovr"])
    assert found.absent["brier_score"] == "the method gives no probabilities"
    assert set(found.absent) == {"brier_score", "roc_auc_ovr"}
    assert set(found.values) == {"auc", "accuracy", "average_precision"}
    negative = metrics.score(
        Fixed(predict=[1.0, 2.0]), None, np.array([-3.0, 2.0]), "regression", 0,
        ["mean_squared_log_error", "median_absolute_error"],
    )  # fmt: skip
    assert negative.values["median_absolute_error"] == 2.0
    assert "ValueError" in negative.absent["mean_squared_log_error"]
    assert "-3" not in negative.absent["mean_squared_log_error"]
