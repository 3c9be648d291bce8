"""Bytes to tables: csv, ARFF, Parquet, svmlight, idx and npz."""

from __future__ import annotations

import io
import json
import math
import tokenize
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from dprepro.data.arff import parse_arff, read_sparse
from dprepro.data.card_parts import Format, FormatKind, one_line
from dprepro.data.cell_values import CellError, Marks, Spelling, read_numbers
from dprepro.data.decoding import BadRecordError
from dprepro.data.delimited import (
    FIELDS,
    NUMBERS,
    TEXT,
    THREADED_BYTES,
    Dialect,
    Records,
    line_of,
)
from dprepro.data.files import ARCHIVE_FAULTS, GZIP, PackedError, unzipped, zip_member
from dprepro.runtime.errors import DpreproError


def read_svmlight(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Return the label, then the features in the order of their indices; missing ones are 0."""
    from sklearn.datasets import load_svmlight_file

    names = settings.columns or []
    if len(names) < 2:
        raise DpreproError(
            "svmlight files name no columns: add `format: {kind: svmlight, header: false, "
            "columns: [label, first feature, ...]}`"
        )
    try:
        features, label = load_svmlight_file(
            io.BytesIO(data), n_features=len(names) - 1, zero_based=False
        )
    except (ValueError, OverflowError) as error:
        raise DpreproError(
            f"not valid svmlight with {len(names) - 1} features: every line is a label, then "
            f"INDEX:VALUE with an INDEX from 1 to {len(names) - 1}, and some line is not"
        ) from error
    return _table(names, [label, *features.toarray().T])


def read_idx(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Return the bytes as uint8."""
    data = unzipped(data)
    dimensions = data[3] if data[:3] == b"\0\0\x08" and len(data) > 3 else 0
    start = 4 + 4 * dimensions
    if len(data) < start:
        dimensions, start = 0, 4
    shape = [int(size) for size in np.frombuffer(data[4:start], dtype=">i4")]
    if not shape or min(shape) < 1 or len(data) != start + math.prod(shape):
        raise DpreproError(
            "not valid idx: expected a header for unsigned bytes, and as many bytes as it announces"
        )
    values = np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape[0], -1)
    if dimensions == 1:
        return _table(["class"], values.T)
    return _table([f"pixel{k + 1}" for k in range(values.shape[1])], values.T)


def _table(names: Sequence[str], columns: Iterable[np.ndarray]) -> pa.Table:
    arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
    return pa.Table.from_arrays(arrays, names=list(names))


def read_npz(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Return the label y, then the columns of X, of an archive of NumPy with these two arrays."""
    names = settings.columns or []
    if len(names) < 2:
        raise DpreproError(
            "npz files name no columns: add `format: {kind: npz, header: false, columns: "
            "[label, first feature, ...]}`"
        )
    features, label = _arrays_of_npz(data)
    rows = len(label) if label.ndim else 0
    if features.shape != (rows, len(names) - 1) or label.shape not in ((rows,), (rows, 1)):
        raise DpreproError(
            f"not valid npz with {len(names) - 1} features: X must have as many columns, and a row "
            "for each entry of y"
        )
    return _table(names, [label.reshape(rows), *features.T])


def _arrays_of_npz(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y, in the byte order of this machine."""
    fault = DpreproError("not valid npz: expected arrays of numbers X and y")
    try:
        found = [_array(zip_member(data, f"{name}.npy")) for name in ("X", "y")]
    except PackedError:
        raise
    except (DpreproError, ValueError, EOFError, tokenize.TokenError, *ARCHIVE_FAULTS) as error:
        raise fault from error
    if found[0].dtype.kind not in "biuf" or found[1].dtype.kind not in "biufU":
        raise fault
    features, label = (array.astype(array.dtype.newbyteorder("=")) for array in found)
    return features, label


def _array(data: bytes) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy advises to write old files anew
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


def read_parquet(
    data: bytes, settings: Format, kinds: Mapping[str, Any], missing: Collection[str] = ()
) -> pa.Table:
    """Read a parquet file: its columns as they are stored, each value where it stands.

    A column that pandas stored as an index is read only if `kinds` names it.

    Raises DpreproError if its counts do not agree, or if it has text that is not UTF-8. Also if a
    column is nested that `kinds` does not call "unused". Raises pyarrow.ArrowException, OSError if
    it is damaged in another way.
    """
    try:
        file = pa.parquet.ParquetFile(pa.BufferReader(data))
        # Before rows are read: a command that ends while Arrow still starts its threads is aborted.
        _refuse_nested(file.schema_arrow, kinds)
        is_large = len(data) > THREADED_BYTES
        table = file.read(use_threads=is_large) if counts_agree(file.metadata) else None
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
        raise DpreproError("not valid parquet: it has text that is not UTF-8") from None
    if table is None or table.num_rows != file.metadata.num_rows:
        raise DpreproError("not valid parquet: its counts of rows do not agree")
    kept = [k for k, name in enumerate(table.column_names) if name not in index_names(table.schema)
            or one_line(name) in kinds]  # fmt: skip
    table = table.select(kept).replace_schema_metadata()
    for number, name in enumerate(table.column_names):
        column = table.column(number)
        if not is_utf8(column):
            raise DpreproError(f"not valid parquet: column {name!r} has text that is not UTF-8")
        if pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
            # NumPy warns of NaNs with other bits, which a file can hold.
            nan = pa.scalar(math.nan, column.type)
            table = table.set_column(number, name, pc.if_else(pc.is_nan(column), nan, column))
    return table


def index_names(schema: pa.Schema) -> set[str]:
    """Return the columns that are what pandas calls an index: labels of rows, and no values."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except ValueError:
        return set()  # whoever wrote it, did not write it as pandas does
    listed = stored.get("index_columns") if isinstance(stored, dict) else None
    return {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()


def _refuse_nested(schema: pa.Schema, kinds: Mapping[str, Any]) -> None:
    for field in schema:
        if _is_nested(field.type) and kinds.get(one_line(field.name)) != "unused":
            raise DpreproError(
                f"column {field.name!r} holds lists or structs, and a value is a number or a text: "
                "write each part to a column of its own in the file, or list the column under "
                "`drop` (with `distinct`, take it out of the file)"
            )


def _is_nested(stored: pa.DataType) -> bool:
    """Whether a value of this type has parts, and is no value of Python that can be compared."""
    if isinstance(stored, pa.FixedShapeTensorType):
        return True
    if pa.types.is_dictionary(stored):
        return _is_nested(stored.value_type)
    return bool(pa.types.is_nested(stored))


def counts_agree(metadata: pa.parquet.FileMetaData) -> bool:
    """Whether the rows of the groups add up to those of the file: Arrow asks for memory by them.

    Both can be wrong alike: then whoever reads sees that there are fewer rows, but not that there
    are more. The counts of values are not looked at. They move Arrow to no such thing, and to ask
    for them ends the process where other parts of the footer are damaged.
    """
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return bool(sum(group.num_rows for group in groups) == metadata.num_rows)


def is_utf8(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether all text of a column is valid UTF-8; true of columns without text."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return True  # a dictionary is looked into as it is read
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


ColumnKind = Literal["numeric", "text", "unused"]

_LOAD_BYTES = 2**24
"""Bytes of a text file that are parsed at a time where all of it is in memory anyway."""

_PARQUET = b"PAR1"
_BEGINNINGS: Mapping[bytes, str] = {
    _PARQUET: "a Parquet file: say so on the card, `format: {kind: parquet}`, and name it .parquet",
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
            is_it = {_PARQUET: "parquet", b"@relation": "arff", b"PK\x03\x04": "npz"}.get(mark)
            return None if is_it == kind else f"this is {said}"
    if kind == "parquet" and start:
        return "this is not a Parquet file: it begins as none does. " + (
            "Is it packed? unpack it (gunzip)"
            if start.startswith(GZIP)
            else "Is it CSV? say so on the card, `format: {kind: csv}`, and name it .csv"
        )
    return None


def is_web_page(start: bytes, content_type: str) -> bool:
    """Whether a server's answer, by how it begins and what it calls itself, is HTML."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    is_called_one = content_type.lower().startswith(("text/html", "application/xhtml"))
    return text.startswith((b"<!doctype html", b"<html")) or (
        is_called_one and text.startswith(b"<")
    )


def is_parquet(data: bytes) -> bool:
    """Whether a file begins and ends as those of Parquet."""
    return data.startswith(_PARQUET) and data.endswith(_PARQUET)


def read_table(
    data: bytes, settings: Format, kinds: Mapping[str, ColumnKind], missing: Collection[str] = ()
) -> pa.Table:
    """Return the table that `data` holds, one row for each record.

    A text file has texts, and numbers where `kinds` says so and all cells are numbers. Other files
    have the types that they store.

    Raises DpreproError if the bytes do not fit the format. The message names the line, and quotes
    no value.

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
