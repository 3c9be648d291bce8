"""Tables in CSV and Parquet files, read block by block, however large a row group is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet

from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.cell_values import (
    BLANKS,
    PLAIN,
    CellError,
    Marks,
    Spelling,
    convert,
    read_numbers,
)
from dprepro.data.decoding import BadRecordError
from dprepro.data.delimited import (
    COMMAS,
    FIELDS,
    NUMBERS,
    Dialect,
    Records,
    line_of,
)
from dprepro.data.files import PackedError, unzipped_stream
from dprepro.data.formats import counts_agree, is_utf8, other_kind
from dprepro.runtime.errors import DpreproError, nearest


class TableError(DpreproError, ValueError):
    """A table cannot be read as asked. The message quotes no value and counts no rows."""


def nearest_column(name: str, present: Sequence[str], wanted: Collection[str]) -> str:
    """Return what to say of a column that is not there, while `wanted` were expected.

    The columns are named only if the table has one of these. If not, a CSV may have no header, and
    its first line may be a row.
    """
    if set(wanted) & set(present):
        return nearest(name, list(present))
    return ", nor any other that is expected: the first line of a CSV names its columns"


BATCH_ROWS = 2**14
"""Rows that are decoded at a time."""

BUFFER_BYTES = 2**16
"""Bytes of each column that are read ahead. Without a buffer all of a column in a row group is."""

_FALSE_COUNTS = "not a whole parquet file (its counts of rows do not agree)"


class ParquetFiles:
    """The parquet files of a dataset, sorted by their paths; see `Files`.

    Readers of `pyarrow.dataset` decode whole row groups. So each file is read by itself here.

    Raises TableError if there are none, if some files are of another format, if names repeat, or if
    one file is there twice, by two paths or links.
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

        Raises TableError if a file is damaged, lacks a column, or has one of another type.
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

    Raises TableError if it is not there any more.
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


@dataclass(frozen=True)
class CsvSettings:
    """How a CSV file is read.

    `missing` lists the texts that stand for a missing value. They are always so in a column of
    numbers. Among categories they are so unless `keeps_texts`; there whoever reads them decides,
    and gets each text as it stands. Else texts have no blanks around them.
    """

    dialect: Dialect = COMMAS
    spelling: Spelling = PLAIN
    missing: tuple[str, ...] = MISSING_TEXTS
    keeps_texts: bool = False


class CsvFile:
    """A CSV file, plain or gzipped; see `Files`. Types are those asked for, whatever it holds.

    Raises TableError if it has no header.
    """

    has_types = False

    def __init__(self, path: Path, settings: CsvSettings) -> None:
        self._path, self._settings = path, settings
        self._read_so_far = 0
        self._marks = Marks(settings.missing, settings.spelling)
        self.missing = () if settings.keeps_texts else settings.missing
        with self._faults(), path.open("rb") as raw:
            if said := other_kind(raw.read(64), "csv"):
                raise TableError(said)
            raw.seek(0)
            self._names = Records(unzipped_stream(raw), settings.dialect, block_bytes=2**16).names
        self.schema = pa.schema([(name, pa.string()) for name in self._names])

    def batches(self, wanted: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of `wanted` in its types; blocks have the length that they have.

        Raises TableError if the file is damaged, or a column of numbers holds text. The message
        names the line.
        """
        if not wanted.names:
            return
        places = [self._names.index(field.name) for field in wanted]
        is_plain = self._settings.spelling.is_plain
        types = {
            place: NUMBERS if is_plain and field.type == NUMBERS else FIELDS
            for place, field in zip(places, wanted, strict=True)
        }
        before = 0
        with self._faults(), self._path.open("rb") as raw:
            records = Records(unzipped_stream(raw), self._settings.dialect)
            for table in records.tables(types, self._marks.texts, use_threads=False):
                self._read_so_far = raw.tell()
                columns = [table[str(place)] for place in places]
                yield from self._typed(columns, wanted, before).to_batches()
                before += table.num_rows

    def line_of(self, row: int) -> int:
        """Return the line in which a row begins."""
        with self._faults(), self._path.open("rb") as raw:
            return line_of(unzipped_stream(raw), self._settings.dialect, row)

    @property
    def known_rows(self) -> int | None:
        """None: only the rows themselves tell."""
        return None

    @property
    def bytes_read(self) -> tuple[int, int]:
        """How much of the file the latest pass has read, and its size."""
        return self._read_so_far, self._path.stat().st_size

    def identity(self) -> dict[str, Any]:
        """Return the state of the file, and how it is read."""
        return {"format": "csv", "files": [file_state(self._path)], "read": repr(self._settings)}

    def _typed(self, columns: list[pa.ChunkedArray], wanted: pa.Schema, before: int) -> pa.Table:
        """Return columns in the types asked for; all that cannot be is in one message."""
        typed, problems = [], []
        for column, field in zip(columns, wanted, strict=True):
            try:
                typed.append(self._column(column, field))
            except CellError as error:
                place = "" if error.row is None else self.line_of(before + error.row)
                problems.append(f"{error} (first in line {place})" if place else str(error))
        if problems:
            raise TableError("\n  ".join(problems))
        return pa.table(typed, schema=wanted)

    def _column(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        if column.type == NUMBERS and self._settings.keeps_texts:
            return column
        if field.type == NUMBERS:
            values = read_numbers(column, field.name, self._marks, self._settings.spelling)
            return pa.chunked_array([pa.array(values)])
        return column if self._settings.keeps_texts else pc.utf8_trim(column, BLANKS)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise TableError for what is wrong with the file; the message has its name."""
        try:
            yield
        except (TableError, BadRecordError, PackedError) as error:
            raise TableError(f"{self._path.name}: {error}") from None
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise TableError(f"{self._path.name}: not a whole gzip file") from None
        except OSError as error:
            said = f"cannot be read: {error.strerror or type(error).__name__}"
            raise TableError(f"{self._path.name}: {said}") from None
