"""A loaded table with its task, its public domain and its origin.

Which rows of a unit of privacy train, where it owns more than the card allows.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd

from dprepro.data.domain import Domain, TaskKind
from dprepro.runtime.arguments import Instance, OneOf, OrNone, text

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


KEY_BYTES = 32


def bounding_key(*derived_from: object) -> bytes:
    """Return the key by which rows are chosen: derived from these values, or secret without any.

    A derived key makes a fit repeatable. Whoever knows it knows which rows of a unit were kept,
    given all of them; the guarantee holds all the same.
    """
    if not derived_from:
        return secrets.token_bytes(KEY_BYTES)
    return hashlib.sha256(f"rows per unit {derived_from!r}".encode()).digest()


def kept_rows(
    X: pd.DataFrame, y: np.ndarray, units: np.ndarray, most: int, key: bytes
) -> np.ndarray:
    """Return which rows train: all of a unit, or the `most` with the smallest keyed digests.

    The digest of a row is an HMAC-SHA256 of its unit and its values, shortened to 64 bits; of equal
    ones the first row is kept. So the choice among the rows of a unit follows from these rows and
    the key, and from no other row: without one unit, the same rows of all others are kept.

    Parameters
    ----------
    X : (n, K)
        Features.
    y : (n,)
        Codes or float64 targets.
    units : object (n,)
        Whose row each one is.

    Returns
    -------
    int64 (m,)
        Row numbers, ascending.
    """
    owners = pd.factorize(units)[0]
    is_crowded = np.bincount(owners, minlength=1)[owners] > most
    crowded = np.flatnonzero(is_crowded)
    digests = _digests(X.iloc[crowded], y[crowded], units[crowded], key)
    order = np.lexsort((digests, owners[crowded]))  # stable: of equal ones the first stays first
    sorted_owners = owners[crowded][order]
    place = np.arange(len(order)) - np.searchsorted(sorted_owners, sorted_owners)
    is_kept = ~is_crowded
    is_kept[crowded[order[place < most]]] = True
    return np.flatnonzero(is_kept)


def _digests(X: pd.DataFrame, y: np.ndarray, units: np.ndarray, key: bytes) -> np.ndarray:
    """Return the digest of each row, uint64 (n,)."""
    # Of the values and texts themselves, so that no code that depends on other rows takes part.
    values = pd.util.hash_pandas_object(X, index=False).to_numpy("<u8")
    targets = np.ascontiguousarray(y, dtype="<f8")
    texts = (
        b"\0".join([row.tobytes(), target.tobytes(), unit.encode()])
        for row, target, unit in zip(values, targets, units, strict=True)
    )
    digests = [int.from_bytes(hmac.digest(key, text, "sha256")[:8], "big") for text in texts]
    return np.array(digests, dtype=np.uint64)
