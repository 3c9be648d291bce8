"""The header of an ARFF file: names, types, and the values that its publishers declare."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from dprepro.errors import DpreproError

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"[^"]*"|[^\s{'"]+)\s*(.*)$""", re.I)
_RANGE = re.compile(r"\[\s*([^,\]\s]+)\s*,\s*([^,\]\s]+)\s*\]")
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """One attribute: numeric or not, and its nominal values or its range if the header has them."""

    name: str
    is_numeric: bool
    categories: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None


def read_arff_header(text: str) -> tuple[list[Attribute], str]:
    """Return the attributes of an ARFF file, and the text after its ``@data`` line.

    Raises
    ------
    DpreproError
        If a line of the header is not valid, or there is no ``@data``; the message names the line.
    """
    found: list[Attribute] = []
    lines = text.split("\n")
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line.lower() == "@data":
            return found, "\n".join(lines[number:])
        if not line.lower().startswith("@attribute"):
            continue
        match = _ATTRIBUTE.match(line)
        if match is None or not match[2]:
            raise DpreproError(f"line {number}: `@attribute NAME TYPE` is needed")
        found.append(_attribute(_unquoted(match[1]), match[2].strip(), number))
    raise DpreproError("it has no line @data, so that it is no ARFF file")


def _attribute(name: str, declared: str, line: int) -> Attribute:
    if declared.startswith("{"):
        body, end, _ = declared[1:].rpartition("}")
        if not end:
            raise DpreproError(f"line {line}: the list of {name!r} has no closing brace")
        quote = '"' if '"' in body else "'"
        rows = csv.reader([body], quotechar=quote, skipinitialspace=True, escapechar="\\")
        try:
            values = tuple(value.strip() for value in next(rows, []))
        except csv.Error:
            raise DpreproError(f"line {line}: the list of {name!r} cannot be read") from None
        return Attribute(name, False, tuple(dict.fromkeys(values)))
    kind = re.split(r"[\s\[]", declared, maxsplit=1)[0].lower()
    match = _RANGE.search(declared)
    if kind not in _NUMERIC or match is None:
        return Attribute(name, kind in _NUMERIC)
    try:
        low, high = float(match[1]), float(match[2])
    except ValueError:
        raise DpreproError(f"line {line}: the range of {name!r} is not of two numbers") from None
    return Attribute(name, True, bounds=(low, high) if low < high else None)


def _unquoted(name: str) -> str:
    if name[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", name[1:-1]).strip()
    return name
