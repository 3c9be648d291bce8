"""A codebook: what the publishers of data say about its columns, as a CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dprepro.errors import DpreproError, nearest
from dprepro.files import MEBIBYTE, read_text

COLUMNS = (
    "name", "type", "lower", "upper", "categories", "missing", "measured_in", "description",
)  # fmt: skip
OTHERS = "*"
"""The name of a line about all columns that the codebook does not name."""

TYPES = ("numeric", "categorical", "target", "unit", "drop")
_MOST_BYTES = 16 * MEBIBYTE
_BETWEEN, _AS = "|", " as "
_ANSWERS = {"yes": True, "true": True, "no": False, "false": False, "": False}


@dataclass(frozen=True)
class Entry:
    """What the codebook says about one column.

    Attributes
    ----------
    kind
        One of `TYPES`: a feature, the target, the column that says whose row it is, or nothing.
    lower, upper
        Bounds of numbers; of a unit `upper` is how many rows it has at most.
    categories
        All possible values; of a target its classes, the positive one last.
    relabel
        Of a target: to which class a text of the file belongs, if it is not its name.
    """

    kind: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    missing: bool = False
    measured_in: str = ""
    description: str = ""
    relabel: Mapping[str, str] = field(default_factory=dict)


def read_codebook(path: Path) -> dict[str, Entry]:
    """Return what a codebook says, by the names of columns.

    Its first line names the columns: `COLUMNS` in any order, of which name and type are needed. A
    line named ``*`` drops all columns without a line. Categories are separated by ``|``. Of a
    target, ``no as later|>30 as later|<30`` makes one class of two texts.

    Raises
    ------
    DpreproError
        If it cannot be read, or a line is not valid; the message names the line.
    """
    try:
        with io.StringIO(read_text(path, _MOST_BYTES)) as file:
            reader = csv.DictReader(file)
            reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
            _check_header(path, reader.fieldnames)
            found: dict[str, Entry] = {}
            for values in reader:
                where = f"{path}, line {reader.line_num}"
                name = (values["name"] or "").strip()
                if not name or name in found:
                    raise DpreproError(f"{where}: a name is needed, and each only once: {name!r}")
                found[name] = _entry(values, where)
                if name == OTHERS and found[name].kind != "drop":
                    raise DpreproError(f"{where}: all other columns can only be of type drop")
    except csv.Error as error:
        raise DpreproError(f"{path}: cannot be read: {error}") from error
    return found


def _check_header(path: Path, names: Sequence[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            raise DpreproError(
                f"{path}: unknown column {name!r}{nearest(name, COLUMNS) or '.'} "
                f"Allowed: {', '.join(COLUMNS)}"
            )
    if not {"name", "type"} <= set(names):
        raise DpreproError(f"{path}: its first line must name the columns name and type")


def _entry(values: Mapping[str | None, object], where: str) -> Entry:
    if None in values:
        raise DpreproError(f"{where}: more fields than the first line names; quote commas")
    text = {str(key).strip(): str(value or "").strip() for key, value in values.items()}
    kind, missing = text["type"], text.get("missing", "").lower()
    if kind not in TYPES:
        raise DpreproError(
            f"{where}, type: given {kind!r}{nearest(kind, TYPES) or '.'} "
            f"Allowed: {', '.join(TYPES)}"
        )
    if missing not in _ANSWERS:
        raise DpreproError(f"{where}, missing: given {missing!r}. Allowed: yes, no, or nothing")
    given = [c.strip() for c in text.get("categories", "").split(_BETWEEN) if c.strip()]
    pairs = [(c, c) if kind != "target" else _renamed(c) for c in given]
    return Entry(
        kind,
        _number(text.get("lower", ""), f"{where}, lower"),
        _number(text.get("upper", ""), f"{where}, upper"),
        tuple(dict.fromkeys(label for _, label in pairs)),
        _ANSWERS[missing],
        text.get("measured_in", ""),
        text.get("description", ""),
        {old: label for old, label in pairs if old != label},
    )


def _renamed(category: str) -> tuple[str, str]:
    """Return a text of the file, and the class that it belongs to."""
    old, mark, label = category.partition(_AS)
    return (old.strip(), label.strip()) if mark else (category, category)


def _number(text: str, where: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DpreproError(f"{where}: a number is needed, given {text!r}")
    return value
