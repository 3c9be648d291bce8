"""What LazyBB asks of a round: choices by smooth weights, and by how much a row moves each.

Boolean columns are stored so that all of their sums are one sparse product of whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from dprepro.estimators.inputs import checked
from dprepro.methods.lazybb.sensitivity import (
    error_sensitivity,
    gain_sensitivity,
    leaf_sensitivity,
    smooth_distance,
    unit_of,
)
from dprepro.privacy.query import Query, SensitivityError


@dataclass(frozen=True)
class SmoothQuery(Query):
    """A choice by the weights of one round, of which no row has more than 1 / (kappa n).

    Attributes
    ----------
    density, rows
        kappa and n. The curator projects to this density.
    dropped
        How many of its low bits an exact answer drops: the curator answers in whole numbers of
        `unit`.

    Raises
    ------
    SensitivityError
        On a number of bits below 0, and as `Query`.
    """

    density: float
    rows: int
    dropped: int

    def check(self) -> None:
        """See `Query`."""
        if self.dropped < 0:
            raise SensitivityError(f"an answer can drop 0 bits or more, got {self.dropped!r}")
        super().check()

    @property
    def unit(self) -> float:
        """What the answer counts in; all rows weigh 1 together."""
        return unit_of(self.dropped)

    @property
    def zeta(self) -> float:
        """The distance between the weights of neighbours, 1 / (kappa n) and a little more."""
        return smooth_distance(self.density, self.rows)


@dataclass(frozen=True)
class RuleQuery(SmoothQuery):
    """The 1-Rule of a round, by its weighted error: a position among `errors`."""

    @property
    def enforced(self) -> float:
        """See `sensitivity.error_sensitivity`."""
        return error_sensitivity(self.zeta, self.unit)


@dataclass(frozen=True)
class SplitQuery(SmoothQuery):
    """The next split of a tree, by its gain: leaf times columns plus column."""

    @property
    def enforced(self) -> float:
        """See `sensitivity.gain_sensitivity`."""
        return gain_sensitivity(self.zeta, self.unit)


@dataclass(frozen=True)
class LabelQuery(SmoothQuery):
    """The labels -1 and 1 of all leaves, of which there are so many, by the weights of both."""

    leaves: int

    @property
    def enforced(self) -> float:
        """See `sensitivity.leaf_sensitivity`."""
        return leaf_sensitivity(self.zeta, self.unit, self.leaves)


class Literals:
    """n rows of d Boolean columns.

    Parameters
    ----------
    X
        Of 0 and 1, any dtype, (n, d).
    """

    def __init__(self, X: np.ndarray) -> None:
        self.rows, self.columns = X.shape
        # By hand: SciPy's way from a dense table takes four times as long.
        is_true = np.not_equal(X.T, 0, order="C")
        counts = is_true.sum(axis=1)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        places = np.flatnonzero(is_true) - np.repeat(np.arange(self.columns) * self.rows, counts)
        self._by_column = sparse.csc_array(
            (np.ones(len(places), np.int64), places, bounds), shape=X.shape
        )
        self._transposed = self._by_column.T

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return, for each column, the sum of `values` over the rows where it is true.

        `values` is int64 (n,) or (n, k); the result int64 (d,) or (d, k). It is exact unless a sum
        of absolute values exceeds 2^63.

        Raises
        ------
        TypeError
            If the values are not whole numbers: sums of others depend on the order of rows.
        """
        if values.dtype != np.int64:
            raise TypeError(f"sums are of whole numbers, int64, got {values.dtype}")
        return np.asarray(self._transposed @ values)

    def true_rows(self, column: int) -> np.ndarray:
        """Return the numbers of the rows where a column is true, ascending."""
        bounds = self._by_column.indptr
        return self._by_column.indices[bounds[column] : bounds[column + 1]]


def read_literals(model: Any, X: Any, *, reset: bool) -> Literals:
    """Return the columns of X, (n, d); a fit says `reset`.

    Raises
    ------
    ValueError
        On entries other than 0 and 1, too few rows, or other columns than those of the fit.
    """
    array = checked(model, X, reset=reset, ensure_min_samples=2 if reset else 1)
    if not ((array == 0) | (array == 1)).all():  # isin takes six times as long
        raise ValueError(
            f"{type(model).__name__} takes Boolean columns, 0 or 1, but X has other values; "
            "encode it with dprepro.data.encode.BooleanEncoder"
        )
    return Literals(array)


def column_names(X: Any, columns: int) -> list[tuple[str, str]]:
    """Return (feature, value) of each column, as `BooleanEncoder` labels them, or (name, "1")."""
    labels = X.columns if isinstance(X, pd.DataFrame) else [f"x{j}" for j in range(columns)]
    return [label if isinstance(label, tuple) else (str(label), "1") for label in labels]
