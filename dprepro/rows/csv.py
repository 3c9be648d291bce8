"""A CSV file, read block by block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.formats import csv_header, parser_problem
from dprepro.errors import HOW_NUMBERS_LOOK
from dprepro.rows.fault import TableError
from dprepro.rows.parquet import file_state

BLOCK_BYTES = 2**20
"""Bytes that are parsed at a time. No line can be longer."""

_GZIP = b"\x1f\x8b"
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to (\w+)")


@dataclass(frozen=True)
class CsvSettings:
    """How a CSV file is read; `Format` has the meaning of the first three.

    `missing` lists the texts that stand for a missing value. They are always so in a column of
    numbers. Among categories they are so unless `keeps_texts`; there whoever reads them decides.
    """

    separator: str = ","
    columns: tuple[str, ...] | None = None
    encoding: str = "utf8"
    missing: tuple[str, ...] = MISSING_TEXTS
    keeps_texts: bool = False


class CsvFile:
    """A CSV file, plain or gzipped; see `Files`. Types are those asked for, whatever it holds.

    Raises
    ------
    TableError
        If it has no header, or names repeat.
    """

    has_types = False

    def __init__(self, path: Path, settings: CsvSettings) -> None:
        self._path, self._settings = path, settings
        self._read_so_far = 0
        self._parse = pa.csv.ParseOptions(delimiter=settings.separator)
        self.missing = () if settings.keeps_texts else settings.missing
        # As they stand in the file; blanks around a name are not part of it.
        self._raw_names = list(settings.columns or self._header())
        self.schema = pa.schema([(name.strip(), pa.string()) for name in self._raw_names])
        if len(set(self.schema.names)) < len(self._raw_names):
            raise TableError(
                f"{path.name}: column names repeat; rename them in the file. If its first line is "
                "a row, the table needs a header"
            )

    def batches(self, wanted: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the columns of `wanted` in its types; blocks have the length that they have.

        Raises
        ------
        TableError
            If the file is damaged, or a column of numbers holds text.
        """
        if not wanted.names:
            return
        raw = dict(zip(self.schema.names, self._raw_names, strict=True))
        asked = {raw[field.name]: field.type for field in wanted}
        settings = self._settings
        try:
            with pa.OSFile(str(self._path)) as raw, self._unzipped(raw) as stream, pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(
                    column_names=self._raw_names,
                    skip_rows=0 if settings.columns else 1,
                    encoding=settings.encoding,
                    block_size=BLOCK_BYTES,
                    use_threads=False,
                ),
                parse_options=self._parse,
                convert_options=pa.csv.ConvertOptions(
                    column_types=asked,
                    include_columns=list(asked),
                    null_values=[blank + t for t in settings.missing for blank in ("", " ")],
                ),
            ) as reader:  # fmt: skip
                for batch in reader:
                    self._read_so_far = raw.tell()
                    yield batch.rename_columns(wanted.names)
        except (pa.ArrowException, OSError, UnicodeError, EOFError) as error:
            raise TableError(f"{self._path.name}: {self._problem(error)}") from None

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
        settings = self._settings
        how = [settings.separator, settings.encoding, [*settings.missing], settings.keeps_texts]
        return {"format": "csv", "files": [file_state(self._path)], "read": how}

    def _unzipped(self, raw: pa.NativeFile) -> pa.NativeFile:
        with self._path.open("rb") as file:
            zipped = file.read(2) == _GZIP
        return pa.CompressedInputStream(raw, "gzip") if zipped else raw

    def _header(self) -> list[str]:
        """Return the names in the first line."""
        try:
            with pa.OSFile(str(self._path)) as raw, self._unzipped(raw) as stream:
                line = _first_line(stream)
            if not line.strip():
                raise TableError(f"{self._path.name} is empty: its first line names the columns")
            return csv_header(line, self._settings.encoding, self._parse)
        except (pa.ArrowException, OSError, UnicodeError, EOFError) as error:
            raise TableError(f"{self._path.name}: {parser_problem(error)}") from None

    def _problem(self, error: Exception) -> str:
        text = str(error)
        if (found := _CONVERSION.search(text)) and found[2] == "double":
            name = self.schema.names[int(found[1])]
            return (
                f"column {name!r} is to hold numbers, but holds text. Missing is an empty field, "
                f"or one of: {', '.join(filter(None, self._settings.missing))}. {HOW_NUMBERS_LOOK}"
            )
        if "straddl" in text:
            return f"a line is longer than {BLOCK_BYTES} bytes: is it a CSV file?"
        return parser_problem(error)


def _first_line(stream: pa.NativeFile) -> bytes:
    start = b""
    while b"\n" not in start and len(start) < BLOCK_BYTES:
        block = stream.read(2**16)
        if not block:
            break
        start += block
    return start[: start.find(b"\n") + 1] or start
