"""A loaded table with its task, its public domain and its origin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.data.domain import Domain, TaskKind


@dataclass(frozen=True, repr=False)
class Dataset:
    """A loaded and verified table. Its repr shows no row, and not how many there are.

    Attributes
    ----------
    name
        The card's name, e.g. ``"adult"``.
    X
        DataFrame of shape (n, K). Numeric columns are float64 (NaN where missing), or all uint8 if
        the source has bytes. Categorical columns have dtype ``category`` with string categories
        (missing is NaN unless the card makes it a category).
    y
        Shape (n,). int64 codes 0..C-1 for classification (for binary tasks 1 is the card's
        positive label), float64 for regression.
    task
        "binary", "multiclass" or "regression".
    domain
        The card's public domain, or None if the card has none. A config then needs
        ``domain: observed``.
    source
        Where the data came from: a path, a URL, or "scikit-learn".
    sha256
        Digest of the source files, or of the values if the source has no file.
    test
        The published test rows, or None if they were not asked for or the card has none.
    units
        Whose row each one is, object of shape (n,): texts of the card's `unit`. None if the card
        names none.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    task: TaskKind
    domain: Domain | None
    source: str
    sha256: str
    test: Dataset | None = None
    units: np.ndarray | None = None

    def __repr__(self) -> str:
        """Return name, task, number of features and source: notebooks and logs print it."""
        return (
            f"Dataset(name={self.name!r}, task={self.task!r}, features={self.X.shape[1]}, "
            f"source={self.source!r})"
        )
