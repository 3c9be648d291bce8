"""Metrics of the user's choice: scikit-learn's scorers, by name.

A record has a scorer's value under its name. scikit-learn negates errors, so that larger is better
for all scorers, and their names begin with ``neg_``. A record has the error itself, under the name
without ``neg_``; smaller is then better.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dprepro.errors import publishable

if TYPE_CHECKING:
    from dprepro.data.domain import TaskKind  # loads pandas, and the report needs none

_NEGATED = "neg_"
# Scorers that every record has under another name.
_SAME = {
    "roc_auc": "auc",
    "root_mean_squared_error": "rmse",
    "mean_absolute_error": "mae",
}


@dataclass(frozen=True)
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
    # scikit-learn asks for what is there: an attribute that says None would be taken for it.
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
