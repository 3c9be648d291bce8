"""How well a fitted estimator predicts held-out rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import (
    Estimator,
    predicts_probabilities,
    reads_scores,
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
    scores, labels, known = _outputs(estimator, X, task)
    probabilities = None if known is None else _of_all_labels(estimator, known, n_classes)
    if task == "binary":
        if len(np.unique(y)) < 2:
            raise ValueError("the test rows hold one class only: AUC is undefined")
        # Probabilities saturate where scores still differ, hence scores first.
        if scores is not None:
            ranking = scores if scores.ndim == 1 else scores[:, -1]
        elif probabilities is not None:
            ranking = probabilities[:, 1]
        else:
            ranking = np.asarray(labels, dtype=float)
        values["auc"] = float(sk.roc_auc_score(y, ranking))
    values["accuracy"] = float(sk.accuracy_score(y, labels))
    if probabilities is not None:
        values["log_loss"] = float(sk.log_loss(y, probabilities, labels=np.arange(n_classes)))
    return values


def _outputs(
    estimator: Estimator, X: Any, task: TaskKind
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray | None]:
    """Return scores, (n,) or (n, C), labels (n,) and probabilities (n, C) of labels seen.

    Scores are None where there are none or no metric asks for them, probabilities where there are
    none.
    """
    if reads_scores(estimator):
        given = np.asarray(estimator.decision_function(X), dtype=float)
        return given, estimator.labels_of(given), estimator.probabilities_of(given)
    probabilities = estimator.predict_proba(X) if predicts_probabilities(estimator) else None
    scores = None
    if task == "binary" and scores_rows(estimator):
        scores = np.asarray(estimator.decision_function(X), dtype=float)
    return scores, estimator.predict(X), probabilities


def _of_all_labels(estimator: Any, known: Any, n_classes: int) -> np.ndarray:
    """Return (n, n_classes) probabilities, zero for labels that no training row had."""
    known = np.asarray(known, dtype=float)
    probabilities = np.zeros((known.shape[0], n_classes))
    probabilities[:, np.asarray(estimator.classes_, dtype=int)] = known
    return probabilities
