"""The rows of a fit that are not in memory: in a table, read in chunks, or in a Dask collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from dprepro.data.cell_values import Kind, Marks
from dprepro.data.domain import CategoricalFeature, Feature, NumericFeature
from dprepro.rows.readers import TableError, nearest_column
from dprepro.rows.table import Table

Rows = TypeVar("Rows")

LEAST_ROWS = 2
"""Rows that a fit needs, as for rows in memory."""

TOO_FEW_ROWS = f"the table has too few rows: a minimum of {LEAST_ROWS} sample(s) is required"


@dataclass(frozen=True, repr=False)
class ChunkedRows(Generic[Rows]):
    """The rows of a fit, of which one chunk at a time is in memory. For curators alone.

    Raises TableError if the table lacks a column, or one is of a type that does not fit.

    Attributes
    ----------
    table
        Where the rows lie.
    features
        Those of the public domain. Columns of the table that are none of them are not read.
    target
        The name of the column of targets.
    target_kind
        "numeric" for regression, "label" for classification.
    read
        Makes rows of a chunk's features, columns in the order of `features`, and its targets;
        raises ValueError on what a fit refuses.
    chunk_rows
        See `Table.chunks`.
    fit
        What tells this fit from others to the same rows, JSON-able.
    """

    table: Table
    features: tuple[Feature, ...]
    target: str
    target_kind: Kind
    read: Callable[[pd.DataFrame, pd.Series], Rows]
    chunk_rows: int | None = None
    fit: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_columns(self.table.names, self.names, self.target)
        numbers = [f.name for f in self.features if isinstance(f, NumericFeature)]
        if self.target_kind == "numeric":
            numbers.append(self.target)
        for name in numbers:
            if self.table.holds(name) not in ("numbers", "nothing", "fields"):
                raise TableError(
                    f"column {name!r} is to hold numbers, but the table says that it holds "
                    f"{self.table.holds(name)}: store it as numbers"
                )
        self.table.check(self._kinds)

    @property
    def names(self) -> list[str]:
        """The names of the features, in the order of the domain."""
        return [feature.name for feature in self.features]

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this fit to these rows from others, JSON-able.

        For a local file: see `Table.identity`.
        """
        return {
            "table": self.table.identity(), "features": self.names, "target": self.target,
            "chunk_rows": self.chunk_rows, "fit": dict(self.fit),
        }  # fmt: skip

    def chunks(self) -> Iterator[Rows]:
        """Yield all rows, in the order of the table. Every call reads the table again.

        Raises ValueError on what the table, or `read`, refuses; after the last chunk if the rows
        are too few. No message quotes a value or counts rows.
        """
        enough, before = 0, self.table.identity()
        for chunk in self.table.chunks(self._kinds, self.chunk_rows):
            enough = min(enough + len(chunk), LEAST_ROWS)
            yield self._read(chunk)
            del chunk  # before the next one is read
        if self.table.identity() != before:
            raise TableError(
                "the table changed while it was read, so that a row may have been read twice: let "
                "nothing write to it during a fit, and fit again"
            )
        if enough < LEAST_ROWS:
            raise ValueError(TOO_FEW_ROWS)

    def _read(self, chunk: pd.DataFrame) -> Rows:
        frame = {f.name: self._without_missing(chunk[f.name], f) for f in self.features}
        return self.read(pd.DataFrame(frame, copy=False), chunk[self.target])

    @property
    def _kinds(self) -> dict[str, Kind]:
        kinds: dict[str, Kind] = {
            f.name: "numeric" if isinstance(f, NumericFeature) else "text" for f in self.features
        }
        return {**kinds, self.target: self.target_kind}

    def _without_missing(self, column: pd.Series, feature: Feature) -> pd.Series:
        """Return a column in which texts that stand for a missing value are missing.

        A text that is also a category of the domain remains one.
        """
        if not isinstance(feature, CategoricalFeature) or not self.table.missing:
            return column
        marks = Marks(self.table.missing)
        names = column.cat.categories
        found = [name for name in names if name not in feature.categories and marks.have(name)]
        return column.cat.remove_categories(found) if found else column


def check_columns(columns: Sequence[str], features: Sequence[str], target: str | None) -> None:
    """Raise TableError if a table lacks a feature of the domain or the target, if this has a name.

    Or if the target is a feature, too.
    """
    if target in features:
        raise TableError(
            f"{target!r} is the target and a feature of the domain: take it out of one"
        )
    wanted = [*features, *([target] if target is not None else [])]
    for name in wanted:
        if name not in columns:
            what = "target" if name == target else "feature of the domain"
            raise TableError(
                f"the table has no column {name!r}, the {what}"
                f"{nearest_column(name, list(map(str, columns)), wanted)}"
            )


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

        Raises TableError if X and y are anything else, or columns are missing.

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


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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

    Raises TableError if a value would become another one, as a fraction among whole numbers would.
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
