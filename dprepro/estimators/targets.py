"""Labels and targets, as every estimator takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from dprepro.data.domain import Domain, TaskKind
from dprepro.estimators.columns import check_array, values_withheld
from dprepro.runtime.errors import HOW_NUMBERS_LOOK

LARGEST_TARGET = 2.0**900
"""Targets are at most so large: sums and squares of what is predicted stay numbers."""
LEAST_RANGE = 2.0**-900
"""Targets that differ do so by at least as much: what is far below has fewer digits."""

_USUAL_SIZES = 2.0**-10, 2.0**30
_FAR_FROM_ZERO = 2.0**12
"""Ranges away from 0, in float32 with 12 binary digits left."""


def task_of_labels(y: Any, domain: Domain | None) -> TaskKind:
    """Return "multiclass" if there are more than two labels, else "binary".

    They are those of the domain; without one, those of y, a column in memory.
    """
    if domain is not None:
        return "multiclass" if len(domain.target) > 2 else "binary"
    found, several = np.asarray(y), False
    if found.ndim == 1 or found.shape[1:] == (1,):
        with suppress(TypeError):  # of what is no label; the reader says so
            several = pd.Series(found.ravel()).nunique() > 2
    return "multiclass" if several else "binary"


def read_labels(
    model: BaseEstimator,
    frame: pd.DataFrame,
    y: Any,
    domain: Domain | None = None,
    task: TaskKind = "binary",
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, sorted, and y as their float32 codes 0, 1, ... (n,).

    With a public `domain` the classes are its own, whichever of them occur: y holds its labels as
    text, or their codes 0, 1, ... as numbers. Else they are those that occur. For a binary task
    there are two.

    Raises
    ------
    ValueError
        On missing or infinite labels, those that the domain rules out, or other than two classes.
    """
    y = _read_y(model, frame, y)
    if domain is not None and domain.is_public:
        if y.dtype == object and not any(isinstance(value, str) for value in y):
            # None is a text, as texts and others are not mixed: float64, whatever numbers they are.
            with suppress(TypeError, ValueError, OverflowError):
                y = y.astype(np.float64)
        classes = public_classes(model, domain, y, task)
    else:
        classes = _observed_classes(model, y, task)
    codes = np.zeros(len(y), np.float32)
    for code, label in enumerate(classes[1:], start=1):
        codes[_is(y, label)] = code
    return labels_as_kept(classes), codes


def labels_as_kept(labels: np.ndarray) -> np.ndarray:
    """Return labels as a model file gives them back: numbers are int64, float64 or bool."""
    if any(isinstance(label, str) for label in labels):
        return labels
    return np.array(labels.tolist())


def public_classes(
    model: BaseEstimator, domain: Domain, y: np.ndarray, task: TaskKind = "binary"
) -> np.ndarray:
    """Return the labels of a public domain, sorted, as y of this dtype holds them.

    Raises ValueError if y holds anything else.
    """
    check_target(domain, task)
    # By the type of y alone: what its rows hold must not decide how a row is read.
    if y.dtype.kind in "biuf":
        codes = np.arange(len(domain.target))
        classes = codes if y.dtype.kind == "b" and codes.size > 2 else codes.astype(y.dtype)
    else:
        texts = sorted(map(str, domain.target))
        # An array of texts drops a NUL at the end, and then two labels can be one.
        as_objects = y.dtype == object or any(text.endswith("\0") for text in texts)
        classes = np.array(texts, dtype=object if as_objects else None)
    known = np.zeros(len(y), bool)
    for label in classes:
        known |= _is(y, label)
    if y.dtype.kind not in "biufOUT" or not known.all():
        codes_in_words = "0 and 1" if classes.size == 2 else f"0 to {classes.size - 1}"
        raise ValueError(
            f"{type(model).__name__}: y must hold the domain's labels "
            f"{' and '.join(map(repr, domain.target))} as text, or their codes {codes_in_words} as "
            "numbers, but it holds something else: np.unique(y) shows what"
        )
    return classes


def classes_among(model: BaseEstimator, y: np.ndarray, known: Sequence[Any] | None) -> np.ndarray:
    """Return two labels or more, sorted, (K,): those of a domain, or None for those that occur.

    Known labels are texts if y has texts, and else their codes 0..K-1. Raises ValueError if y holds
    anything else, or there is one class.
    """
    found = classes = np.unique(y)
    if known is not None:
        classes = np.unique(known) if found.dtype.kind in "OU" else np.arange(len(known))
    if np.setdiff1d(found, classes).size:
        raise ValueError(
            f"y must hold the domain's labels {', '.join(map(repr, known or ()))} as text, or "
            "their codes 0, 1, ... as numbers, but it holds something else: np.unique(y) shows what"
        )
    if classes.size < 2:
        raise ValueError(
            f"{type(model).__name__}: y must hold two classes or more, but it holds 1 class"
        )
    return classes


def _is(y: np.ndarray, label: Any) -> np.ndarray:
    """Return which labels are this one, bool (n,)."""
    # NumPy makes a text an array of texts, and so drops a NUL at its end.
    same: np.ndarray = y == (np.array(label, dtype=object) if y.dtype == object else label)
    return same


def _observed_classes(model: BaseEstimator, y: np.ndarray, task: TaskKind) -> np.ndarray:
    if y.dtype.kind in "biu":
        ends = np.array([y.min(), y.max()])
        if ends[0] != ends[1] and ((y == ends[0]) | (y == ends[1])).all():
            return ends  # what follows takes ten times as long
    with values_withheld("y"):
        check_classification_targets(y)
    classes = np.unique(y)
    if classes.size != 2 and not (task == "multiclass" and classes.size > 2):
        raise ValueError(
            f"{type(model).__name__}: Only binary classification is supported and y must hold "
            f"both labels, but it holds {'1 class' if classes.size == 1 else 'more classes'}"
        )
    return classes


def read_targets(model: BaseEstimator, frame: pd.DataFrame, y: Any) -> np.ndarray:
    """Return y as float64 (n,); ValueError if it is missing, infinite or not a number."""
    y = _read_y(model, frame, y)
    try:
        numbers = y.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        # numpy quotes the value, which is private.
        raise ValueError(
            f"{type(model).__name__}: y must hold numbers, but some rows hold something else. "
            + HOW_NUMBERS_LOOK
        ) from None
    with values_withheld("y"):
        assert_all_finite(numbers, input_name="y")
    if (np.abs(numbers) > LARGEST_TARGET).any():
        raise ValueError(f"Input y has values beyond {LARGEST_TARGET:.2g}: scale it")
    return np.asarray(numbers)


def scaled_targets(estimator: type[Any]) -> Any:
    """Return another library's regressor that takes targets of any size, as `read_targets` does.

    Such libraries hold targets in float32, or stop where squares fall below 1e-16. So targets that
    are huge, tiny, or far from 0 for their range are centred and multiplied by a power of two, and
    predictions come back in the target's unit. Others are given as they are.
    """

    def fit(self: Any, X: Any, y: Any, **more: Any) -> Any:
        y = read_targets(self, X, y)
        self._centre, self._power = _centre_and_power(y)
        estimator.fit(self, X, np.ldexp(y - self._centre, -self._power), **more)
        return self

    def predict(self: Any, X: Any, **more: Any) -> np.ndarray:
        found = np.asarray(estimator.predict(self, X, **more))
        if not (self._power or self._centre):
            return found
        return np.ldexp(found.astype(np.float64), self._power) + self._centre

    def reduce(self: Any) -> tuple[Any, ...]:
        return _unpickled, (estimator,), self.__getstate__()

    own = {"fit": fit, "predict": predict, "__reduce__": reduce, "__module__": estimator.__module__}
    return type(estimator.__name__, (estimator,), own)


def _unpickled(estimator: type[Any]) -> Any:
    """Return a regressor of `scaled_targets` to unpickle: its class has no name to import."""
    return scaled_targets(estimator)()


def _centre_and_power(y: np.ndarray) -> tuple[float, int]:
    low, high = float(y.min()), float(y.max())
    width, size = high - low, max(abs(low), abs(high))
    if 0 < width < LEAST_RANGE:
        raise ValueError(f"Input y has a range below {LEAST_RANGE:.2g}: scale it")
    if size <= _USUAL_SIZES[1] and (
        width == 0 or (width >= _USUAL_SIZES[0] and size <= _FAR_FROM_ZERO * width)
    ):
        return 0.0, 0
    return low + width / 2, math.frexp(width)[1]


def check_target(domain: Domain, task: TaskKind) -> None:
    """Raise ValueError if the domain's target is not of the task's kind."""
    labels = [isinstance(value, str) for value in domain.target]
    fits = len(labels) == 2 or (task == "multiclass" and len(labels) > 2)
    if not (fits and (not any(labels) if task == "regression" else all(labels))):
        needed = {
            "regression": "bounds (lower, upper)", "binary": "two labels (strings)",
            "multiclass": "two labels or more (strings)",
        }[task]  # fmt: skip
        raise ValueError(
            f"the domain's target must be {needed} for a {task} task"
            + (f", got {', '.join(map(str, domain.target))}" if domain.is_public else "")
        )
    if task == "regression":
        lower, upper = map(float, domain.target)
        fits = -LARGEST_TARGET <= lower <= upper <= LARGEST_TARGET
        if not (fits and (lower == upper or upper - lower >= LEAST_RANGE)):
            raise ValueError(
                f"the domain's target must be finite bounds with lower <= upper, at most "
                f"{LARGEST_TARGET:.2g} in size and, if they differ, at least {LEAST_RANGE:.2g} "
                "apart" + (f", got {lower:g}, {upper:g}" if domain.is_public else ": scale y")
            )


def target_range(domain: Domain) -> tuple[float, float]:
    """Return the bounds of the target; ValueError if nothing lies between them."""
    lower, upper = (float(bound) for bound in domain.target)
    if not (lower < upper and math.isfinite(upper - lower)):
        raise ValueError(
            "the target's range is empty or not finite, so there is nothing to learn: give "
            "public target bounds, or more than n_samples=1 distinct value"
        )
    return lower, upper


def _read_y(model: BaseEstimator, frame: pd.DataFrame, y: Any) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None."
        )
    check_array("y", y)
    with values_withheld("y"):
        y = column_or_1d(y, warn=True)
    if len(y) != len(frame):  # scikit-learn would say how many rows there are
        raise ValueError("X and y have inconsistent numbers of samples: y needs one value a row")
    if pd.isna(y).any():
        raise ValueError("Input y contains NaN: drop these rows or fill in their target")
    with values_withheld("y"):
        assert_all_finite(y, input_name="y")
    y = np.asarray(y)
    if y.dtype == object and not any(isinstance(value, str) for value in y):
        y = pd.Series(y).infer_objects().to_numpy()  # integers and Booleans in objects
    return y.astype(np.float64) if y.dtype.kind == "f" else y
