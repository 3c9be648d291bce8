"""How well an estimator predicts held-out rows: our metrics, and scikit-learn's scorers.

A record has a scorer's value under its name. scikit-learn negates errors, so that larger is better
for all scorers, and their names begin with ``neg_``. A record has the error itself, under the name
without ``neg_``; smaller is then better.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dprepro.data.domain import TaskKind
from dprepro.estimators.contract import (
    Estimator,
    predicts_probabilities,
    reads_scores,
    scores_rows,
)
from dprepro.runtime.errors import publishable

if TYPE_CHECKING:
    from dprepro.data.domain import TaskKind  # loads pandas, and the report needs none

_NEGATED = "neg_"
# Scorers that every record has under another name.
_SAME = {
    "roc_auc": "auc",
    "root_mean_squared_error": "rmse",
    "mean_absolute_error": "mae",
}


@dataclass(frozen=True, repr=False)
class Outputs:
    """What an estimator says of n test rows.

    Attributes
    ----------
    predicted
        Labels or targets, (n,).
    ranking
        Larger for likelier label 1, (n,); None unless there are two classes. Where there are more,
        scorers rank rows by probabilities.
    probabilities
        Of all labels, (n, C); None where there are none.
    """

    predicted: np.ndarray
    ranking: np.ndarray | None = None
    probabilities: np.ndarray | None = None


def recorded_name(name: str) -> str:
    """Return the name that records have for a metric, given that name or scikit-learn's."""
    bare = name.removeprefix(_NEGATED)
    return _SAME.get(bare, bare)


@cache
def scorer_names(task: TaskKind) -> tuple[str, ...]:
    """Return the scorers that can score this kind of task, by the names of records, sorted.

    They are found by trial: with `task`'s outputs for a few rows. Scorers of clusters are left out.
    """
    y, outputs, n_classes = _TRIALS[task]
    known = [name for name in _scikit_names() if _is_for(name, task)]
    found, _ = scored(map(recorded_name, known), outputs, y, task, n_classes)
    return tuple(sorted(found))


def is_scorer(name: str) -> bool:
    """Whether records can have a scorer's value under this name."""
    return any(name in scorer_names(task) for task in _TRIALS)


def is_error(name: str) -> bool:
    """Whether smaller is better of a scorer's value, as records have it."""
    return f"{_NEGATED}{name}" in _scikit_names()


def scored(
    names: Iterable[str], outputs: Outputs, y: np.ndarray, task: TaskKind, n_classes: int
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the values of scorers, and the reasons of those that have none.

    Parameters
    ----------
    names
        As records have them.
    y
        Codes or targets of the rows, (n,). Label 1 is the positive one.
    """
    from sklearn.metrics import get_scorer

    answering = _answering(outputs, task, n_classes)
    rows = np.zeros((len(y), 1))  # not read: all answers are there
    values: dict[str, float] = {}
    absent: dict[str, str] = {}
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as F1 of a model that predicts one label
                value = float(get_scorer(_scikit_name(name))(answering, rows, y))
        except Exception as error:  # a metric that a dataset rules out is no reason to lose a fit
            absent[name] = f"{type(error).__name__}: {publishable(error)}"
            continue
        if math.isfinite(value):
            # Adding 0 turns -0.0 into 0.0.
            values[name] = (-value if is_error(name) else value) + 0.0
        else:
            absent[name] = f"its value on the test rows is {value}"
    return values, absent


def _answering(outputs: Outputs, task: TaskKind, n_classes: int) -> Any:
    """Return an estimator of scikit-learn's kind that gives these outputs, whatever it is asked."""
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    class Regressor(RegressorMixin, BaseEstimator):
        def predict(self, X: Any) -> np.ndarray:
            return outputs.predicted

    class Classifier(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(n_classes)

        def predict(self, X: Any) -> np.ndarray:
            return outputs.predicted

    if task == "regression":
        return Regressor()

    def decision_function(X: Any) -> Any:
        return outputs.ranking

    def predict_proba(X: Any) -> Any:
        return outputs.probabilities

    answering = Classifier()
    # scikit-learn asks for what is there: an attribute that says None would count as it.
    if outputs.ranking is not None:
        answering.decision_function = decision_function
    if outputs.probabilities is not None:
        answering.predict_proba = predict_proba
    return answering


@cache
def _scikit_names() -> frozenset[str]:
    from sklearn.metrics import get_scorer_names

    return frozenset(get_scorer_names())


def _scikit_name(name: str) -> str:
    return f"{_NEGATED}{name}" if is_error(name) else name


def _is_for(name: str, task: TaskKind) -> bool:
    """Whether a scorer is meant for regression or classification: others run on codes as well."""
    from sklearn.metrics import get_scorer

    module = get_scorer(name)._score_func.__module__
    if ".cluster." in module:
        return False
    return module.endswith("._regression") == (task == "regression")


_TRIALS: Mapping[TaskKind, tuple[np.ndarray, Outputs, int]] = {
    "binary": (
        np.array([0, 1, 1, 0]),
        Outputs(
            np.array([0, 1, 0, 1]),
            np.array([-2.0, 3.0, -1.0, 1.0]),
            np.array([[0.9, 0.1], [0.1, 0.9], [0.7, 0.3], [0.3, 0.7]]),
        ),
        2,
    ),
    "multiclass": (
        np.array([0, 1, 2, 0]),
        Outputs(
            np.array([0, 1, 1, 0]),
            None,
            np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.5, 0.3], [0.6, 0.2, 0.2]]),
        ),
        3,
    ),
    "regression": (np.array([1.0, 2.0, 4.0]), Outputs(np.array([1.5, 2.0, 3.0])), 0),
}


METRICS: dict[TaskKind, tuple[str, ...]] = {
    "binary": (
        "auc", "accuracy", "log_loss", "average_precision", "brier_score", "calibration_error"
    ),
    "multiclass": ("accuracy", "log_loss", "brier_score", "calibration_error"),
    "regression": ("rmse", "mae", "r2"),
}  # fmt: skip
"""What every record holds, by kind of task."""

# Guo et al. (2017), section 2, use as many.
CALIBRATION_BINS = 15


@dataclass(frozen=True)
class Scores:
    """What the test rows say of an estimator.

    Attributes
    ----------
    values
        By metric; all are finite.
    absent
        By metric that was asked for and cannot be had, the reason.
    """

    values: dict[str, float]
    absent: dict[str, str]


def score(
    estimator: Estimator,
    X: Any,
    y: np.ndarray,
    task: TaskKind,
    n_classes: int,
    asked: Collection[str] = (),
) -> Scores:
    """Score a fitted estimator on test rows, each row once.

    Raises ValueError if one of `METRICS` is not finite, or AUC is asked of test rows with one
    class.

    Parameters
    ----------
    X
        Test rows in the estimator's representation, (n, ...).
    y
        Shape (n,): codes ``0 .. n_classes-1``, or float targets for regression.
    n_classes
        Number of labels of the dataset, whether or not they occur in `y`; unused for regression.
    asked
        Names of metrics, as records have them (see `dprepro.experiment.metrics`): those that are
        not among `METRICS` are had from scikit-learn's scorers. For each of them there is a value,
        or a reason why there is none.

    Returns
    -------
    Scores
        The `METRICS` of the task, then what else was asked for. Metrics of probabilities
        (``log_loss``, in natural logarithms, ``brier_score``, ``calibration_error``) are left out
        for estimators without ``predict_proba``.
    """
    from sklearn import config_context

    is_regression = task == "regression"
    outputs = (
        Outputs(np.asarray(estimator.predict(X), dtype=float))
        if is_regression
        else _outputs(estimator, X, task, n_classes)
    )
    with config_context(skip_parameter_validation=True):  # a third of the time for 100 rows
        values = (
            _regression(outputs.predicted, y)
            if is_regression
            else _classification(outputs, y, task, n_classes)
        )
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"{name} on the test rows is {value}")
    usual = [name for name in METRICS[task] if name in asked and name not in values]
    absent = dict.fromkeys(usual, "the method gives no probabilities")
    chosen = [name for name in asked if name not in METRICS[task]]
    if not chosen:
        return Scores(values, absent)
    more, missing = scored(chosen, outputs, y, task, n_classes)
    return Scores(values | more, absent | missing)


def calibration_error(stated: np.ndarray, came_true: np.ndarray) -> float:
    """Return the expected calibration error: how far stated probabilities are from frequencies.

    ECE = sum_b n_b/n |mean of `came_true` in b - mean of `stated` in b|

    over `CALIBRATION_BINS` bins b of equal width: Guo, Pleiss, Sun, Weinberger (2017, ICML), eq. 3,
    after Naeini, Cooper, Hauskrecht (2015, AAAI). 0 is best, 1 is worst. A bin holds its upper
    edge.

    Parameters
    ----------
    stated
        Shape (n,): probabilities.
    came_true
        Shape (n,): 1 or True where what they were stated of came true.
    """
    inner = np.linspace(0.0, 1.0, CALIBRATION_BINS + 1)[1:-1]
    gaps = np.bincount(np.searchsorted(inner, stated), weights=stated - came_true)
    return float(np.abs(gaps).sum() / len(stated))


def _average_precision(ranking: np.ndarray, y: np.ndarray) -> float:
    """Return the average precision of a ranking, (n,), of labels 0 and 1, (n,).

    AP = sum_k (recall_k - recall_(k-1)) precision_k

    over the distinct values of the ranking, from the largest down. It is scikit-learn's
    `average_precision_score`, which takes six times as long: too long beside a fit of 60 ms.
    """
    order = np.argsort(-ranking)
    hits, ranked = np.cumsum(y[order]), ranking[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # of each distinct value
    gains = np.diff(hits[last], prepend=0)
    return float(np.sum(gains * hits[last] / (last + 1)) / hits[-1])


def _regression(predicted: np.ndarray, y: np.ndarray) -> dict[str, float]:
    from sklearn import metrics as sk

    return {
        "rmse": float(sk.root_mean_squared_error(y, predicted)),
        "mae": float(sk.mean_absolute_error(y, predicted)),
        # One test row has no variance to explain.
        **({"r2": float(sk.r2_score(y, predicted))} if len(y) > 1 else {}),
    }


def _classification(
    outputs: Outputs, y: np.ndarray, task: TaskKind, n_classes: int
) -> dict[str, float]:
    from sklearn import metrics as sk

    values: dict[str, float] = {}
    probabilities = outputs.probabilities
    if task == "binary":
        if len(np.unique(y)) < 2:
            raise ValueError("the test rows hold one class only: AUC is undefined")
        assert outputs.ranking is not None  # two classes are always ranked
        values["auc"] = float(sk.roc_auc_score(y, outputs.ranking))
        values["average_precision"] = _average_precision(outputs.ranking, y)
    values["accuracy"] = float(sk.accuracy_score(y, outputs.predicted))
    if probabilities is not None:
        values["log_loss"] = float(sk.log_loss(y, probabilities, labels=np.arange(n_classes)))
        values |= _of_probabilities(probabilities, y, task)
    return {name: values[name] for name in METRICS[task] if name in values}


def _of_probabilities(probabilities: np.ndarray, y: np.ndarray, task: TaskKind) -> dict[str, float]:
    """Return Brier score and calibration error of probabilities, (n, C).

    The Brier score of two classes is the mean of (p - y)^2, with p of label 1; that of more
    classes is the mean over rows of the sum over classes, as Brier (1950) has it. The calibration
    error of two classes is that of p, as Naeini et al. have it; that of more classes is that of the
    likeliest label, as Guo et al. have it.
    """
    if task == "binary":
        p = probabilities[:, 1]
        return {
            "brier_score": float(np.mean((p - y) ** 2)),
            "calibration_error": calibration_error(p, y),
        }
    happened = y[:, None] == np.arange(probabilities.shape[1])
    is_right = probabilities.argmax(axis=1) == y
    return {
        "brier_score": float(np.mean(((probabilities - happened) ** 2).sum(axis=1))),
        "calibration_error": calibration_error(probabilities.max(axis=1), is_right),
    }


def _outputs(estimator: Estimator, X: Any, task: TaskKind, n_classes: int) -> Outputs:
    """Return labels, what ranks rows, and probabilities of all labels; None where there are none.

    Only two classes are ranked.
    """
    scores = known = None
    if reads_scores(estimator):
        scores = np.asarray(estimator.decision_function(X), dtype=float)
        labels, known = estimator.labels_of(scores), estimator.probabilities_of(scores)
    else:
        known = estimator.predict_proba(X) if predicts_probabilities(estimator) else None
        if task == "binary" and scores_rows(estimator):
            scores = np.asarray(estimator.decision_function(X), dtype=float)
        labels = estimator.predict(X)
    probabilities = None if known is None else _of_all_labels(estimator, known, n_classes)
    ranking = _ranking(scores, probabilities, labels) if task == "binary" else None
    return Outputs(np.asarray(labels), ranking, probabilities)


def _ranking(
    scores: np.ndarray | None, probabilities: np.ndarray | None, labels: np.ndarray
) -> np.ndarray:
    # Probabilities saturate where scores still differ, hence scores first.
    if scores is not None:
        return scores if scores.ndim == 1 else scores[:, -1]
    return np.asarray(labels, dtype=float) if probabilities is None else probabilities[:, 1]


def _of_all_labels(estimator: Any, known: Any, n_classes: int) -> np.ndarray:
    """Return (n, n_classes) probabilities, zero for labels that no training row had."""
    known = np.asarray(known, dtype=float)
    probabilities = np.zeros((known.shape[0], n_classes))
    probabilities[:, np.asarray(estimator.classes_, dtype=int)] = known
    return probabilities
