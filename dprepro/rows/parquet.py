"""Parquet files, decoded a few pages at a time, however large their row groups are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from dprepro.rows.columns import convert
from dprepro.rows.fault import TableError

BATCH_ROWS = 2**14
"""Rows that are decoded at a time."""

BUFFER_BYTES = 2**16
"""Bytes of each column that are read ahead. Without a buffer all of a column in a row group is."""


class ParquetFiles:
    """The parquet files of a dataset, sorted by their paths; see `Files`.

    Readers of `pyarrow.dataset` decode whole row groups. So each file is read by itself here.

    Raises
    ------
    TableError
        If there are none, if some files are of another format, or if names repeat.
    """

    has_types = True
    missing: tuple[str, ...] = ()

    def __init__(self, dataset: pa.dataset.Dataset) -> None:
        try:
            fragments = list(dataset.get_fragments())
        except ValueError:
            raise TableError(
                "a dataset that filters or computes columns cannot be read in chunks: pass the "
                "dataset of the files themselves"
            ) from None
        other = {type(f).__name__ for f in fragments} - {"ParquetFileFragment"}
        if other or not fragments:
            raise TableError(
                "a dataset of pyarrow must consist of parquet files, one at least, "
                f"got {', '.join(sorted(other)) or 'none'}: write it as parquet first"
            )
        self._fragments = sorted(fragments, key=lambda fragment: str(fragment.path))
        self.schema = dataset.schema
        if len(set(self.schema.names)) < len(self.schema.names):
            raise TableError("column names of the table repeat: rename them")

    @classmethod
    def of_file(cls, path: Path) -> ParquetFiles:
        """Return the file at a path."""
        return cls(_dataset([path], None))

    @classmethod
    def of_folder(cls, folder: Path, suffixes: tuple[str, ...]) -> ParquetFiles:
        """Return the files in a folder and the folders in it, less those that begin with . or _.

        Folders such as ``year=2024`` give their files a column `year`.
        """
        paths = [
            path
            for path in sorted(folder.rglob("*"))
            if path.name.lower().endswith(suffixes)
            and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        ]
        if not paths:
            raise TableError(f"the folder {folder} has no parquet file ({', '.join(suffixes)})")
        return cls(_dataset(paths, folder))

    def batches(self, wanted: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of `wanted` in its types, at most `rows` rows at a time.

        Raises
        ------
        TableError
            If a file is damaged, lacks a column, or has one of another type.
        """
        for fragment in self._fragments:
            name = Path(fragment.path).name
            try:
                yield from _read(fragment, wanted, min(rows, BATCH_ROWS))
            except TableError as error:
                raise TableError(f"{name}: {error}") from None
            except (pa.ArrowException, OSError) as error:
                raise TableError(f"{name}: {_problem(error)}") from None

    @property
    def known_rows(self) -> int | None:
        """How many rows there are: private."""
        return sum(group.num_rows for f in self._fragments for group in f.row_groups)

    def identity(self) -> dict[str, Any]:
        """Return the state of every file."""
        files = []
        for fragment in self._fragments:
            if isinstance(fragment.filesystem, pa.fs.LocalFileSystem):
                state = file_state(Path(fragment.path))
            else:
                info = fragment.filesystem.get_file_info(fragment.path)
                place = f"{fragment.filesystem.type_name}:{fragment.path}"
                state = {"path": place, "size": info.size, "mtime_ns": info.mtime_ns}
            files.append({**state, "row_groups": [group.id for group in fragment.row_groups]})
        return {"format": "parquet", "files": files}


def file_state(path: Path) -> dict[str, Any]:
    """Return the absolute path of a file, its size in bytes, and its last change in ns."""
    found = path.resolve().stat()
    return {"path": str(path.resolve()), "size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _dataset(paths: list[Path], base: Path | None) -> pa.dataset.Dataset:
    try:
        return pa.dataset.dataset(
            [str(path) for path in paths],
            format="parquet",
            partitioning=None if base is None else pa.dataset.HivePartitioning.discover(),
            partition_base_dir=None if base is None else str(base),
        )
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{paths[0].name}: {_problem(error)}") from None


def _read(
    fragment: pa.dataset.ParquetFileFragment, wanted: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    keys = pa.dataset.get_partition_keys(fragment.partition_expression)
    with fragment.open() as stream:
        file = pa.parquet.ParquetFile(stream, buffer_size=BUFFER_BYTES, pre_buffer=False)
        stored = [name for name in wanted.names if name not in keys]
        if absent := [name for name in stored if name not in file.schema_arrow.names]:
            raise TableError(f"the file has no column {absent[0]!r}, which other files have")
        groups = [group.id for group in fragment.row_groups]
        batches = file.iter_batches(rows, row_groups=groups, columns=stored, use_threads=False)
        for batch in batches:
            yield pa.record_batch([_column(batch, field, keys) for field in wanted], schema=wanted)


def _column(batch: pa.RecordBatch, field: pa.Field, keys: dict[str, Any]) -> pa.Array:
    if field.name in keys:
        return convert(pa.repeat(keys[field.name], batch.num_rows), field.type)
    column = batch.column(field.name)
    try:
        return convert(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TableError(
            f"column {field.name!r} is of type {column.type}, which does not fit that of the "
            "first file"
        ) from None


def _problem(error: Exception) -> str:
    """Return what is wrong with a file, without what a reader quotes of it."""
    known = ("Parquet magic bytes not found", "Parquet file size is 0 bytes")
    found = next((text for text in known if text in str(error)), type(error).__name__)
    return f"not a whole parquet file ({found}); write it again"
