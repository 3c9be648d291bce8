"""Bytes to tables: csv, ARFF, those of other modules here, and members of archives."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from dprepro.data.array_formats import ARCHIVE_FAULTS, GZIP, read_idx, read_npz, read_svmlight
from dprepro.data.card_parts import Format
from dprepro.data.parquet_format import read_parquet
from dprepro.errors import HOW_NUMBERS_LOOK, DpreproError, nearest

ColumnKind = Literal["numeric", "text", "unused"]

_ENCODING_ADVICE = (
    "save the file as UTF-8 (of Latin-1: iconv -f latin1 -t utf8 OLD.csv > NEW.csv), or say on its "
    "card, once there is one: `format: {encoding: latin-1}`"
)
_DATA_LINE = re.compile(rb"^[ \t]*@data[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
# Arrow's message about a value that is not a number; what follows it quotes the value.
_CONVERSION = re.compile(r"In CSV column #(\d+): CSV conversion error to double")
# ARFF that the fast csv reader cannot read: a second kind of quote, a quote after a blank.
_AWKWARD_ARFF = re.compile(rb'"|,[ \t]+\'')


def extract_member(data: bytes, member: str) -> bytes:
    """Return the bytes of one member of a zip or gzipped tar file.

    Raises
    ------
    DpreproError
        If `data` is not a whole archive or has no such member.
    """
    read = _tar_member if data.startswith(GZIP) else _zip_member
    try:
        return read(data, member)
    except (tarfile.TarError, EOFError, *ARCHIVE_FAULTS) as error:
        kind = "gzipped tar" if data.startswith(GZIP) else "zip"
        raise DpreproError(f"not a whole {kind} file: {error}") from error


def _zip_member(data: bytes, member: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _require_member(member, archive.namelist())
        return archive.read(member)


def _tar_member(data: bytes, member: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        _require_member(member, archive.getnames())
        content = archive.extractfile(member)
        if content is None:
            raise DpreproError(f"member {member!r} of the archive is no file")
        return content.read()


def _require_member(member: str, names: list[str]) -> None:
    if member not in names:
        raise DpreproError(
            f"the archive has no member {member!r}{nearest(member, names) or '.'} "
            f"It has: {', '.join(names[:10])}"
        )


def read_table(
    data: bytes, settings: Format, kinds: Mapping[str, ColumnKind], missing: Collection[str]
) -> pd.DataFrame:
    """Return the table that `data` holds, one row for each line.

    Parameters
    ----------
    data
        The bytes of the file.
    settings
        Its format; ``kind`` must be set.
    kinds
        Kinds of columns, by name: "numeric" is parsed as float64 (`missing` texts as NaN), "text"
        is kept unchanged. The type of all other columns is inferred; "unused" ones may be
        nested.
    missing
        The texts that stand for a missing value in numeric columns.

    Raises
    ------
    DpreproError
        If the bytes do not fit the format, or a numeric column holds text.
    """
    read = _READERS[str(settings.kind)]
    try:
        table = read(data, settings, kinds, missing)
    except (pa.ArrowException, UnicodeError) as error:
        raise DpreproError(f"not valid {settings.kind}: {parser_problem(error)}") from None
    table.columns = [str(name).strip() for name in table.columns]
    if not table.columns.is_unique:
        repeated = np.flatnonzero(table.columns.duplicated(keep=False)) + 1
        raise DpreproError(
            f"column names repeat: those of columns {', '.join(map(str, repeated))}; rename them "
            "in the file. If its first line is a row, say so: "
            "`format: {header: false, columns: [...]}`"
        )
    return table


def not_numeric(name: str) -> str:
    """Return the message about a numeric column that holds text; it does not quote the text."""
    return (
        f"column {name!r} is numeric on the card but holds text; if that stands for a missing "
        "value, list it under `missing`. " + HOW_NUMBERS_LOOK
    )


def parser_problem(error: Exception) -> str:
    """Return the message of a parser without the row or value that it quotes."""
    text = str(error)
    if "UTF8" in text or isinstance(error, UnicodeError):
        return f"its bytes are not text in the expected encoding; {_ENCODING_ADVICE}"
    # Of "Row #17: Expected 2 columns, got 1: secret,row" what lies between row and colon.
    lengths = re.search(r"Expected \d+ columns, got \d+", text)
    if lengths:
        return (
            f"{lengths[0]} in some line; every line needs as many fields as the header. A text "
            "with a comma needs quotes, and a number has a decimal point, no comma"
        )
    known = ("Empty CSV file", "Parquet magic bytes not found", "Parquet file size is 0 bytes")
    return next((k for k in known if k in text), f"the parser gave up ({type(error).__name__})")


def _read_csv(
    data: bytes, settings: Format, kinds: Mapping[str, ColumnKind], missing: Collection[str]
) -> pd.DataFrame:
    if settings.comment:
        data = _without_comments(data, settings.comment.encode())
    return _arrow_csv(
        data,
        kinds,
        missing,
        column_names=settings.columns,
        encoding=settings.encoding,
        parse=pa.csv.ParseOptions(delimiter=settings.separator),
    )


def _arrow_csv(
    data: bytes,
    kinds: Mapping[str, ColumnKind],
    missing: Collection[str],
    *,
    column_names: list[str] | None,
    encoding: str,
    parse: pa.csv.ParseOptions,
) -> pd.DataFrame:
    types = {"numeric": pa.float64(), "text": pa.dictionary(pa.int32(), pa.string())}
    names = column_names or csv_header(data, encoding, parse)
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(
                column_names=names, skip_rows=0 if column_names else 1, encoding=encoding
            ),
            parse_options=parse,
            convert_options=pa.csv.ConvertOptions(
                column_types={n: types[k] for n in names if (k := kinds.get(n.strip())) in types},
                null_values=[blank + text for text in missing for blank in ("", " ")],
            ),
        )
    except pa.ArrowInvalid as error:
        found = _CONVERSION.search(str(error))
        if found is None:
            raise
        raise DpreproError(not_numeric(names[int(found[1])].strip())) from None
    for field in table.schema:
        if pa.types.is_binary(field.type):  # what arrow makes of bytes that are no text
            raise DpreproError(f"column {field.name!r} is not {encoding} text; {_ENCODING_ADVICE}")
    return table.to_pandas()


def csv_header(data: bytes, encoding: str, parse: pa.csv.ParseOptions) -> list[str]:
    """Return the names in the first line of a CSV."""
    first_line = data[: data.find(b"\n") + 1] or data
    names = pa.csv.read_csv(
        pa.BufferReader(first_line),
        # A command that ends while Arrow still starts its threads is aborted.
        read_options=pa.csv.ReadOptions(encoding=encoding, use_threads=False),
        parse_options=parse,
    ).column_names
    return [str(name) for name in names]


def _without_comments(data: bytes, mark: bytes) -> bytes:
    if not data.startswith(mark) and b"\n" + mark not in data:
        return data
    return b"".join(line for line in data.splitlines(True) if not line.startswith(mark))


def _read_arff(
    data: bytes, settings: Format, kinds: Mapping[str, ColumnKind], missing: Collection[str]
) -> pd.DataFrame:
    start = _DATA_LINE.search(data)
    if start is None:
        raise DpreproError("not valid arff: it has no @data line")
    body = _without_comments(data[start.end() :].lstrip(), b"%")
    if body.startswith(b"{") or _AWKWARD_ARFF.search(body):
        content = _liac(data, settings.encoding)
        return pd.DataFrame(content["data"], columns=[name for name, _ in content["attributes"]])
    header = _liac(data[: start.end()], settings.encoding)
    declared: dict[str, ColumnKind] = {
        name.strip(): "numeric" if kind in ("NUMERIC", "REAL", "INTEGER") else "text"
        for name, kind in header["attributes"]
    }
    return _arrow_csv(
        body,
        {**declared, **{name: kind for name, kind in kinds.items() if kind != "unused"}},
        [*missing, "?"],
        column_names=[name for name, _ in header["attributes"]],
        encoding=settings.encoding,
        parse=pa.csv.ParseOptions(quote_char="'", escape_char="\\"),
    )


def _liac(data: bytes, encoding: str) -> dict[str, Any]:
    import arff  # type: ignore[import-untyped]

    try:
        content: dict[str, Any] = arff.loads(data.decode(encoding))
    except arff.ArffException as error:
        rule = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(error).__name__).lower()
        raise DpreproError(f"not valid arff: {rule} in its header or in some line") from None
    except UnicodeError as error:
        raise DpreproError(f"not valid arff: {parser_problem(error)}") from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError):
        # What liac-arff does not foresee, such as an attribute without a name.
        raise DpreproError("not valid arff: some line is not as the format wants it") from None
    return content


_READERS: dict[str, Callable[..., pd.DataFrame]] = {
    "csv": _read_csv,
    "arff": _read_arff,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
    "idx": read_idx,
    "npz": read_npz,
}
