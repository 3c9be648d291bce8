"""The rows of a fit in a Dask DataFrame or Array: none of them is in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from dprepro.data.domain import Feature
from dprepro.rows.chunked import check_columns
from dprepro.rows.readers import TableError

Rows = TypeVar("Rows")

_PACKAGES = ("dask", "dask_expr")
_NUMBERS = "biuf"
"""Kinds of dtypes that hold numbers: booleans, whole numbers, floating-point numbers."""


@dataclass(frozen=True, repr=False)
class CollectionRows(Generic[Rows]):
    """The rows of a fit, one partition of a Dask collection after the other. For curators alone.

    Attributes
    ----------
    partitions : pairs of Delayed
        The features of each partition and its targets, as `reading` takes them.
    names : list of str
        The names of the features.
    features, targets
        As an estimator would get them, without any row: they have names and types.
    reading
        Makes rows of what the pairs come to. It travels to the workers.
    whole
        How a user looks at partition ``{k}`` himself.
    """

    partitions: Sequence[tuple[Any, Any]]
    names: list[str]
    features: pd.DataFrame | np.ndarray
    targets: pd.Series | np.ndarray
    reading: Callable[[Any, Any], Rows]
    whole: str

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        features: Sequence[Feature],
        read: Callable[[pd.DataFrame, Any], Rows],
    ) -> CollectionRows[Rows]:
        """Return the rows of a fit to Dask collections; nothing is computed.

        Parameters
        ----------
        X
            A Dask DataFrame, of which the columns that `features` names are read, or a Dask Array
            (n, K).
        y
            Targets: a Dask Series or Array whose partitions are those of X, or, for a DataFrame,
            the name of a column of X.
        features
            Those of the public domain.
        read
            Makes rows of the features of a partition and its targets; raises ValueError on what a
            fit refuses. It must be picklable.

        Raises
        ------
        TableError
            If X and y are anything else, or columns are missing.
        """
        kind = _kind(X)
        if kind == "DataFrame":
            return _of_frame(X, y, features, read)
        if kind == "Array":
            return _of_array(X, y, read)
        raise TableError(
            f"X must be a Dask DataFrame or a Dask Array, got {type(X).__name__} of Dask"
        )


def is_collection(X: Any) -> bool:
    """Whether X is of Dask. Dask is not imported for that."""
    return any(base.__module__.partition(".")[0] in _PACKAGES for base in type(X).__mro__)


@dataclass(frozen=True)
class _ReadFrame(Generic[Rows]):
    """Reads a partition of a DataFrame in the types that the whole DataFrame states.

    So a value reads the same in any partition, whatever the others hold.
    """

    features: pd.DataFrame
    targets: pd.Series
    read: Callable[[pd.DataFrame, Any], Rows]

    def __call__(self, X: pd.DataFrame, y: pd.Series | None) -> Rows:
        """Return the rows; without y, the column of targets is in X."""
        wanted = [*self.features.columns, *([self.targets.name] if y is None else [])]
        held = list(X.columns)
        for name in wanted:
            if held.count(name) != 1:
                found = "has several of this name" if name in held else "lacks it"
                raise TableError(
                    f"column {name!r} is stated for all of X, but a partition {found}: give all "
                    "partitions the same columns before the fit"
                )
        y = X[self.targets.name] if y is None else y
        frame = {name: _as_stated(X[name], self.features[name]) for name in self.features.columns}
        return self.read(pd.DataFrame(frame, copy=False), _as_stated(y, self.targets))


@dataclass(frozen=True)
class _ReadArray(Generic[Rows]):
    """Reads a block of an Array of the types that the whole Array states."""

    names: list[str]
    features: np.ndarray
    targets: np.ndarray
    read: Callable[[pd.DataFrame, Any], Rows]

    def __call__(self, X: np.ndarray, y: np.ndarray) -> Rows:
        """Return the rows."""
        for name, block, stated in (("X", X, self.features), ("y", y, self.targets)):
            if np.asarray(block).dtype.kind not in _read_alike(stated.dtype):
                raise TableError(
                    f"{name} is stated to be {stated.dtype}, but a block holds something else: "
                    f"state its type with {name}.astype(...) before the fit"
                )
        array = np.asarray(X, dtype=np.float64)
        return self.read(pd.DataFrame(array, columns=self.names, copy=False), y)


def _of_frame(X: Any, y: Any, features: Sequence[Feature], read: Any) -> CollectionRows[Any]:
    names = [feature.name for feature in features]
    is_named = isinstance(y, str)
    if not is_named and _kind(y) != "Series":
        raise TableError(
            "X is a Dask DataFrame, so y must be a Dask Series of the same partitions, or the name "
            f"of a column of X, got {type(y).__name__}"
        )
    check_columns(list(X.columns), names, y if is_named else None)
    targets = X[y] if is_named else y
    if targets.npartitions != X.npartitions or (
        targets.known_divisions and X.known_divisions and targets.divisions != X.divisions
    ):
        raise TableError(
            "X and y must have the same partitions: take y from the same DataFrame as X, or give "
            "the name of its column"
        )
    if is_named:
        pairs = [(part, None) for part in X[[*names, y]].to_delayed()]
    else:
        pairs = list(zip(X[names].to_delayed(), y.to_delayed(), strict=True))
    none, no_targets = X[names]._meta, targets._meta
    reading = _ReadFrame(none, no_targets, read)
    return CollectionRows(pairs, names, none, no_targets, reading, "X.partitions[{k}].compute()")


def _of_array(X: Any, y: Any, read: Any) -> CollectionRows[Any]:
    if _kind(y) != "Array":
        raise TableError(
            f"X is a Dask Array, so y must be a Dask Array, too, got {type(y).__name__}"
        )
    if X.ndim != 2 or y.ndim != 1:
        raise TableError(
            f"X must have 2 dimensions and y 1, got {X.ndim} and {y.ndim}: rows by features, and "
            "one value a row"
        )
    if X.dtype.kind not in _NUMBERS:
        raise TableError("an array must hold numbers, but X holds something else: pass a DataFrame")
    if not _chunked_alike(X, y):
        raise TableError(
            "X and y must be chunked alike along the rows: pass y.rechunk(X.chunks[0]), or X and y "
            "of the same DataFrame"
        )
    if X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    names = [f"x{k}" for k in range(X.shape[1])]
    pairs = list(zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True))
    none, no_targets = np.empty((0, len(names)), X.dtype), np.empty(0, y.dtype)
    reading = _ReadArray(names, none, no_targets, read)
    return CollectionRows(pairs, names, none, no_targets, reading, "X.blocks[{k}].compute()")


def _kind(collection: Any) -> str | None:
    """Return what a collection of Dask is; None if it is something else."""
    if not is_collection(collection):
        return None
    kinds = {base.__name__ for base in type(collection).__mro__}
    return next((kind for kind in ("DataFrame", "Series", "Array") if kind in kinds), None)


def _chunked_alike(X: Any, y: Any) -> bool:
    rows, targets = X.chunks[0], y.chunks[0]
    unknown = any(np.isnan(size) for size in (*rows, *targets))
    return len(rows) == len(targets) if unknown else rows == targets


def _read_alike(stated: np.dtype) -> str:
    """Return the kinds of dtypes whose values read as those of the stated dtype do."""
    return _NUMBERS if stated.kind in _NUMBERS else stated.kind


def _as_stated(column: pd.Series, stated: pd.Series) -> pd.Series:
    """Return a column in the type that is stated.

    Raises
    ------
    TableError
        If a value would become another one, as a fraction among whole numbers would.
    """
    if column.dtype == stated.dtype or isinstance(stated.dtype, pd.CategoricalDtype):
        return column
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    # pandas quotes the value, which is private.
    with suppress(TypeError, ValueError, OverflowError):
        cast = column.astype(stated.dtype)
        missing = column.isna().to_numpy()
        is_kept = np.array_equal(cast.isna().to_numpy(), missing) and bool(
            (cast[~missing] == column[~missing]).all()
        )
        if is_kept:
            return cast
    raise TableError(
        f"column {stated.name!r} is stated to be {stated.dtype}, but a partition holds something "
        "else: state its type with X.astype(...) before the fit"
    )
