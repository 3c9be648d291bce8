"""A loaded table with its task, its public domain and its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd

from dprepro.data.domain import Domain, TaskKind
from dprepro.plain import Instance, OneOf, OrNone, text

_ROWS = Instance(np.ndarray, "an array of NumPy, such as y.to_numpy()")
_FRAME, _DOMAIN = Instance(pd.DataFrame, "a DataFrame of pandas"), Instance(Domain, "a Domain")


@dataclass(frozen=True, repr=False)
class Dataset:
    """A loaded and verified table: what stands at one position of X, y and units is one row.

    Its repr shows no row, and not how many there are.

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

    Raises
    ------
    ValueError
        If X, y and units do not have as many rows, or the labels of X are not 0, 1, ..., n - 1: by
        any others its rows could be put beside those of another table. Also on a field of another
        type.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text("name", self.name))
        object.__setattr__(self, "X", _FRAME("X", self.X))
        object.__setattr__(self, "y", _ROWS("y", self.y))
        object.__setattr__(self, "task", OneOf(get_args(TaskKind))("task", self.task))
        object.__setattr__(self, "domain", OrNone(_DOMAIN)("domain", self.domain))
        object.__setattr__(self, "source", text("source", self.source))
        object.__setattr__(self, "sha256", text("sha256", self.sha256))
        object.__setattr__(self, "test", OrNone(Instance(Dataset, "a Dataset"))("test", self.test))
        object.__setattr__(self, "units", OrNone(_ROWS)("units", self.units))
        units = self.y if self.units is None else self.units
        whole = pd.RangeIndex(len(self.y))
        is_plain = isinstance(self.X.index, pd.RangeIndex) and self.X.index.equals(whole)
        if not is_plain or len(units) != len(self.y):
            raise ValueError(
                f"dataset {self.name!r}: X, y and units are rows by position: give as many of "
                "each, and X.reset_index(drop=True)"
            )

    def __repr__(self) -> str:
        """Return name, task, number of features and source: notebooks and logs print it."""
        return (
            f"Dataset(name={self.name!r}, task={self.task!r}, features={self.X.shape[1]}, "
            f"source={self.source!r})"
        )
