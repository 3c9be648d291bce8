"""The rows of a fit: read and normalised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from dprepro.estimators.inputs import checked
from dprepro.estimators.targets import classes_among
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
    model.classes_ = classes_among(model, y, known)
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
