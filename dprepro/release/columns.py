"""What a new card takes from a file: names, types, and how values are written."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from dprepro.data.arff import parse_arff
from dprepro.data.card_parts import MISSING_TEXTS, Format, FormatKind
from dprepro.data.feature_names import MOST_FEATURES, one_line
from dprepro.data.formats import ColumnKind, other_kind, parser_problem, read_table
from dprepro.data.packed import unzipped
from dprepro.data.parquet_format import index_names
from dprepro.errors import DpreproError
from dprepro.release.forms import Form, form_of, present

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".data", ".txt", ".tsv")
_ALLOWED = (*_TEXT, *(f"{suffix}.gz" for suffix in _TEXT), ".arff", *_PARQUET)
_SEPARATORS = (",", ";", "\t", "|")
_FIRST_LINES, _FIRST_CHARACTERS = 50, 2**20
"""That are looked at to tell what separates fields."""

_NAMELESS = ("", "Unnamed: 0")
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
    _check_names(path, found.table.column_names)
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
        data = unzipped(path.read_bytes()) if suffix not in _PARQUET else path.read_bytes()
        if suffix in _PARQUET:
            return _parquet(data)
        text, called = decoded(data, encoding)
        settings = {"encoding": called} if called != "utf8" else {}
        if suffix == ".arff":
            return _arff(data, settings, rows)
        if said := other_kind(data[:64], "csv"):
            raise DpreproError(said)
        mark = separator or separator_of(text)
        if mark != ",":
            settings["separator"] = mark
        try:
            table = read_table(data, _format("csv", settings), {})
        except DpreproError as error:
            if not any(line.startswith("#") for line in _first_lines(text)):
                raise
            raise DpreproError(
                f"{error} There are lines that begin with #: if they are comments, take them out "
                'of the file, or write a card by hand with `format: {comment: "#"}`'
            ) from None
        return _Read(_trimmed(table), settings)
    except OSError as error:
        raise DpreproError(f"{path}: cannot be read: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise DpreproError(f"{path}: {parser_problem(error)}") from None
    except DpreproError as error:
        raise DpreproError(f"{path}: {error}") from None


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


def separator_of(text: str) -> str:
    """Return what separates the fields of a text: what gives the first lines as many fields."""
    lines = _first_lines(text)
    told = lines[0].strip(' "') if lines else ""
    if told[:4].lower() == "sep=" and told[4:] in _SEPARATORS:  # a line for spreadsheets
        return told[4:]

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


def _format(kind: FormatKind, settings: Mapping[str, str]) -> Format:
    return Format.model_validate({"kind": kind, **settings})


def _arff(data: bytes, settings: Mapping[str, str], rows: bool) -> _Read:
    file = parse_arff(data, settings.get("encoding", "utf8"))
    forms = {
        one.name: Form("numeric" if one.kind == "number" else "text", categories=one.values,
                       bounds=one.bounds)
        for one in file.attributes
    }  # fmt: skip
    if len(forms) < len(file.names):
        raise DpreproError("its header does not have a different name for each attribute")
    if rows:
        kinds: dict[str, ColumnKind] = dict.fromkeys(forms, "text")
        table = _trimmed(read_table(data, _format("arff", settings), kinds))
    else:
        table = pa.table({name: pa.array([], pa.string()) for name in file.names})
    return _Read(table, settings, forms)


def _parquet(data: bytes) -> _Read:
    schema = pa.parquet.read_schema(pa.BufferReader(data))
    # Columns of lists and structs are listed, too: they are for `drop`.
    names = [name for name in schema.names if name not in index_names(schema)]
    kinds: dict[str, ColumnKind] = dict.fromkeys(map(one_line, names), "unused")
    table = read_table(data, Format(kind="parquet"), kinds)
    return _Read(table, {}, dict.fromkeys(table.column_names, Form("text")))


def _of_typed(name: str, column: pa.ChunkedArray, missing: Sequence[str]) -> Form:
    """Return the form of a typed column: its type decides what is a number."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return Form("text", (), lacks=column.null_count > 0, categories=("False", "True"))
    if pa.types.is_null(kind):
        return Form("text", (), lacks=len(column) > 0)
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
    """Whether all numbers are whole, and such as int64 holds."""
    values = column.drop_null()
    fits = pc.less(pc.abs(values), pa.scalar(2.0**63, values.type))  # not so of NaN
    return bool(pc.all(pc.and_(fits, pc.equal(pc.round(values), values))).as_py())


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _trimmed(table: pa.Table) -> pa.Table:
    texts = [pc.utf8_trim_whitespace(pc.cast(column, pa.string())) for column in table.columns]
    return pa.table(texts, names=table.column_names)


def _occurs(name: str, column: pa.ChunkedArray) -> bool:
    """Whether a name is a value of a column, whatever its case."""
    alike = column.filter(pc.equal(pc.utf8_length(column), len(name)))
    return bool(name) and name.lower() in pc.unique(pc.utf8_lower(alike)).to_pylist()


def _check_names(path: Path, names: list[str]) -> None:
    named = names[1:] if names[:1] == [""] else names  # an index of pandas or R has no name
    wrong = _wrong_names(names, len(names) - len(named)) if named else "it names no column"
    if wrong:
        if _suffix(path) in _PARQUET:
            where, what = "its schema", "Change these names in the file"
        else:
            where = "its first line"
            what = (
                "If it is a row, put a line with the names before it; else change these names in "
                "the file"
            )
        raise DpreproError(
            f"{path}: {where} does not hold a different name for each column: {wrong}. {what}"
        )
    if len(names) > MOST_FEATURES:
        raise DpreproError(
            f"{path}: {len(names):,} columns, and a card can have {MOST_FEATURES:,} features. "
            "Leave columns out of the file"
        )


def _wrong_names(names: list[str], start: int) -> str:
    """Return what is wrong with names from `start` on, by position: a name may be a value."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name == "" and number > start:
            return f"column {number} has no name"
        if first.setdefault(name, number) != number:
            return f"columns {first[name]} and {number} have the same"
    found = next((k for k, name in enumerate(names[start:], start + 1) if _is_value(name)), None)
    return f"that of column {found} is a number, or stands for a missing value" if found else ""


def _is_value(name: str) -> bool:
    """Whether a name is more likely a value of a row."""
    try:
        float(name)
    except ValueError:
        return name in MISSING_TEXTS
    return True
