"""What a new card takes from a file: names, types, and how the values of each column are written.

A form holds no value of a row. What it names are constants that everybody knows, such as "no" and
"yes", or -99. That a column holds nothing else is still a fact about rows, which one row can
change: it is not covered by epsilon, and a new card says in its head which facts were read.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from dprepro.data.arff import parse_arff
from dprepro.data.card_parts import MISSING_TEXTS, MOST_FEATURES, Format, FormatKind, one_line
from dprepro.data.domain import date_as_number
from dprepro.data.files import unzipped
from dprepro.data.formats import ColumnKind, index_names, other_kind, parser_problem, read_table
from dprepro.runtime.errors import DpreproError

Kind = Literal["numeric", "text"]
Convention = tuple[str, str]
"""The mark of decimals, and that of thousands; the second is empty if there is none."""

KNOWN_LISTS: dict[str, tuple[str, ...]] = {
    "zero-one": ("0", "1"), "zero-one-decimal": ("0.0", "1.0"),
    "no-yes": ("no", "yes"), "No-Yes": ("No", "Yes"), "NO-YES": ("NO", "YES"),
    "n-y": ("n", "y"), "N-Y": ("N", "Y"),
    "false-true": ("false", "true"), "False-True": ("False", "True"),
    "FALSE-TRUE": ("FALSE", "TRUE"), "F-T": ("F", "T"),
    "f-m": ("f", "m"), "F-M": ("F", "M"), "female-male": ("female", "male"),
    "Female-Male": ("Female", "Male"),
    "nein-ja": ("nein", "ja"), "Nein-Ja": ("Nein", "Ja"), "N-J": ("N", "J"),
    "non-oui": ("non", "oui"), "Non-Oui": ("Non", "Oui"), "N-O": ("N", "O"),
}  # fmt: skip
"""Lists of categories that everybody knows, by name; the last of each is the positive one."""
_LONGEST_LIST = max(map(len, KNOWN_LISTS.values()))

CONVENTIONS: tuple[Convention, ...] = (
    (".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"),
)  # fmt: skip

_CODES = (
    *(-7, -8, -9, -66, -77, -88, -97, -98, -99, -200, -999, -9999, -99999),
    *(88, 99, 888, 998, 999, 8888, 9998, 9999, 99999, 999999),
)
"""Numbers that often stand for a missing value."""
_SPELT = {f"{code}{end}": code for code in _CODES for end in ("", ".0", ",0")}

_FEWEST_ROWS = 20
"""Of fewer rows, values are often all different by chance."""

_DAYS = (
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y",
    "%d/%m/%y", "%m/%d/%y",
)  # fmt: skip
_TIMES = ("%H:%M", "%H:%M:%S")
_DATES = (
    *_DAYS, *(f"{day}{gap}{time}" for day in _DAYS for gap in (" ", "T") for time in _TIMES),
    *_TIMES,
)  # fmt: skip
_LIKE_DATE = (
    r"^[0-9]{1,4}([./-][0-9]{1,4}){2}([ T][0-9]{1,2}(:[0-9]{2}){1,2})?$|"
    r"^[0-9]{1,2}(:[0-9]{2}){1,2}$"
)
_WHOLE = r"^[+-]?[0-9]+$"
_NO_MARKS = r"^[+-]?[0-9]+([eE][+-]?[0-9]+)?$"
_LIKE_NUMBER = r"^[+-]?[.,]?[0-9][0-9.,' ]*([eE][+-]?[0-9]+)?$"
_CURRENCY = r"(?:[$€£¥]|EUR|USD|GBP|CHF)"
_SIGNS = {
    "a currency sign": (rf"^([+-]?)\s*{_CURRENCY}\s*|\s*{_CURRENCY}$", r"\1"),
    "a percent sign": (r"\s*%$", ""),
}
_NAMED_LIKE_IDS = re.compile(
    r"(^|[_\W])(id|ids|nr|no|num|number|key|uuid|guid|index|idx|case|row|record)($|[_\W])", re.I
)
_CAMEL_ID = re.compile(r"[a-z](Id|ID|Nr|No|Key)$")

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".data", ".txt", ".tsv")
_ALLOWED = (*_TEXT, *(f"{suffix}.gz" for suffix in _TEXT), ".arff", *_PARQUET)
_SEPARATORS = (",", ";", "\t", "|")
_FIRST_LINES, _FIRST_CHARACTERS = 50, 2**20
"""That are looked at to tell what separates fields."""

_NAMELESS = ("", "Unnamed: 0")
"""What the index of a table is called in a file that pandas or R wrote."""


@dataclass(frozen=True)
class Form:
    """How the values of one column are written.

    Attributes
    ----------
    kind
        "numeric" if every value is a number, in one way of writing numbers or another.
    numbers
        The ways of writing numbers in which all values are numbers.
    sign
        What stands beside the numbers, which no reader takes off: a currency or percent sign.
    dates
        Formats of `datetime.strptime` in which all values are dates or times.
    listed
        The name of the list among `KNOWN_LISTS` that holds all values.
    codes
        Texts of numbers that often stand for a missing value, and are far from all other values.
    lacks
        Whether values are missing.
    identifier
        Why values say which row it is, and nothing else; empty if they may say more.
    categories, bounds
        What the header of an ARFF file declares, or a type that has two values only.
    """

    kind: Kind
    numbers: tuple[Convention, ...] = CONVENTIONS
    sign: str = ""
    dates: tuple[str, ...] = ()
    listed: str = ""
    codes: tuple[str, ...] = ()
    lacks: bool = False
    identifier: str = ""
    categories: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None


def form_of(name: str, texts: pa.Array | pa.ChunkedArray, rows: int, lacks: bool = False) -> Form:
    """Return how the values of a column are written.

    Parameters
    ----------
    name
        Of the column.
    texts
        Its different values that are not missing, in the order in which they occur.
    rows
        How many values of the column are not missing.
    lacks
        Whether others are.
    """
    if not len(texts):
        return Form("text", (), lacks=lacks)
    numbers, sign = _numbers(texts), ""
    if not numbers:
        numbers, sign = _signed(texts)
    if sign:
        codes: tuple[str, ...] = ()
    elif numbers:
        codes = _missing_codes(texts, numbers[0])
    else:  # beside words and dates, a negative number stands out
        codes = tuple(text for text in _spelt(texts) if _SPELT[text] < 0)
    others = _without(texts, codes)
    found = set(others.to_pylist()) if len(others) <= _LONGEST_LIST else {""}
    listed = next((key for key, known in KNOWN_LISTS.items() if found <= set(known)), "")
    dates = () if numbers or listed else _dates(others)
    if not (numbers or listed or dates):
        codes = ()
    all_differ = len(texts) == rows >= _FEWEST_ROWS and not (listed or dates)
    identifier = _identifier(name, texts, bool(numbers)) if all_differ else ""
    kind: Kind = "numeric" if numbers else "text"
    return Form(kind, numbers, sign, dates, listed, codes, lacks, identifier)


def present(column: pa.Array | pa.ChunkedArray, missing: Sequence[str]) -> pa.ChunkedArray:
    """Return the texts of a column that do not stand for a missing value."""
    return _without(column.drop_null(), missing)


def convention(
    columns: Iterable[Form], separator: str, decimal: str | None, thousands: str | None
) -> Convention:
    """Return the way of writing numbers that fits the most columns.

    Of two that fit as many, the one with fewer marks is taken. Of "1,234" alone nobody can say what
    the comma is: it is taken as the mark of thousands only where commas separate the fields, too.

    Parameters
    ----------
    columns
        Those whose values are used as numbers.
    separator
        Of the fields.
    decimal, thousands
        What is known beforehand; None for what is not.
    """
    fits = [form.numbers for form in columns if not form.sign]
    last = (",", "") if separator == "," else (".", ",")
    allowed = [
        one
        for one in (*(c for c in CONVENTIONS[:3] if c != last), last, *CONVENTIONS[3:])
        if decimal in (None, one[0]) and thousands in (None, one[1])
    ]
    if not allowed:
        return decimal or ".", thousands or ""
    return max(allowed, key=lambda one: sum(one in found for found in fits))


def as_floats(texts: pa.ChunkedArray | pa.Array, way: Convention) -> list[float]:
    """Return texts as numbers, which are written in this way."""
    plain = pc.replace_substring(texts, way[1], "") if way[1] else texts
    return [float(text.replace(way[0], ".")) for text in plain.to_pylist()]


def _numbers(texts: pa.Array) -> tuple[Convention, ...]:
    if _all(texts, _NO_MARKS):
        return CONVENTIONS
    if _all(texts, _pattern(CONVENTIONS[0])):  # most files: fewer patterns to try
        likely = [way for way in CONVENTIONS if way[0] == "."]
        points = (",", ".")  # all of which may stand before three digits
        return (*likely, points) if _all(texts, _pattern(points)) else tuple(likely)
    if not _all(texts, _LIKE_NUMBER):
        return ()
    return tuple(way for way in CONVENTIONS if _all(texts, _pattern(way)))


def _pattern(way: Convention) -> str:
    decimal, thousands = map(re.escape, way)
    whole = "[0-9]+"
    if thousands:
        whole = f"(?:[0-9]+|[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+)"
    return rf"^[+-]?(?:{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][+-]?[0-9]+)?$"


def _signed(texts: pa.Array) -> tuple[tuple[Convention, ...], str]:
    """Return how numbers are written beside a currency or percent sign, and which it is."""
    for sign, (pattern, left) in _SIGNS.items():
        bare = pc.replace_substring_regex(texts, pattern, left)
        if not bare.equals(texts) and (numbers := _numbers(bare)):
            return numbers, sign
    return (), ""


def _without(column: pa.Array | pa.ChunkedArray, texts: Sequence[str]) -> pa.ChunkedArray:
    return column.filter(pc.invert(pc.is_in(column, pa.array(texts, pa.string()))))


def _spelt(texts: pa.Array) -> list[str]:
    """Return the texts that are such numbers."""
    found = texts.filter(pc.is_in(texts, pa.array(_SPELT, pa.string()))).to_pylist()
    return list(map(str, found))


def _missing_codes(texts: pa.Array, way: Convention) -> tuple[str, ...]:
    found = _spelt(texts)
    while found:
        rest = _without(texts, found)
        if len(rest) < 2:
            return ()
        numbers = as_floats(rest, way)
        low, high = min(numbers), max(numbers)
        below = 0 if low >= 0 else low - (high - low)
        far = [t for t in found if _SPELT[t] < below or _SPELT[t] > high + (high - low)]
        if far == found:
            break
        found = far  # the others are values like the rest
    return tuple(sorted(found, key=lambda text: (abs(_SPELT[text]), text)))


def _dates(texts: pa.Array) -> tuple[str, ...]:
    if not _all(texts, _LIKE_DATE):
        return ()
    written = texts.to_pylist()
    return tuple(date for date in _DATES if all(_is_date(text, date) for text in written))


def _is_date(text: str, date: str) -> bool:
    try:
        date_as_number(text, date)
    except ValueError:
        return False
    return True


def _identifier(name: str, texts: pa.Array, numeric: bool) -> str:
    """Return what values that all differ say of their rows, if it is nothing else."""
    if not numeric:
        return "all its values differ"
    if not _all(texts, _WHOLE):
        return ""
    numbers = list(map(int, texts.to_pylist()))
    if numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return "a running number"
    named = _NAMED_LIKE_IDS.search(name) or _CAMEL_ID.search(name)
    return "all its values differ, and its name is that of an identifier" if named else ""


def _all(texts: pa.ChunkedArray | pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


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


@dataclass(frozen=True, repr=False)
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
