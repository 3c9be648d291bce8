"""What every estimator takes: rows, labels or targets, and a domain."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    column_or_1d,
    validate_data,
)

from dprepro.data.domain import Domain, TaskKind, is_categorical
from dprepro.estimators.contract import has_named_columns
from dprepro.privacy.private import Private

# Errors of numpy and scikit-learn that quote private values or count rows, and what to say instead.
_QUOTING = {
    "inconsistent numbers of samples": (
        "X and y have inconsistent numbers of samples: y needs one value a row"
    ),
    "This solver needs samples of at least 2 classes": (
        "y must hold samples of at least 2 classes, but it holds one class"
    ),
    "could not convert": "an array must hold numbers, but it holds text: pass a DataFrame",
    "Complex data not supported": "Complex data not supported, only real numbers",
    "Expected 2D array": "Expected 2D array. Reshape your data: rows by features",
    "should be a 1d array": "should be a 1d array, one value a row",
}
# Those that name the fault and nothing of the rows.
_HARMLESS = re.compile(r"Input \S.* contains (NaN|infinity)|Unknown label type: [a-z-]+\. Maybe")


class PrivacyWarning(UserWarning):
    """A fit read something from private rows that epsilon does not cover."""


@dataclass(frozen=True)
class Rows:
    """The rows of a fit.

    Attributes
    ----------
    frame : (n, K)
        The features; see `read_frame`.
    targets : (n,)
        Classification: the labels as float32 codes 0 and 1. Regression: float64.
    """

    frame: pd.DataFrame
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)

    def part(self, rows: slice) -> Rows:
        """Return some of the rows."""
        return Rows(self.frame.iloc[rows], self.targets[rows])


@dataclass(frozen=True)
class Arrays:
    """The rows of a fit whose features are columns of one array.

    Attributes
    ----------
    features : (n, columns)
    targets : (n,)
    """

    features: Any
    targets: Any


def forget_fit(model: BaseEstimator) -> None:
    """Delete what an earlier fit found, so that no ledger stays with another fit's model."""
    for name in [name for name in vars(model) if name.endswith("_") and name[0] != "_"]:
        delattr(model, name)


def read_frame(model: BaseEstimator, X: Any, *, reset: bool) -> pd.DataFrame:
    """Return X as a DataFrame: numbers and categories of a DataFrame stay, arrays become numbers.

    With `reset`, as a fit calls it, the model first forgets an earlier fit.

    Raises
    ------
    ValueError
        On infinite values, no rows or columns, or columns other than those of the fit.
    """
    if reset:
        forget_fit(model)
    if not isinstance(X, pd.DataFrame):
        array = _read_array(model, X, reset)
        return pd.DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])])
    validate_data(model, X, reset=reset, skip_check_array=True)
    least = 2 if reset else 1
    if X.shape[1] == 0 or len(X) < least:
        raise ValueError(
            f"X has {'too few rows' if X.shape[1] else 'no columns'}: a minimum of {least} "
            "sample(s) and 1 feature(s) is required"
        )
    for name in X.columns:
        if not is_categorical(X[name]):
            values = X[name].to_numpy(dtype=float, na_value=np.nan)
            with values_withheld():
                assert_all_finite(values, allow_nan=True, input_name=str(name))
    return X


def _read_array(model: BaseEstimator, X: Any, reset: bool) -> np.ndarray:
    with values_withheld("X"):
        array: np.ndarray = validate_data(
            model, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )  # fmt: skip
    return array


def checked(model: BaseEstimator, *arrays: Any, **settings: Any) -> Any:
    """Return what scikit-learn's `validate_data` returns; its errors quote no value here."""
    with values_withheld():
        return validate_data(model, *arrays, **settings)


def read_training_arrays(model: BaseEstimator, X: Any, y: Any) -> Private[Arrays]:
    """Return the numbers that a fit was given, float64, wrapped: a curator opens them.

    Raises
    ------
    ValueError
        On what is missing, infinite or not a number.
    """
    return Private(Arrays(*checked(model, X, y, dtype=np.float64, y_numeric=True)))


def wrap_training_arrays(X: Any, y: Any) -> Private[Arrays]:
    """Return what a fit was given as it is, wrapped: a library that gets it will check it."""
    return Private(Arrays(X, y))


@contextmanager
def values_withheld(name: str = "X or y") -> Iterator[None]:
    """Let errors of libraries pass without the values, and the numbers of rows, in their texts."""
    try:
        yield
    except ValueError as error:
        raise _without_values(error, name) from None


def _without_values(error: ValueError, name: str) -> ValueError:
    for quoting, plain in _QUOTING.items():
        if quoting in str(error):
            return ValueError(f"{name}: {plain}")
    # A new error, since a journal keeps what this package says itself, and that alone.
    return ValueError(str(error)) if _HARMLESS.match(str(error)) else error


def read_labels(
    model: BaseEstimator, frame: pd.DataFrame, y: Any, domain: Domain | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the two classes, sorted, and y as float32 codes 0, 1 (n,).

    With a public `domain` the classes are its own, whichever of them occur: y holds its labels as
    text, or their codes 0 and 1 as numbers. Else they are the two that occur.

    Raises
    ------
    ValueError
        On missing or infinite labels, those that the domain rules out, or other than two classes.
    """
    y = _read_y(model, frame, y)
    if domain is not None and domain.is_public:
        classes = _public_classes(model, domain, y)
    else:
        classes = _observed_classes(model, y)
    return classes, (y == classes[1]).astype(np.float32)


def _public_classes(model: BaseEstimator, domain: Domain, y: np.ndarray) -> np.ndarray:
    _check_target(domain, "binary")
    # By the type of y alone: what its rows hold must not decide how a row is read.
    if y.dtype.kind in "biuf":
        classes = np.array([0, 1], dtype=y.dtype)
    else:
        texts = sorted(map(str, domain.target))
        classes = np.array(texts, dtype=object if y.dtype == object else None)
    if y.dtype.kind not in "biufOUT" or not ((y == classes[0]) | (y == classes[1])).all():
        raise ValueError(
            f"{type(model).__name__}: y must hold the domain's labels "
            f"{' and '.join(map(repr, domain.target))} as text, or their codes 0 and 1 as numbers, "
            "but it holds something else: np.unique(y) shows what"
        )
    return classes


def _observed_classes(model: BaseEstimator, y: np.ndarray) -> np.ndarray:
    with values_withheld("y"):
        check_classification_targets(y)
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(
            f"{type(model).__name__}: Only binary classification is supported and y must hold "
            f"both labels, but it holds {'1 class' if classes.size == 1 else 'more classes'}"
        )
    return classes


def read_targets(model: BaseEstimator, frame: pd.DataFrame, y: Any) -> np.ndarray:
    """Return y as float64 (n,); ValueError if it is missing, infinite or not a number."""
    y = _read_y(model, frame, y)
    try:
        return y.astype(np.float64)
    except ValueError:
        # numpy quotes the value, which is private.
        raise ValueError(
            f"{type(model).__name__}: y must hold numbers, but it holds something else: "
            "pd.to_numeric(y, errors='coerce') is NaN in those rows"
        ) from None


def read_training_rows(
    model: Any, X: Any, y: Any, domain: Domain | None, task: TaskKind
) -> Private[Rows]:
    """Return what a fit was given, wrapped: a curator opens it. Classification sets ``classes_``.

    Raises
    ------
    ValueError
        As `read_frame`, and `read_labels` or `read_targets`.
    """
    frame = read_frame(model, X, reset=True)
    if task == "regression":
        return Private(Rows(frame, read_targets(model, frame, y)))
    model.classes_, labels = read_labels(model, frame, y, domain)
    return Private(Rows(frame, labels))


def resolve_domain_of(model: Any, private: Private[Rows], task: TaskKind) -> Domain:
    """Return ``model.domain``; where it is None, warn and read one from the rows.

    To be called by ``fit`` itself: the warning points to the caller's caller.

    Raises
    ------
    ValueError
        If the domain describes another number of features or, for a DataFrame with names of its
        own, other features; or if its target is not of the task's kind.
    """
    rows = private.open()
    if model.domain is None:
        warnings.warn(
            f"{type(model).__name__} got no domain and reads bounds, categories and target "
            "range from the training rows. Epsilon does not cover what it reads. "
            "Pass domain=Domain(...).",
            PrivacyWarning,
            stacklevel=3,
        )
        y = rows.targets if task == "regression" else model.classes_[rows.targets.astype(int)]
        return Domain.observe(rows.frame, y, task)
    _check_features(model, rows.frame)
    _check_target(model.domain, task)
    return model.domain


def _check_features(model: Any, frame: pd.DataFrame) -> None:
    described = [feature.name for feature in model.domain.features]
    if len(described) != frame.shape[1]:
        raise ValueError(
            f"X has {frame.shape[1]} columns but the domain describes {len(described)} features"
        )
    # An array has no names; a DataFrame's must match, or values would meet another's bounds.
    if not has_named_columns(model):
        return
    for column, name in zip(frame.columns, described, strict=True):
        if column != name:
            raise ValueError(
                f"X has column {column!r} where the domain describes feature {name!r}: "
                f"reorder or rename the columns, X[{described!r}]"
            )


def _check_target(domain: Domain, task: TaskKind) -> None:
    labels = [isinstance(value, str) for value in domain.target]
    fits = len(labels) == 2 and (not any(labels) if task == "regression" else all(labels))
    if not fits:
        needed = "bounds (lower, upper)" if task == "regression" else "two labels (strings)"
        raise ValueError(
            f"the domain's target must be {needed} for a {task} task"
            + (f", got {domain.target!r}" if domain.is_public else "")
        )


def _read_y(model: BaseEstimator, frame: pd.DataFrame, y: Any) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None."
        )
    with values_withheld("y"):
        y = column_or_1d(y, warn=True)
    if len(y) != len(frame):  # scikit-learn would say how many rows there are
        raise ValueError("X and y have inconsistent numbers of samples: y needs one value a row")
    if pd.isna(y).any():
        raise ValueError("Input y contains NaN: drop these rows or fill in their target")
    with values_withheld("y"):
        assert_all_finite(y, input_name="y")
    return np.asarray(y)
