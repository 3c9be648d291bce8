"""How the values of a column are written: what a new card proposes follows from it.

A form holds no value of a row. What it names are constants that everybody knows, such as "no" and
"yes", or -99. That a column holds nothing else is still a fact about rows, which one row can
change: it is not covered by epsilon, and a new card says in its head which facts were read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from dprepro.data.dates import as_number

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
        as_number(text, date)
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
