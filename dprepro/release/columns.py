"""What a new card takes from a file: names, types, and how values are written."""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dprepro.data.card_parts import KIND_OF_SUFFIX, MISSING_TEXTS
from dprepro.data.feature_names import MOST_FEATURES
from dprepro.data.formats import csv_header, parser_problem
from dprepro.data.parquet_format import counts_agree, is_utf8
from dprepro.errors import DpreproError
from dprepro.release.arff_header import read_arff_header
from dprepro.release.forms import Form, form_of, present

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".data", ".txt", ".tsv")
_ALLOWED = (*_TEXT, *(f"{suffix}.gz" for suffix in _TEXT), ".arff", *_PARQUET)
_SEPARATORS = (",", ";", "\t", "|")
_FIRST_LINES, _FIRST_CHARACTERS = 50, 2**20
"""That are looked at to tell what separates fields."""

_NAMELESS = ("", "Unnamed: 0", "__index_level_0__")
"""What the index of a table is called in a file that pandas or R wrote."""


@dataclass(frozen=True)
class Columns:
    """What a file says of itself.

    Attributes
    ----------
    forms
        How values are written, by name, in the order of the file.
    format
        Keys of a card's ``format`` that say how the file is read, where they are not the usual
        ones.
    doubtful
        Names that occur as a value of their own column, too: then the first line may be a row.
    index
        The name of the column that is called like the index of a table.
    declared
        Whether types come from what the file declares, and no row was looked at for them.
    rows
        The values, if they were asked for: private.
    """

    forms: Mapping[str, Form]
    format: Mapping[str, str] = field(default_factory=dict)
    doubtful: tuple[str, ...] = ()
    index: str | None = None
    declared: Literal["", "schema", "header"] = ""
    rows: pa.Table | None = field(default=None, repr=False)


@dataclass(frozen=True)
class _Read:
    """A file as a table: strings of a text file, without blanks around them; else typed columns."""

    table: pa.Table
    format: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, Form] = field(default_factory=dict)


def read_columns(
    path: Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    observed: bool = False,
) -> Columns:
    """Return the columns of a CSV file with a header, of an ARFF or of a parquet file.

    Types of a CSV follow from its values: a column is numeric if every value that is not missing
    reads as a number. Those of other files are declared.

    Parameters
    ----------
    path
        The file; a CSV may be gzipped.
    separator, encoding
        Of a CSV; None to find them out.
    missing
        Texts that stand for a missing value, besides `MISSING_TEXTS`.
    observed
        Whether the values themselves are wanted.

    Raises
    ------
    DpreproError
        If the file cannot be read, or its first line does not hold names. No value is quoted.
    """
    suffix = _suffix(path)
    if suffix not in _ALLOWED:
        raise DpreproError(
            f"{path}: a file that ends in .csv or .parquet is needed (also "
            f"{', '.join(name for name in _ALLOWED if name not in ('.csv', '.parquet'))}). A "
            "spreadsheet is saved as CSV"
        )
    found = _read(path, suffix, separator, encoding, observed)
    blank = (*MISSING_TEXTS, *missing)
    forms: dict[str, Form] = {}
    for name in found.table.column_names:
        column = found.table[name]
        declared = found.declared.get(name)
        if declared is None:
            values = present(column, blank)
            lacks = len(values) < len(column)
            forms[name] = form_of(name, pc.unique(values), len(values), lacks)
        elif suffix in _PARQUET:
            forms[name] = _of_typed(name, column, blank)
        else:
            forms[name] = declared
    kind: Literal["", "schema", "header"] = ""
    if found.declared:
        kind = "schema" if suffix in _PARQUET else "header"
    names = list(forms)
    return Columns(
        forms,
        found.format,
        () if found.declared else tuple(n for n in names if _occurs(n, found.table[n])),
        next((name for name in names if name in _NAMELESS), None),
        kind,
        found.table if observed else None,
    )


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((end for end in sorted(_ALLOWED, key=len)[::-1] if name.endswith(end)), "")


def _read(
    path: Path, suffix: str, separator: str | None, encoding: str | None, rows: bool
) -> _Read:
    """Return what is in a file: the one place where a new card opens it. Raises DpreproError."""
    try:
        if suffix in _PARQUET:
            found = _parquet(path)
        else:
            data = path.read_bytes()
            data = gzip.decompress(data) if suffix.endswith(".gz") else data
            text, called = decoded(data, encoding)
            settings = {"encoding": called} if called != "utf8" else {}
            if suffix == ".arff":
                found = _arff(text, settings, rows)
            else:
                if suffix not in KIND_OF_SUFFIX:
                    settings = {"kind": "csv", **settings}
                found = _csv(path, text, settings, separator)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DpreproError(f"{path}: not a whole gzip file") from None
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, UnicodeError) as error:
        raise DpreproError(f"{path}: {parser_problem(error)}") from None
    except DpreproError as error:
        if str(error).startswith(str(path)):
            raise
        raise DpreproError(f"{path}: {error}") from None
    return found


def decoded(data: bytes, encoding: str | None = None) -> tuple[str, str]:
    """Return the text of a file, and its encoding as a card calls it.

    Without `encoding` the marks at the beginning decide; else it is UTF-8, or Windows-1252 where
    the bytes are not UTF-8.

    Raises
    ------
    DpreproError
        If the bytes are not text in that encoding.
    """
    if encoding is not None:
        tried = [encoding]
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        tried = ["utf-16"]
    elif len(data) > 1 and 4 * data[:1000:2].count(0) > len(data[:1000]):
        tried = ["utf-16-be"]
    elif len(data) > 1 and 4 * data[1:1000:2].count(0) > len(data[:1000]):
        tried = ["utf-16-le"]
    else:
        tried = ["utf8", "cp1252"]
    for name in tried:
        try:
            text = data.decode("utf-8-sig" if name.lower() in ("utf8", "utf-8") else name)
        except (UnicodeError, LookupError):
            continue
        return text.replace("\r\n", "\n").replace("\r", "\n"), name
    raise DpreproError(
        f"its bytes are not text in {' or '.join(tried)}; say what it is with --encoding, such as "
        "--encoding mac-roman, or save it as UTF-8"
    )


def _csv(path: Path, text: str, settings: Mapping[str, str], separator: str | None) -> _Read:
    settings = dict(settings)
    first, _, rest = text.partition("\n")
    told = first.strip(' "')
    if told[:4].lower() == "sep=" and told[4:] in _SEPARATORS:  # a line for spreadsheets
        if settings.get("encoding", "").startswith("utf-16"):
            raise DpreproError(
                "in UTF-16 no reader skips its first line, which is for spreadsheets (sep=). Take "
                "this line out, or save the file as UTF-8"
            )
        settings["comment"] = first[: first.lower().index("sep=") + 4]
        text, separator = rest, separator or told[4:]
    mark = separator or separator_of(text)
    if mark != ",":
        settings["separator"] = mark
    counts = _fields(_first_lines(text), mark)
    if len(counts) > 1 and set(counts[1:]) == {counts[0] + 1}:
        raise DpreproError(
            "every line has a field more than the first, which holds the names: so R writes "
            f"names of rows. Put a name before the first, such as `row{mark}`, and drop that column"
        )
    parse = pa.csv.ParseOptions(delimiter=mark)
    data = text.encode()
    raw = csv_header(data, "utf8", parse)
    names = [name.strip() for name in raw]
    _check_names(path, names)
    table = pa.csv.read_csv(
        pa.BufferReader(data),
        parse_options=parse,
        convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(raw, pa.string())),
    )
    return _Read(_trimmed(table).rename_columns(names), settings)


def separator_of(text: str) -> str:
    """Return what separates the fields of a text: what gives the first lines as many fields."""
    lines = _first_lines(text)

    def alike(mark: str) -> tuple[bool, int]:
        counts = _fields(lines, mark)
        return len(set(counts)) == 1 and counts[0] > 1, counts[0] if counts else 0

    return max(_SEPARATORS, key=alike)


def _first_lines(text: str) -> list[str]:
    lines = text[:_FIRST_CHARACTERS].split("\n")[:_FIRST_LINES]
    is_cut = len(text) > _FIRST_CHARACTERS and 1 < len(lines) < _FIRST_LINES
    return lines[:-1] if is_cut else lines


def _fields(lines: Sequence[str], mark: str) -> list[int]:
    """Return how many fields each line has that is not empty; none if they cannot be read."""
    try:
        return [len(row) for row in csv.reader(lines, delimiter=mark) if row]
    except csv.Error:
        return []


def _arff(text: str, settings: Mapping[str, str], rows: bool) -> _Read:
    attributes, body = read_arff_header(text)
    names = [attribute.name for attribute in attributes]
    if not names or len(set(names)) < len(names):
        raise DpreproError("its header does not have a different name for each attribute")
    forms = {
        one.name: Form("numeric" if one.is_numeric else "text", categories=one.categories,
                       bounds=one.bounds)
        for one in attributes
    }  # fmt: skip
    lines = [line for line in body.split("\n") if line.strip() and not line.startswith("%")]
    table = pa.table({name: pa.array([], pa.string()) for name in names})
    if rows and lines:
        if lines[0].lstrip().startswith("{"):
            raise DpreproError("values of a sparse ARFF cannot be observed; leave out --observed")
        table = pa.csv.read_csv(
            pa.BufferReader("\n".join(lines).encode()),
            read_options=pa.csv.ReadOptions(column_names=names),
            parse_options=pa.csv.ParseOptions(quote_char="'", escape_char="\\"),
            convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    return _Read(_trimmed(table), settings, forms)


def _parquet(path: Path) -> _Read:
    file = pa.parquet.ParquetFile(path)
    # Before rows are read: a command that ends while Arrow still starts its threads is aborted.
    names = [name.strip() for name in file.schema_arrow.names]
    _check_names(path, names)
    if not counts_agree(file.metadata):
        raise DpreproError("not valid parquet: its counts of rows do not agree")
    table = file.read().rename_columns(names)
    for name in names:
        if not is_utf8(table[name]):
            raise DpreproError(f"not valid parquet: column {name!r} has text that is not UTF-8")
    return _Read(table, {}, dict.fromkeys(names, Form("text")))


def _of_typed(name: str, column: pa.ChunkedArray, missing: Sequence[str]) -> Form:
    """Return the form of a typed column: its type decides what is a number."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return Form("text", (), categories=("False", "True"))
    values = column.drop_null()
    if pa.types.is_floating(kind) and not _is_whole(values):
        return Form("numeric", lacks=len(values) < len(column))
    texts = as_texts(pc.unique(values)) if not pa.types.is_nested(kind) else None
    if texts is None:
        return Form("text", ())
    named = present(texts, missing)
    lacks = len(values) < len(column) or len(named) < len(texts)
    found = form_of(name, named, len(values), lacks)
    if _is_number(kind):
        # Codes of missing values are texts of a text file: no reader looks for them here.
        listed = "" if found.codes else found.listed
        return Form("numeric", listed=listed, lacks=lacks, identifier=found.identifier)
    return replace(found, kind="text", numbers=(), sign="", codes=())


def as_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """Return typed values as the texts that a reader makes of them; None of values with parts."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        if pa.types.is_floating(column.type) and _is_whole(column):
            column = column.cast(pa.int64())
        return pc.utf8_trim_whitespace(column.cast(pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _is_whole(column: pa.Array | pa.ChunkedArray) -> bool:
    values = column.drop_null()
    return bool(pc.all(pc.and_(pc.is_finite(values), pc.equal(pc.round(values), values))).as_py())


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _trimmed(table: pa.Table) -> pa.Table:
    return pa.table(
        [pc.utf8_trim_whitespace(column) for column in table.columns], names=table.column_names
    )


def _occurs(name: str, column: pa.ChunkedArray) -> bool:
    """Whether a name is a value of a column, whatever its case."""
    alike = column.filter(pc.equal(pc.utf8_length(column), len(name)))
    return bool(name) and name.lower() in pc.unique(pc.utf8_lower(alike)).to_pylist()


def _check_names(path: Path, names: list[str]) -> None:
    named = names[1:] if names[:1] == [""] else names  # an index of pandas or R has no name
    if not named or len(set(names)) < len(names) or any(map(_is_value, named)):
        raise DpreproError(
            f"{path}: its first line does not hold a different name for each column. If it is a "
            "row, put a line with the names before it"
        )
    if len(names) > MOST_FEATURES:
        raise DpreproError(
            f"{path}: {len(names):,} columns, and a card can have {MOST_FEATURES:,} features. "
            "Leave columns out of the file"
        )


def _is_value(name: str) -> bool:
    """Whether a name is more likely a value of a row."""
    try:
        float(name)
    except ValueError:
        return name in MISSING_TEXTS
    return True
