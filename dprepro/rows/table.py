"""A table that is read in chunks: from parquet files, a CSV file, or a dataset of pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset

from dprepro.data import cell_values
from dprepro.data.cell_values import Holds, Kind
from dprepro.rows.readers import CsvFile, CsvSettings, ParquetFiles, TableError, nearest_column

CHUNK_ROWS = 2**18
"""Rows a chunk of up to `CHUNK_CELLS / CHUNK_ROWS` = 32 columns."""

CHUNK_CELLS = 2**23
"""Values a chunk of more columns: 64 MiB as float64."""

CSV_SUFFIXES = (".csv", ".csv.gz", ".data", ".txt", ".tsv")
PARQUET_SUFFIXES = (".parquet", ".pq")


class Files(Protocol):
    """Files of one format, which have one schema.

    Attributes
    ----------
    schema
        The columns that can be read, in the order of the files.
    has_types
        Whether the types are those of the values; a CSV has fields only.
    missing
        The texts that stand for a missing value among categories.
    """

    schema: pa.Schema
    has_types: bool
    missing: tuple[str, ...]

    def batches(self, wanted: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of `wanted` in its types, at most `rows` rows at a time."""

    def identity(self) -> dict[str, Any]:
        """Return what `Table.identity` says of the files."""

    def line_of(self, row: int) -> int | None:
        """Return the line in which a row begins; None of files that have no lines."""

    @property
    def known_rows(self) -> int | None:
        """How many rows there are, if the files say so: private."""

    @property
    def bytes_read(self) -> tuple[int, int] | None:
        """How much of a text file the latest pass has read, and its size; else None."""


class Table:
    """A table whose rows do not have to fit into memory. To be made by `open`.

    Rows come in one order: files by their paths, then as they lie in each file. Only the columns
    that are asked for are read, one chunk at a time.

    Attributes
    ----------
    store, encrypted
        See `open`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("age,city\\n30,Bonn\\n,Lyon\\n")
    >>> table = Table.open(path)
    >>> table.names
    ['age', 'city']
    >>> next(table.chunks({"age": "numeric"}))["age"].tolist()
    [30.0, nan]
    """

    store: Path | None = None
    encrypted = False

    def __init__(self, files: Files) -> None:
        self._files = files

    @classmethod
    def open(
        cls,
        source: Any,
        csv: CsvSettings | None = None,
        *,
        store: str | Path | None = None,
        encrypted: bool = False,
    ) -> Table:
        """Return the table at a path or in a dataset; no row of it is read.

        Raises TableError if there is nothing, or nothing that can be read in chunks.

        Parameters
        ----------
        source
            The path of a parquet file, of a folder of parquet files (with hive partitions, such as
            ``year=2024/``), or of a CSV file, plain or gzipped; or a `pyarrow.dataset.Dataset` of
            parquet files. A `Table` is returned as it is, but for what follows.
        csv
            How a CSV file is read.
        store
            The folder where a fit keeps the rows as whole numbers while it lasts. A fit that was
            interrupted goes on from there. None is a folder of the system's, which another fit
            does not find, and which a process that is killed leaves there.
        encrypted
            Whether they are encrypted there, with a key that is in memory alone. Then no other fit
            can go on from there.
        """
        table = source if isinstance(source, Table) else Table(_files_of(source, csv))
        if store is None and not encrypted:
            return table
        table = copy(table)
        table.store = table.store if store is None else Path(store).expanduser().absolute()
        table.encrypted = encrypted or table.encrypted
        return table

    @property
    def names(self) -> list[str]:
        """The names of the columns, in the order of the files."""
        return list(self._files.schema.names)

    @property
    def missing(self) -> tuple[str, ...]:
        """The texts that stand for a missing value among categories: of a CSV. Empty elsewhere."""
        return self._files.missing

    def nearest(self, name: str, wanted: Collection[str]) -> str:
        """Return what to say of a column that is not there; see `nearest_column`."""
        return nearest_column(name, self.names, wanted)

    def holds(self, name: str) -> Holds:
        """Return what a column holds, by its type."""
        return cell_values.holds(self._type(name)) if self._files.has_types else "fields"

    def stored_type(self, name: str) -> pa.DataType:
        """Return the type of the values of a column; that of a CSV's fields is text."""
        return cell_values.read_as(self._type(name), "text")

    def label_dtype(self, name: str) -> np.dtype:
        """Return the dtype that labels of a column have: object for text."""
        return cell_values.label_dtype(self._type(name))

    def check(self, kinds: Mapping[str, Kind]) -> None:
        """Raise TableError if a column is not there, or cannot be read in the kind asked for."""
        for name, kind in kinds.items():
            stored = self._type(name)
            if self._files.has_types and not cell_values.can_be_read(stored, kind):
                needed = {"numeric": "numbers", "text": "categories", "label": "labels"}[kind]
                raise TableError(
                    f"column {name!r} of the table is to hold {needed}, but its type is {stored}: "
                    "store it as another type"
                )

    def chunks(
        self, kinds: Mapping[str, Kind], chunk_rows: int | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows in order, the columns as `kinds` names them; see `cell_values.to_pandas`.

        Raises TableError as `check`, and if a file is damaged, or a column of numbers holds text.
        The message quotes no value and counts no rows.

        Parameters
        ----------
        kinds
            The columns to read, and how.
        chunk_rows
            Rows of each chunk but the last. None is `CHUNK_ROWS`, or fewer if the columns are
            many.
        """
        self.check(kinds)
        rows = chunk_rows or min(CHUNK_ROWS, max(1, CHUNK_CELLS // max(1, len(kinds))))
        wanted = pa.schema(
            [(name, cell_values.read_as(self._type(name), kind)) for name, kind in kinds.items()]
            if self._files.has_types
            else [
                (name, pa.float64() if kind == "numeric" else pa.string())
                for name, kind in kinds.items()
            ]
        )
        chunk = _Chunk(kinds, rows)
        for batch in self._files.batches(wanted, rows):
            start = 0
            while start < batch.num_rows:
                start += chunk.take(batch.slice(start))
                if chunk.is_full:
                    yield chunk.empty()
        if chunk.size:
            yield chunk.empty()

    def records(
        self, kinds: Mapping[str, Kind], chunk_rows: int | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows in order, the columns as they are stored.

        A table of Arrow has no index: what stands at one position of all columns is one row.

        Raises TableError if a column is not there, or a file is damaged.

        Parameters
        ----------
        kinds
            The columns to read. A CSV has fields: they are float64 where numbers are asked for,
            and else texts.
        chunk_rows
            See `chunks`.
        """
        rows = chunk_rows or min(CHUNK_ROWS, max(1, CHUNK_CELLS // max(1, len(kinds))))
        is_typed = self._files.has_types
        wanted = pa.schema(
            [
                (name, self.stored_type(name) if is_typed or kind != "numeric" else pa.float64())
                for name, kind in kinds.items()
            ]
        )
        parts: list[pa.RecordBatch] = []
        size = 0
        for batch in self._files.batches(wanted, rows):
            while batch.num_rows:
                part = batch.slice(0, rows - size)
                parts.append(part)
                size += part.num_rows
                batch = batch.slice(part.num_rows)
                if size == rows:
                    yield pa.Table.from_batches(parts, wanted)
                    parts, size = [], 0
        if size:
            yield pa.Table.from_batches(parts, wanted)

    def line_of(self, row: int) -> int | None:
        """Return the line of the file in which a row begins, from 0; None if there are no lines."""
        return self._files.line_of(row)

    @property
    def known_rows(self) -> int | None:
        """How many rows there are, if the files say so: private."""
        return self._files.known_rows

    @property
    def bytes_read(self) -> tuple[int, int] | None:
        """How much of a text file the latest pass has read, and its size; else None."""
        return self._files.bytes_read

    @property
    def paths(self) -> list[Path]:
        """The files, in the order in which they are read."""
        return [Path(state["path"]) for state in self._files.identity()["files"]]

    def identity(self) -> dict[str, Any]:
        """Return what tells this table from others, and from itself after a change. JSON-able.

        Absolute paths, sizes in bytes, times of the last change in ns, names and types of columns.
        It says more of the rows than a release may: keep it in a local file.
        """
        stored = [[field.name, str(field.type)] for field in self._files.schema]
        return {**self._files.identity(), "schema": stored}

    def _type(self, name: str) -> pa.DataType:
        if name not in self._files.schema.names:
            raise TableError(f"the table has no column {name!r}")
        if self._files.schema.names.count(name) > 1:
            raise TableError(
                f"column names repeat: {name!r} is there more than once; rename all but one"
            )
        return self._files.schema.field(name).type


def is_table(X: Any) -> bool:
    """Whether `Table.open` is meant to read X, as it is a path, a dataset or a table."""
    return isinstance(X, str | Path | pa.dataset.Dataset | Table)


def _files_of(source: Any, csv: CsvSettings | None) -> Files:
    if isinstance(source, pa.dataset.Dataset):
        return ParquetFiles(source)
    path = Path(source).expanduser().absolute()
    if path.is_dir():
        return ParquetFiles.of_folder(path, PARQUET_SUFFIXES)
    if not path.is_file():
        raise TableError(f"no table at {source}: there is no such file or folder")
    if path.name.lower().endswith(PARQUET_SUFFIXES):
        return ParquetFiles.of_file(path)
    if path.name.lower().endswith(CSV_SUFFIXES):
        return CsvFile(path, csv or CsvSettings())
    raise TableError(
        f"cannot tell the format of {source} by its suffix. Allowed: "
        f"{', '.join((*PARQUET_SUFFIXES, *CSV_SUFFIXES))}, and folders of parquet files"
    )


class _Chunk:
    """Rows on the way from Arrow to pandas. Numbers are in memory once: as pandas has them."""

    def __init__(self, kinds: Mapping[str, Kind], rows: int) -> None:
        self._kinds, self._rows, self.size = kinds, rows, 0

    @property
    def is_full(self) -> bool:
        return self.size == self._rows

    def take(self, batch: pa.RecordBatch) -> int:
        """Take rows of a batch, as many as there is room for; return their number."""
        if self.size == 0:
            self._begin()
        batch = batch.slice(0, self._rows - self.size)
        end = self.size + batch.num_rows
        for name, numbers in self._numbers.items():
            numbers[self.size : end] = batch[name].to_numpy(zero_copy_only=False)
        for name, parts in self._others.items():
            parts.append(batch[name])
        self.size = end
        return int(batch.num_rows)

    def empty(self) -> pd.DataFrame:
        """Return what was taken, and begin anew."""
        numbers, others, size = self._numbers, self._others, self.size
        # The next arrays are made once the caller has let go of the last ones.
        del self._numbers, self._others
        self.size = 0
        return pd.DataFrame(
            {
                name: numbers[name][:size]
                if kind == "numeric"
                else cell_values.to_pandas(pa.chunked_array(others.pop(name)), kind)
                for name, kind in self._kinds.items()
            },
            copy=False,
        )

    def _begin(self) -> None:
        names = [name for name, kind in self._kinds.items() if kind == "numeric"]
        self._numbers = {name: np.empty(self._rows) for name in names}
        self._others = {name: list[pa.Array]() for name in self._kinds if name not in names}


What = Literal["reading rows", "boosting", "predicting"]
"""Rows of the table are read; steps of DP-EBM, or queries of DP-EBM+, are answered; new rows of a
table are predicted."""


class Listener(Protocol):
    """Hears how far it has come. Numbers of rows are private: for the user's own terminal."""

    def __call__(self, what: What, done: int, total: int | None) -> None:
        """Take in how much is done, of how much; None where that is not known."""


_LISTENER: ContextVar[Listener | None] = ContextVar("progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear of what is done to tables in this context."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(what: What, done: int, total: int | None) -> None:
    """Tell whoever listens."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, total)
