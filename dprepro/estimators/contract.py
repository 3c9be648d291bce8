"""What the rest of the project may ask of an estimator, beside scikit-learn's `fit` and `predict`.

No attribute but `fit` and `predict` is required: an estimator of a plug-in may lack any other, and
the functions here then say what is done without it. They are the only place that looks for
attributes, so this file is the whole contract between an estimator and its callers: the runner, the
ledger command, inspection, the audit and model files.

Whether a method is there is asked with ``hasattr``, not with ``isinstance``: scikit-learn hides
methods that an estimator's parameters rule out (``available_if``), and from Python 3.12 on
``isinstance`` looks past that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from dprepro.privacy.ledger import Ledger


@runtime_checkable
class Estimator(Protocol):
    """Asked by the runner, and by everything that fits.

    X is in the encoding that the method's entry in the registry names: a DataFrame (n, K), a float
    array (n, D), ...
    """

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to X, n rows, and y (n,): codes 0 .. C-1 or float64 targets. Return the estimator."""
        ...

    def predict(self, X: Any) -> np.ndarray:
        """Return labels or targets, (n,)."""
        ...


@runtime_checkable
class PrivateEstimator(Estimator, Protocol):
    """One that says what its fit has spent. Asked by the runner, the ledger command and the audit.

    Attributes
    ----------
    ledger_
        Every noisy answer of the fit; set by `fit`. Without it nothing says what a fit at a finite
        epsilon spends: it is shown as unverified.
    """

    ledger_: Ledger


@runtime_checkable
class PlansLedger(Protocol):
    """One whose noise depends on the number of rows. Asked by the ledger command, without rows."""

    def planned_ledger(self, rows: int) -> Ledger:
        """Return the ledger that a fit to so many rows would leave; the estimator stays unfitted.

        Raises
        ------
        ValueError
            On parameters out of range, or a budget too small for any answer.
        """
        ...


@runtime_checkable
class HasFigures(Protocol):
    """One that has more to say of its fit than metrics. Asked by the runner, for the journal.

    Attributes
    ----------
    figures_
        Finite numbers by name; set by `fit`.
    """

    figures_: Mapping[str, float]


@runtime_checkable
class ChecksParameters(Protocol):
    """One that can refuse its parameters without rows. Asked when a config is planned."""

    def check_parameters(self) -> None:
        """Raise ValueError on parameters out of range: what was given, and what is allowed."""
        ...


@runtime_checkable
class ScoresRows(Protocol):
    """Asked by the metrics, for AUC, and by the audit."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return float64 (n,), larger for likelier ``classes_[1]``, or (n, C), a column a class."""
        ...


@runtime_checkable
class PredictsProbabilities(Protocol):
    """Asked by the metrics, for the log loss, and by the audit.

    Attributes
    ----------
    classes_
        The labels seen, (C,), in the order of the columns of `predict_proba`.
    """

    classes_: np.ndarray

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return float64 (n, C); rows add up to 1."""
        ...


@runtime_checkable
class ReadsScores(ScoresRows, Protocol):
    """One whose labels and probabilities follow from its scores.

    Asked by the metrics, which then score the test rows once.
    """

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the labels, (n,), of rows with scores (n,): what `predict` returns."""
        ...

    def probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """Return float64 (n, C), of rows with scores (n,): what `predict_proba` returns."""
        ...


class Explanation(Protocol):
    """What `ExplainsRows` returns: maps of the predicted class, the heaviest first.

    Attributes
    ----------
    weights : float32 (n, M)
        Of the M maps; they add up to 1.
    filters : float32 (n, M, D)
        The maps, in the same order.
    """

    @property
    def weights(self) -> np.ndarray: ...  # noqa: D102 - see the class

    @property
    def filters(self) -> np.ndarray: ...  # noqa: D102 - see the class


@runtime_checkable
class ExplainsRows(Estimator, Protocol):
    """One made of locally linear maps. Asked by inspection, for pictures of them."""

    def explain_local(self, X: Any) -> Explanation:
        """Return why each row of X, (n, D), gets its predicted class."""
        ...


def ledger_of(estimator: object) -> Ledger | None:
    """Return the ledger of a fitted estimator; None where it keeps none, or one of another type.

    An object of another class, one derived from `Ledger` included, could say anything of what was
    spent: it is no ledger.
    """
    from dprepro.privacy.ledger import Ledger  # its accountant takes long to load

    ledger = getattr(estimator, "ledger_", None)
    return ledger if type(ledger) is Ledger else None


def ledger_summary_of(estimator: object) -> Mapping[str, Any] | None:
    """Return what a journal keeps of an estimator's ledger, JSON-able; None where it has none.

    See `dprepro.privacy.ledger.Ledger.summary` for the keys.
    """
    ledger = ledger_of(estimator)
    return None if ledger is None else ledger.summary()


def figures_of(estimator: object) -> dict[str, float]:
    """Return the figures of a fitted estimator; empty where it has none."""
    figures = getattr(estimator, "figures_", {})
    return {name: float(value) for name, value in figures.items()}


def is_estimator(value: object) -> bool:
    """Whether a value can be fitted, and is no class. Some can predict only when they are."""
    return hasattr(value, "fit") and not isinstance(value, type)


def plans_ledger(estimator: object) -> TypeGuard[PlansLedger]:
    """Whether the ledger of a fit can be had from the number of rows alone."""
    return hasattr(estimator, "planned_ledger")


def explains_rows(estimator: object) -> TypeGuard[ExplainsRows]:
    """Whether predictions come with the maps that make them."""
    return hasattr(estimator, "explain_local")


def scores_rows(estimator: object) -> TypeGuard[ScoresRows]:
    """Whether there is a score to rank rows by."""
    return hasattr(estimator, "decision_function")


def reads_scores(estimator: object) -> TypeGuard[ReadsScores]:
    """Whether labels and probabilities can be had from scores."""
    return hasattr(estimator, "labels_of") and hasattr(estimator, "probabilities_of")


def predicts_probabilities(estimator: object) -> TypeGuard[PredictsProbabilities]:
    """Whether there are probabilities of labels."""
    return hasattr(estimator, "predict_proba")


def finest_outputs(estimator: Estimator, X: Any) -> np.ndarray:
    """Return scores, (n,) or (n, C), else probabilities, else labels: the first there are."""
    if scores_rows(estimator):
        return estimator.decision_function(X)
    if predicts_probabilities(estimator):
        return estimator.predict_proba(X)
    return estimator.predict(X)


def check_parameters(estimator: Any) -> None:
    """Let an estimator refuse its parameters, if it can without rows; others say it when they fit.

    By its own `check_parameters`, or by the constraints that scikit-learn's estimators state.

    Raises
    ------
    ValueError or TypeError
        If it does.
    """
    if hasattr(estimator, "check_parameters"):
        estimator.check_parameters()
    elif hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()


def classes_of(estimator: object) -> np.ndarray | None:
    """Return the labels of a fitted classifier, (C,); None for a regressor."""
    classes: np.ndarray | None = getattr(estimator, "classes_", None)
    return classes


def has_named_columns(estimator: object) -> bool:
    """Whether it was fitted to a DataFrame with names, which others must then have, too."""
    return hasattr(estimator, "feature_names_in_")
