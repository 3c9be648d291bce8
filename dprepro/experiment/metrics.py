"""How well a fitted estimator predicts held-out rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import (
    Estimator,
    ScoresRows,
    predicts_probabilities,
    scores_rows,
)

METRICS: dict[TaskKind, tuple[str, ...]] = {
    "binary": ("auc", "accuracy", "log_loss"),
    "multiclass": ("accuracy", "log_loss"),
    "regression": ("rmse", "mae", "r2"),
}


def score(
    estimator: Estimator, X: Any, y: np.ndarray, task: TaskKind, n_classes: int
) -> dict[str, float]:
    """Score a fitted estimator on test rows.

    Parameters
    ----------
    X
        Test rows in the estimator's representation, (n, ...).
    y
        Shape (n,): codes ``0 .. n_classes-1``, or float targets for regression.
    n_classes
        Number of labels of the dataset, whether or not they occur in `y`; unused for regression.

    Returns
    -------
    dict
        The values of `METRICS` for the task. ``log_loss`` (natural logarithm) is left out for
        estimators without ``predict_proba``.

    Raises
    ------
    ValueError
        If a metric is not finite, or AUC is asked of test rows with one class.
    """
    if task == "regression":
        values = _regression(np.asarray(estimator.predict(X), dtype=float), y)
    else:
        values = _classification(estimator, X, y, task, n_classes)
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} on the test rows is {value}")
    return values


def _regression(predicted: np.ndarray, y: np.ndarray) -> dict[str, float]:
    from sklearn import metrics as sk

    return {
        "rmse": float(sk.root_mean_squared_error(y, predicted)),
        "mae": float(sk.mean_absolute_error(y, predicted)),
        # One test row has no variance to explain.
        **({"r2": float(sk.r2_score(y, predicted))} if len(y) > 1 else {}),
    }


def _classification(
    estimator: Estimator, X: Any, y: np.ndarray, task: TaskKind, n_classes: int
) -> dict[str, float]:
    from sklearn import metrics as sk

    values: dict[str, float] = {}
    probabilities = _probabilities(estimator, X, n_classes)
    if task == "binary":
        if len(np.unique(y)) < 2:
            raise ValueError("the test rows hold one class only: AUC is undefined")
        # Probabilities saturate where scores still differ, hence scores first.
        if scores_rows(estimator):
            ranking = _positive_scores(estimator, X)
        elif probabilities is not None:
            ranking = probabilities[:, 1]
        else:
            ranking = np.asarray(estimator.predict(X), dtype=float)
        values["auc"] = float(sk.roc_auc_score(y, ranking))
    values["accuracy"] = float(sk.accuracy_score(y, estimator.predict(X)))
    if probabilities is not None:
        values["log_loss"] = float(sk.log_loss(y, probabilities, labels=np.arange(n_classes)))
    return values


def _positive_scores(estimator: ScoresRows, X: Any) -> np.ndarray:
    scores = np.asarray(estimator.decision_function(X), dtype=float)
    return scores if scores.ndim == 1 else scores[:, -1]


def _probabilities(estimator: Estimator, X: Any, n_classes: int) -> np.ndarray | None:
    """Return (n, n_classes) probabilities, zero for labels that no training row had."""
    if not predicts_probabilities(estimator):
        return None
    known = np.asarray(estimator.predict_proba(X), dtype=float)
    probabilities = np.zeros((known.shape[0], n_classes))
    probabilities[:, np.asarray(estimator.classes_, dtype=int)] = known
    return probabilities
