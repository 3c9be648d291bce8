"""The rows of a fit that lie in a table: read in chunks, each checked like rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pandas as pd

from dprepro.data.cells import Kind, Marks
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

    Raises
    ------
    TableError
        If the table lacks a column, or one is of a type that does not fit.
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

        Raises
        ------
        ValueError
            On what the table, or `read`, refuses; after the last chunk if the rows are too few. No
            message quotes a value or counts rows.
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
