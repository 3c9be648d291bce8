"""A codebook: what the publishers of data say about its columns, as a CSV file."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from dprepro.data.card_parts import expand_names
from dprepro.data.domain import date_as_number, is_date_format
from dprepro.release.columns import Form, decoded, separator_of
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.files import MEBIBYTE, read_bytes

COLUMNS = (
    "name", "type", "lower", "upper", "categories", "missing", "measured_in", "description",
    "ordered", "date",
)  # fmt: skip
OTHERS = "*"
"""The name of a line about all columns that no other line is about."""

OF_COLUMNS = ("numeric", "categorical", "date", "target", "unit", "drop")
TYPES = (*OF_COLUMNS, "list", "missing")
_OF_ONE = ("target", "unit")
_MOST_BYTES = 16 * MEBIBYTE
_MOST_PROBLEMS = 50
_BETWEEN, _AS, _OF_LIST = "|", " as ", "@"
_CODE = re.compile(r"(?P<old>[^=]*[^=<>!\s])\s*=\s*(?P<label>[^=\s].*)")
_PARTS = 10_000
"""Of a year, to which bounds of dates are rounded outwards: an hour or so."""
_NUMBER = re.compile(r"^line (\d+)")
_ANSWERS = {"yes": True, "true": True, "no": False, "false": False, "": False}


@dataclass(frozen=True)
class Entry:
    """What is known about one column.

    Attributes
    ----------
    kind
        A feature (numeric, categorical, date), the target, the unit that says whose row it is, or
        "drop".
    lower, upper
        Bounds of numbers, and of dates in years; of a unit `upper` is how many rows it has at most.
    categories
        All possible values; of a target its classes, the positive one last.
    relabel
        To which category a text of the file belongs, if it is not its name.
    ordered
        Whether the categories have the order in which they are listed.
    date
        The format of dates.
    shared
        The name of the list that the categories are.
    proposed
        What was read from the rows for it; see `dprepro.release.new_card`. Nothing in a codebook.
    """

    kind: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    missing: bool = False
    measured_in: str = ""
    description: str = ""
    relabel: Mapping[str, str] = field(default_factory=dict)
    ordered: bool = False
    date: str = ""
    shared: str = ""
    proposed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Codebook:
    """What a codebook says: of columns, by name; and which texts are missing values in all."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Line:
    """One line of the file: its place, its fields, and the names that it is about."""

    number: int
    text: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.text["name"]

    @property
    def kind(self) -> str:
        return self.text["type"]


def read_codebook(path: Path, columns: Mapping[str, Form] | None = None) -> Codebook:
    """Return what a codebook says about columns.

    Its first line names the columns: `COLUMNS` in any order, of which name and type are needed. A
    name may be a pattern (``q*``, ``q{1..20}``); a line that names a column wins over a pattern,
    and a longer pattern over a shorter one. ``*`` is about all columns without another line.

    Categories are separated by ``|``. ``8 as other|9 as other`` or ``1=Male|2=Female`` say which
    category a text of the file is; ``@NAME`` stands for those of the line NAME of type ``list``.
    The categories of the line ``*`` of type ``missing`` stand for missing values.

    Parameters
    ----------
    path
        A CSV file; fields may be separated by semicolons or tabs.
    columns
        The columns of the data, by name; without them names and types are not compared.

    Raises
    ------
    DpreproError
        If it cannot be read, or a line is not valid; the message has all problems, with lines.
    """
    problems: list[str] = []
    lines = list(_lines(path, problems))
    lists = {line.name.removeprefix(_OF_LIST): line for line in lines if line.kind == "list"}
    named: dict[str, tuple[_Line, Entry]] = {}
    patterns: dict[str, tuple[_Line, Entry]] = {}
    missing: list[str] = []
    for line in lines:
        if len(problems) > _MOST_PROBLEMS:
            break
        if line.kind == "list":
            if not _split(line.text.get("categories", "")):
                problems.append(f"line {line.number}: the list {line.name!r} has no categories")
            continue
        if line.kind == "missing":
            if line.name != OTHERS:
                problems.append(
                    f"line {line.number}: codes of missing values hold for all columns, so that "
                    f"the line is named {OTHERS}; given {line.name!r}"
                )
            missing += _split(line.text.get("categories", ""))
            continue
        entry = _entry(line, lists, problems)
        for name in _names(line, problems):
            (patterns if "*" in name else named)[name] = (line, entry)
    found = _resolved(named, patterns, columns, problems)
    if columns is not None:
        _compare(found, columns, problems)
    _compare_roles(found, problems)
    if problems:
        _refuse(path, problems)
    return Codebook({name: entry for name, (_, entry) in found.items()}, tuple(missing))


def missing_codes(path: Path) -> tuple[str, ...]:
    """Return the texts that a codebook says are missing values, whatever else is wrong with it.

    Raises
    ------
    DpreproError
        If it cannot be read.
    """
    lines = (line for line in _lines(path, []) if line.kind == "missing")
    return tuple(code for line in lines for code in _split(line.text.get("categories", "")))


def _refuse(path: Path, problems: Sequence[str]) -> None:
    problems = sorted(dict.fromkeys(problems), key=lambda said: int(_NUMBER.findall(said)[0]))
    shown = problems[:_MOST_PROBLEMS]
    if len(shown) == 1:
        raise DpreproError(f"{path}, {shown[0]}")
    more = [f"and more than {len(shown)} in all"] if len(problems) > len(shown) else []
    raise DpreproError("\n  ".join([f"{path}: {len(shown)} places are wrong:", *shown, *more]))


def _lines(path: Path, problems: list[str]) -> Iterator[_Line]:
    try:
        text, _ = decoded(read_bytes(path, _MOST_BYTES))
    except DpreproError as error:
        said = str(error)
        raise DpreproError(said if said.startswith(str(path)) else f"{path}: {said}") from None
    reader = csv.reader(io.StringIO(text), delimiter=separator_of(text.partition("\n")[0]))
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header, problems)
        given: dict[tuple[str, str], int] = {}
        for fields in reader:
            number = reader.line_num
            if not any(field.strip() for field in fields):
                continue
            if len(fields) > len(header) and any(field.strip() for field in fields[len(header) :]):
                problems.append(
                    f"line {number}: more fields than the first line names; quote commas"
                )
                continue
            named = zip(header, map(str.strip, fields), strict=False)
            line = _Line(number, {"name": "", "type": "", **dict(named)})
            if line.kind not in TYPES:
                problems.append(
                    f"line {number}, type: given {line.kind!r}{nearest(line.kind, TYPES) or '.'} "
                    f"Allowed: {', '.join(TYPES)}"
                )
                continue
            room = line.kind if line.kind in ("list", "missing") else "column"
            if not line.name or (room, line.name) in given:
                first = given.get((room, line.name))
                before = f", and this one is on line {first}" if first else ""
                problems.append(
                    f"line {number}: a name is needed, and each only once: {line.name!r}{before}"
                )
                continue
            given[room, line.name] = number
            yield line
            if len(problems) > _MOST_PROBLEMS:
                return
    except csv.Error as error:
        raise DpreproError(f"{path}: cannot be read: {error}") from error


def _check_header(path: Path, names: Sequence[str], problems: list[str]) -> None:
    for name in names:
        if name not in COLUMNS and len(problems) <= _MOST_PROBLEMS:
            problems.append(
                f"line 1: unknown column {name[:80]!r}{nearest(name, COLUMNS) or '.'} "
                f"Allowed: {', '.join(COLUMNS)}"
            )
    if not {"name", "type"} <= set(names):
        problems.append("line 1: its first line must name the columns name and type")
        _refuse(path, problems)


def _names(line: _Line, problems: list[str]) -> list[str]:
    """Return the names that a line is about, a range such as ``q{1..20}`` written out."""
    try:
        names = list(expand_names({line.name: None}))
    except ValueError as error:
        problems.append(f"line {line.number}: {error}")
        return []
    if line.kind in _OF_ONE and (len(names) > 1 or "*" in line.name):
        problems.append(
            f"line {line.number}: {line.name!r} is a pattern, and only one column can be the "
            f"{line.kind}: name it"
        )
        return []
    if line.name == OTHERS and line.kind != "drop":
        problems.append(f"line {line.number}: all other columns can only be of type drop")
        return []
    return names


def _entry(line: _Line, lists: Mapping[str, _Line], problems: list[str]) -> Entry:
    text, where, kind = line.text, f"line {line.number}", line.kind
    given, shared = text.get("categories", ""), ""
    if given.startswith(_OF_LIST):
        shared = given[len(_OF_LIST) :].strip()
        if shared in lists:
            given = lists[shared].text.get("categories", "")
        else:
            problems.append(
                f"{where}, categories: there is no line {shared!r} of type list"
                f"{nearest(shared, list(lists))}"
            )
            given, shared = "", ""
    pairs = list(map(_renamed, _split(given)))
    date = text.get("date", "")
    if date and not _is_date_format(date):
        problems.append(
            f"{where}, date: {date!r} is no format of dates, such as %Y-%m-%d or %d.%m.%Y"
        )
    if date and kind != "date":
        problems.append(f"{where}, date: for a line of type date, and this one is {kind}")
    if pairs and kind in ("numeric", "date", "drop", "unit"):
        problems.append(f"{where}, categories: not for a line of type {kind}")
    categories = tuple(dict.fromkeys(label for _, label in pairs))
    relabel = {old: label for old, label in pairs if old != label}
    if kind == "categorical":
        _check_relabel(pairs, categories, where, problems)
    lower = _number(text.get("lower", ""), date, f"{where}, lower", problems)
    upper = _number(text.get("upper", ""), date, f"{where}, upper", problems)
    if lower is not None and upper is not None and not lower < upper:
        problems.append(f"{where}: lower must be less than upper, given {lower:g} and {upper:g}")
    return Entry(
        kind, lower, upper, categories,
        _answer(line, "missing", problems), text.get("measured_in", ""),
        text.get("description", ""), relabel, _answer(line, "ordered", problems), date, shared,
    )  # fmt: skip


def _is_date_format(text: str) -> bool:
    try:
        return is_date_format(text)
    except re.error:  # a part that is there twice
        return False


def _check_relabel(
    pairs: Sequence[tuple[str, str]], categories: Sequence[str], where: str, problems: list[str]
) -> None:
    """Note texts that are said to be two categories."""
    seen: dict[str, str] = {}
    for old, label in pairs:
        if seen.setdefault(old, label) != label or (old != label and old in categories):
            problems.append(f"{where}, categories: {old!r} is said to be two categories")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(_BETWEEN) if part.strip()]


def _renamed(category: str) -> tuple[str, str]:
    """Return a text of the file, and the category that it belongs to.

    The sign of equality counts only as such: "<=50" is a category. "a=b as a=b" is one, too.
    """
    old, mark, label = category.partition(_AS)
    if mark:
        return old.strip(), label.strip()
    found = _CODE.fullmatch(category)
    return (found["old"].strip(), found["label"].strip()) if found else (category, category)


def _answer(line: _Line, key: str, problems: list[str]) -> bool:
    given = line.text.get(key, "").lower()
    if given not in _ANSWERS:
        problems.append(
            f"line {line.number}, {key}: given {line.text[key]!r}. Allowed: yes, no, or nothing"
        )
    return _ANSWERS.get(given, False)


def _number(text: str, date: str, where: str, problems: list[str]) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) and date and _is_date_format(date):
        try:
            years = date_as_number(text, date) * _PARTS
        except ValueError:
            years = math.nan
        if not math.isnan(years):
            return (math.floor if where.endswith("lower") else math.ceil)(years) / _PARTS
    if not math.isfinite(value):
        also = ", or a date as in the column date" if date else ""
        problems.append(f"{where}: a number is needed, given {text!r}{also}")
        return None
    return value


_Found = dict[str, tuple[_Line, Entry]]


def _resolved(
    named: _Found, patterns: _Found, columns: Mapping[str, Form] | None, problems: list[str]
) -> _Found:
    """Return what holds for each column; without columns, patterns stay as they are."""
    if columns is None:
        return {**named, **patterns}
    used: set[str] = set()
    longest = sorted(patterns, key=len, reverse=True)
    found: _Found = {}
    for column in columns:
        pattern = next((one for one in longest if fnmatchcase(column, _as_glob(one))), None)
        if column in named:
            found[column] = named[column]
        elif pattern is not None:
            found[column] = patterns[pattern]
        used |= {column, pattern or ""}
    for name, (line, _) in {**named, **patterns}.items():
        if name not in used and name != OTHERS and len(problems) <= _MOST_PROBLEMS:
            wrong = "matches no column" if "*" in name else "is not a column"
            problems.append(
                f"line {line.number}: {name!r}, which {wrong} of the file"
                f"{nearest(name, [c for c in columns if c not in named]) or '.'}"
            )
    return found


def _as_glob(pattern: str) -> str:
    """Return a pattern of which only the star is special."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def _compare(found: _Found, columns: Mapping[str, Form], problems: list[str]) -> None:
    """Note columns of the file that are not what the codebook says."""
    for name, (line, entry) in found.items():
        kind = columns[name].kind
        if entry.kind == "numeric" and kind == "text":
            hint = (
                "say `date`" if columns[name].dates
                else "say `categorical`, correct the file, or list its codes of missing values "
                f"(a line {OTHERS} of type missing)"
            )  # fmt: skip
            problems.append(
                f"line {line.number}: {name!r} is numeric, but the file holds text there: {hint}"
            )
        dates = columns[name].dates
        if entry.kind == "date" and entry.date and dates and entry.date not in dates:
            problems.append(
                f"line {line.number}: the dates of {name!r} are not written as {entry.date}, but "
                f"as {' or '.join(dates)}"
            )


def _compare_roles(found: _Found, problems: list[str]) -> None:
    for kind in _OF_ONE:
        names = [name for name, (_, entry) in found.items() if entry.kind == kind]
        if len(names) > 1:
            problems.append(
                f"line {found[names[1]][0].number}: more than one {kind}: {', '.join(names)}"
            )
