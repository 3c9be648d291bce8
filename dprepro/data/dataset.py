"""A loaded table with its task, its public domain and its origin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.data.domain import Domain, TaskKind


@dataclass(frozen=True)
class Dataset:
    """A loaded and verified table.

    Attributes
    ----------
    name
        The card's name, e.g. ``"adult"``.
    X
        DataFrame of shape (n, K). Numeric columns are float64 (NaN where missing), or uint8
        throughout where the source has bytes; categorical
        columns have dtype ``category`` with string categories (missing is NaN unless the card
        makes it a category of its own).
    y
        Shape (n,). int64 codes 0..C-1 for classification (for binary tasks 1 is the card's
        positive label), float64 for regression.
    task
        "binary", "multiclass" or "regression".
    domain
        The card's public domain, or None where the card gives none: then only
        ``domain: observed`` can be run.
    source
        Where the bytes came from, in words (a path, a URL, "scikit-learn").
    sha256
        Digest of the source file(s); for sources without a file, of the values.
    test
        The donors' own test rows where they were asked for and the card has them, else None.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    task: TaskKind
    domain: Domain | None
    source: str
    sha256: str
    test: Dataset | None = None
