"""A CSV file, read block by block."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.cells import BLANKS, PLAIN, CellError, Marks, Spelling, read_numbers
from dprepro.data.decoding import BadRecordError
from dprepro.data.delimited import (
    COMMAS,
    FIELDS,
    NUMBERS,
    Dialect,
    Records,
    line_of,
)
from dprepro.data.formats import other_kind
from dprepro.data.packed import PackedError, unzipped_stream
from dprepro.rows.fault import TableError
from dprepro.rows.parquet import file_state


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

    Raises
    ------
    TableError
        If it has no header.
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

        Raises
        ------
        TableError
            If the file is damaged, or a column of numbers holds text. The message names the line.
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
