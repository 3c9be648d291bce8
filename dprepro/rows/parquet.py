"""Parquet files, decoded a few pages at a time, however large their row groups are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from dprepro.data.columns import convert
from dprepro.data.parquet_format import counts_agree, is_utf8
from dprepro.rows.fault import TableError

BATCH_ROWS = 2**14
"""Rows that are decoded at a time."""

BUFFER_BYTES = 2**16
"""Bytes of each column that are read ahead. Without a buffer all of a column in a row group is."""

_FALSE_COUNTS = "not a whole parquet file (its counts of rows do not agree)"


class ParquetFiles:
    """The parquet files of a dataset, sorted by their paths; see `Files`.

    Readers of `pyarrow.dataset` decode whole row groups. So each file is read by itself here.

    Raises
    ------
    TableError
        If there are none, if some files are of another format, if names repeat, or if one file is
        there twice, by two paths or links.
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
        _refuse_repeated(self._fragments)
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
            with _faults_of(fragment.path):
                yield from _read(fragment, wanted, min(rows, BATCH_ROWS))

    @property
    def known_rows(self) -> int | None:
        """How many rows there are: private."""
        return sum(group.num_rows for f in self._fragments for group in _row_groups(f))

    @property
    def bytes_read(self) -> None:
        """None: the number of rows is known."""
        return None

    def line_of(self, row: int) -> None:
        """None: there are no lines."""
        return

    def identity(self) -> dict[str, Any]:
        """Return the state of every file."""
        files = []
        for fragment in self._fragments:
            if isinstance(fragment.filesystem, pa.fs.LocalFileSystem):
                state = file_state(Path(fragment.path))
            else:
                with _faults_of(fragment.path):
                    info = fragment.filesystem.get_file_info(fragment.path)
                place = f"{fragment.filesystem.type_name}:{fragment.path}"
                state = {"path": place, "size": info.size, "mtime_ns": info.mtime_ns}
            files.append({**state, "row_groups": [group.id for group in _row_groups(fragment)]})
        return {"format": "parquet", "files": files}


def file_state(path: Path) -> dict[str, Any]:
    """Return the absolute path of a file, its size in bytes, and its last change in ns.

    Raises
    ------
    TableError
        If it is not there any more.
    """
    with _faults_of(path):
        found = path.resolve().stat()
    return {"path": str(path.resolve()), "size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _dataset(paths: list[Path], base: Path | None) -> pa.dataset.Dataset:
    with _faults_of(paths[0]):
        return pa.dataset.dataset(
            [str(path) for path in paths],
            format="parquet",
            partitioning=None if base is None else pa.dataset.HivePartitioning.discover(),
            partition_base_dir=None if base is None else str(base),
        )


def _refuse_repeated(fragments: Sequence[pa.dataset.ParquetFileFragment]) -> None:
    """Raise TableError if rows would be read twice in a pass: a file is there by two paths."""
    same: dict[Any, list[pa.dataset.ParquetFileFragment]] = {}
    for fragment in fragments:
        key: Any = fragment.path
        if isinstance(fragment.filesystem, pa.fs.LocalFileSystem):
            with _faults_of(fragment.path):
                state = Path(fragment.path).stat()
            key = state.st_dev, state.st_ino
        same.setdefault(key, []).append(fragment)
    for found in same.values():
        if len(found) == 1:
            continue  # nothing of it is opened
        groups = [group.id for fragment in found for group in _row_groups(fragment)]
        if len(set(groups)) < len(groups):
            raise TableError(
                f"{found[0].path} and {found[-1].path} are the same file, so that every row in it "
                "would count twice: name it once, and take links out of the folder"
            )


def _row_groups(fragment: pa.dataset.ParquetFileFragment) -> list[Any]:
    with _faults_of(fragment.path):
        return _groups(fragment)


def _groups(fragment: pa.dataset.ParquetFileFragment) -> list[Any]:
    if not counts_agree(fragment.metadata):
        raise TableError(_FALSE_COUNTS)
    return list(fragment.row_groups)


def _read(
    fragment: pa.dataset.ParquetFileFragment, wanted: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    keys = pa.dataset.get_partition_keys(fragment.partition_expression)
    with fragment.open() as stream:
        file = pa.parquet.ParquetFile(stream, buffer_size=BUFFER_BYTES, pre_buffer=False)
        stored = [name for name in wanted.names if name not in keys]
        if absent := [name for name in stored if name not in file.schema_arrow.names]:
            raise TableError(f"the file has no column {absent[0]!r}, which other files have")
        groups, read = _groups(fragment), 0
        ids = [group.id for group in groups]
        for batch in file.iter_batches(rows, row_groups=ids, columns=stored, use_threads=False):
            read += batch.num_rows
            yield pa.record_batch([_column(batch, field, keys) for field in wanted], schema=wanted)
        if read != sum(group.num_rows for group in groups):
            raise TableError(_FALSE_COUNTS)


def _column(batch: pa.RecordBatch, field: pa.Field, keys: dict[str, Any]) -> pa.Array:
    if field.name in keys:
        return convert(pa.repeat(keys[field.name], batch.num_rows), field.type)
    column = batch.column(field.name)
    if not is_utf8(column):
        raise TableError(f"column {field.name!r} has text that is not UTF-8")
    try:
        return convert(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise TableError(
            f"column {field.name!r} is of type {column.type}, which does not fit that of the "
            "first file"
        ) from None


@contextmanager
def _faults_of(path: str | Path) -> Iterator[None]:
    """Raise TableError for what is wrong with a file; the message has its name."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{Path(path).name}: {error}") from None
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{Path(path).name}: {_problem(error)}") from None


def _problem(error: Exception) -> str:
    """Return what is wrong with a file, without what a reader quotes of it."""
    if isinstance(error, FileNotFoundError | PermissionError):
        return f"the file cannot be opened ({type(error).__name__}): is it there, and readable?"
    known = (
        "Parquet magic bytes not found",
        "Parquet file size is 0 bytes",
        "Invalid UTF8 payload",
    )
    found = next((text for text in known if text in str(error)), type(error).__name__)
    return f"not a whole parquet file ({found}); write it again"
