"""Bytes to tables: csv, ARFF, and those of other modules here."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Literal

import pyarrow as pa

from dprepro.data.arff import parse_arff, read_sparse
from dprepro.data.array_formats import read_idx, read_npz, read_svmlight
from dprepro.data.card_parts import Format, FormatKind
from dprepro.data.cells import CellError, Marks, Spelling, read_numbers
from dprepro.data.decoding import BadRecordError
from dprepro.data.delimited import (
    FIELDS,
    NUMBERS,
    TEXT,
    Dialect,
    Records,
    line_of,
)
from dprepro.data.feature_names import one_line
from dprepro.data.packed import GZIP, unzipped
from dprepro.data.parquet_format import read_parquet
from dprepro.errors import DpreproError

ColumnKind = Literal["numeric", "text", "unused"]

_LOAD_BYTES = 2**24
"""Bytes of a text file that are parsed at a time where all of it is in memory anyway."""

_BEGINNINGS: Mapping[bytes, str] = {
    b"PAR1": "a Parquet file: say so on the card, `format: {kind: parquet}`, and name it .parquet",
    b"PK\x03\x04": "a zip archive, as a spreadsheet (.xlsx) is: save the sheet as CSV, or name the "
    "`member` of the archive on the card",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an old kind (.xls): save the sheet as CSV",
    b"SQLite format 3": "a database of SQLite: export the table as CSV",
    b"%PDF": "a PDF: the table is needed as CSV",
    b"BZh": "packed by bzip2: unpack it (bunzip2)",
    b"\xfd7zXZ": "packed by xz: unpack it (unxz)",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it (unzstd)",
    b"$FL2": "a file of SPSS: save it as CSV",
    b"<stata_dta>": "a file of Stata: save it as CSV",
    b"HEADER RECORD": "a file of SAS: save it as CSV",
    b"\x93NUMPY": "an array of NumPy: save it as CSV, or as npz with the arrays X and y",
    b"\x89HDF": "an HDF5 file: save the table as CSV",
    b"ARROW1": "an Arrow file: save it as Parquet",
    b"@relation": "an ARFF file: say so on the card, `format: {kind: arff}`, and name it .arff",
    b"<!doctype": "a web page, maybe one that asks to log in: download the table itself",
    b"<html": "a web page, maybe one that asks to log in: download the table itself",
    b"<?xml": "XML: save the table as CSV",
    b'{"': "JSON: save the table as CSV",
    b'[{"': "JSON: save the table as CSV",
}
"""What a file is that begins so."""


def other_kind(start: bytes, kind: FormatKind) -> str | None:
    """Return what a file is, and what to do, if it begins as none of its `kind` does; else None.

    `start` has the first bytes, 64 at least where there are as many.
    """
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for mark, said in _BEGINNINGS.items():
        if start.startswith(mark) or text.startswith(mark.lower()):
            is_it = {b"PAR1": "parquet", b"@relation": "arff", b"PK\x03\x04": "npz"}.get(mark)
            return None if is_it == kind else f"this is {said}"
    if kind == "parquet" and start:
        return "this is not a Parquet file: it begins as none does. " + (
            "Is it packed? unpack it (gunzip)"
            if start.startswith(GZIP)
            else "Is it CSV? say so on the card, `format: {kind: csv}`, and name it .csv"
        )
    return None


def read_table(
    data: bytes, settings: Format, kinds: Mapping[str, ColumnKind], missing: Collection[str] = ()
) -> pa.Table:
    """Return the table that `data` holds, one row for each record.

    A text file has texts, and numbers where `kinds` says so and all cells are numbers. Other files
    have the types that they store.

    Parameters
    ----------
    data
        The bytes of the file; a csv or arff file can be gzipped.
    settings
        Its format; ``kind`` must be set.
    kinds
        Kinds of columns, by name. "unused" ones are not read: all of their values are missing.
        "text" ones are read as a dictionary.
    missing
        The texts that stand for a missing value in columns of numbers.

    Raises
    ------
    DpreproError
        If the bytes do not fit the format. The message names the line, and quotes no value.
    """
    kind: FormatKind = settings.kind or "csv"
    try:
        if kind in ("csv", "arff"):
            data = unzipped(data)
        if said := other_kind(data[:64], kind):
            raise DpreproError(f"not valid {kind}: {said}")
        table = _READERS[kind](data, settings, kinds, missing)
    except BadRecordError as error:
        raise BadRecordError(f"not valid {kind}: {error}") from None
    except pa.ArrowException as error:
        raise DpreproError(f"not valid {kind}: {parser_problem(error)}") from None
    return table.rename_columns([one_line(str(name)) for name in table.column_names])


def dialect_of(settings: Format) -> Dialect:
    """Return how a CSV is written."""
    return Dialect(
        separator=settings.separator,
        comment=settings.comment,
        names=None if settings.columns is None else tuple(settings.columns),
        replaces_names=settings.header,
        encoding=settings.encoding,
    )


def line_of_row(data: bytes, settings: Format, row: int) -> int | None:
    """Return the line of a file in which a row begins; None of a file that has no lines."""
    if settings.kind == "csv":
        return line_of(io.BytesIO(unzipped(data)), dialect_of(settings), row)
    if settings.kind == "arff":
        file = parse_arff(unzipped(data), settings.encoding)
        if not file.is_sparse:
            return line_of(io.BytesIO(file.body), file.dialect, row, file.first_line)
    return None


def parser_problem(error: Exception) -> str:
    """Return the message of a parser without the row or value that it quotes."""
    text = str(error)
    known = ("Parquet magic bytes not found", "Parquet file size is 0 bytes")
    return next((k for k in known if k in text), f"the parser gave up ({type(error).__name__})")


def _read_csv(
    data: bytes, settings: Format, kinds: Mapping[str, ColumnKind], missing: Collection[str]
) -> pa.Table:
    marks = Marks(missing, Spelling(settings.decimal, settings.thousands))
    return _whole(lambda: _records(data, dialect_of(settings)), kinds, marks)


def _read_arff(
    data: bytes, settings: Format, kinds: Mapping[str, ColumnKind], missing: Collection[str]
) -> pa.Table:
    file = parse_arff(data, settings.encoding)
    if file.is_sparse:
        return read_sparse(file)
    declared: dict[str, ColumnKind] = {
        a.name: "numeric" if a.kind == "number" else "text" for a in file.attributes
    }
    records = partial(_records, file.body, file.dialect, file.first_line)
    return _whole(records, {**declared, **kinds}, Marks(missing))


def _records(data: bytes, dialect: Dialect, first_line: int = 1) -> Records:
    return Records(io.BytesIO(data), dialect, first_line, block_bytes=_LOAD_BYTES)


def _whole(
    opened: Callable[[], Records], kinds: Mapping[str, ColumnKind], marks: Marks
) -> pa.Table:
    """Return all records. A column of numbers in which a cell is none has all cells as texts."""
    names = opened().names
    types = {"text": TEXT, "numeric": NUMBERS}
    wanted = {
        k: types.get(kinds.get(name, ""), FIELDS)
        for k, name in enumerate(names)
        if kinds.get(name) != "unused"
    }
    while True:
        asked = wanted
        if not marks.spelling.is_plain:  # Arrow knows no marks of thousands
            asked = {k: FIELDS if kind == NUMBERS else kind for k, kind in wanted.items()}
        parts = list(opened().tables(asked, marks.texts))
        columns: dict[int, list[pa.Array]] = {}
        for k, kind in wanted.items():
            found = [_as_numbers(part[str(k)], kind, marks) for part in parts]
            chunks = [column.chunks for column in found if column is not None]
            if len(chunks) == len(found):
                columns[k] = [chunk for each in chunks for chunk in each]
        if len(columns) == len(wanted):
            break
        wanted |= {k: FIELDS for k in wanted if k not in columns}
    count = sum(part.num_rows for part in parts)
    arrays = [
        pa.chunked_array(columns[k], wanted[k])
        if k in wanted
        else pa.chunked_array([pa.nulls(count)])
        for k in range(len(names))
    ]
    return pa.table(arrays, names=names)


def _as_numbers(column: pa.ChunkedArray, kind: pa.DataType, marks: Marks) -> pa.ChunkedArray | None:
    """Return a column in its type; None if it has a cell that is no number, and it is to be one."""
    if column.type == kind:
        return column
    try:
        return pa.chunked_array([pa.array(read_numbers(column, "", marks, marks.spelling))])
    except CellError:
        return None


_READERS: Mapping[str, Callable[..., pa.Table]] = {
    "csv": _read_csv,
    "arff": _read_arff,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
    "idx": read_idx,
    "npz": read_npz,
}
