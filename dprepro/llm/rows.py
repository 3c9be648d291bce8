"""The rows of a fit: read and normalised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from dprepro.estimators.inputs import checked
from dprepro.llm.maps import LARGEST_INPUT


@dataclass(frozen=True)
class NumericRows:
    """The rows of a fit.

    Attributes
    ----------
    X
        Normalised inputs, float32 (n, D).
    labels
        Codes 0..K-1, int64 (n,).
    """

    X: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def numeric_rows(model: Any, X: Any, y: Any, known: Sequence[Any] | None = None) -> NumericRows:
    """Return the rows, normalised; set ``classes_``.

    Parameters
    ----------
    model
        Its `centre` and `spread` normalise the inputs.
    X, y
        Numbers (n, D) and labels (n,).
    known
        The labels of a domain; None takes those that occur in y.

    Raises
    ------
    ValueError
        On missing or infinite values, fewer than two classes, or labels other than those known.
    """
    X, y = checked(model, X, y, dtype=np.float32, ensure_min_samples=2)
    check_classification_targets(y)
    model.classes_ = np.unique(y) if known is None else _known_classes(y, known)
    if model.classes_.size < 2:
        raise ValueError(
            f"{type(model).__name__}: y must hold two classes or more, but it holds 1 class"
        )
    labels = np.searchsorted(model.classes_, y).astype(np.int64)
    return NumericRows(normalised(model, X), labels)


def normalised(model: Any, X: np.ndarray) -> np.ndarray:
    """Return (X - centre) / spread, cut off at +-LARGEST_INPUT, float32 (n, D)."""
    if not (model.centre == 0 and model.spread == 1):
        X = (X - np.float32(model.centre)) / np.float32(model.spread)
    # Longer rows would overflow float32 in their scores and norms.
    if X.min() >= -LARGEST_INPUT and X.max() <= LARGEST_INPUT:
        return X
    return np.clip(X, -LARGEST_INPUT, LARGEST_INPUT)


def _known_classes(y: np.ndarray, known: Sequence[Any]) -> np.ndarray:
    """Return the labels of a domain, sorted, (K,): as strings, or as codes 0..K-1 as y has them."""
    found = np.unique(y)
    classes = np.unique(known) if found.dtype.kind in "OU" else np.arange(len(known))
    if np.setdiff1d(found, classes).size:
        raise ValueError(
            f"y must hold the domain's labels {', '.join(map(repr, known))} as text, or their "
            "codes 0, 1, ... as numbers, but it holds something else: np.unique(y) shows what"
        )
    return classes
