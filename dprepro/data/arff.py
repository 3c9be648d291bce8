"""ARFF: a header that says what the columns are, and rows as Weka writes them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from dprepro.data.card_parts import one_line
from dprepro.data.decoding import BadRecordError, as_utf8
from dprepro.data.delimited import Dialect
from dprepro.runtime.errors import DpreproError

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(
    rf"@attribute\s+(?P<name>{_QUOTED}|[^\s{{'\"]+)(?=[\s{{])\s*(?P<kind>\{{.*|\S+)\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_VALUE = re.compile(rf"\s*(?P<value>{_QUOTED}|[^,{{}}]*?)\s*(?P<end>[,}}])")
_DATA = re.compile(
    rb"^[ \t]*@data[ \t]*(?:%[^\r\n]*)?(?:\r\n|\r|\n|\Z)", re.IGNORECASE | re.MULTILINE
)
_SPARSE = re.compile(rb"(?:\s*%[^\r\n]*(?:\r\n|\r|\n|\Z)|\s+)*\{")
_NUMERIC = ("numeric", "real", "integer")
_KINDS = (*_NUMERIC, "string", "date")
_PAIR = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^,}}]*?)\s*([,}}])")


@dataclass(frozen=True)
class Attribute:
    """A column as the header declares it.

    Attributes
    ----------
    name, kind
        Its name and type.
    values
        The values of a nominal attribute: public, as the header lists them whatever the rows hold.
    bounds
        Of a number whose range the header states, such as ``[16,90]``; else None.
    """

    name: str
    kind: Literal["number", "text", "nominal", "date"]
    values: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False)
class ArffFile:
    """The parts of an ARFF file: its attributes, its rows as UTF-8, and the first line of these."""

    attributes: tuple[Attribute, ...]
    body: bytes
    first_line: int

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [attribute.name for attribute in self.attributes]

    @property
    def is_sparse(self) -> bool:
        """Whether rows name the columns whose value is not zero."""
        return _SPARSE.match(self.body) is not None

    @property
    def dialect(self) -> Dialect:
        """How its rows are parted."""
        return Dialect(quotes="'\"", escape="\\", comment="%", missing="?", names=tuple(self.names))


def parse_arff(data: bytes, encoding: str) -> ArffFile:
    """Return the parts of an ARFF file.

    Raises DpreproError if its header cannot be read; the message names the line.
    """
    data = as_utf8(data, encoding)
    start = _DATA.search(data)
    if start is None:
        raise DpreproError("not valid arff: it has no @data line")
    attributes = []
    header = data[: start.start()].decode()
    for number, line in enumerate(re.split(r"\r\n|\r|\n", header), start=1):
        text = line.strip()
        if not text or text.startswith("%") or text.lower().startswith("@relation"):
            continue
        if not text.lower().startswith("@attribute"):
            raise DpreproError(
                f"not valid arff: line {number} is neither @relation, @attribute, @data nor a "
                "comment (%)"
            )
        attributes.append(_attribute(text, number))
    if not attributes:
        raise DpreproError("not valid arff: its header has no @attribute line")
    lines = len(re.findall(rb"\r\n|\r|\n", data[: start.end()]))
    return ArffFile(tuple(attributes), data[start.end() :], lines + 1)


def _attribute(text: str, line: int) -> Attribute:
    found = _ATTRIBUTE.match(text)
    if found is None:
        raise DpreproError(
            f"not valid arff: line {line}: an attribute has a name and a type, such as "
            "`@attribute age numeric`"
        )
    name, kind = one_line(_plain(found["name"])), found["kind"]
    if kind.startswith("{"):
        return Attribute(name, "nominal", _values(text[found.start("kind") + 1 :], line))
    rest = found["rest"].strip()
    kind = kind.partition("[")[0].partition("%")[0].lower() or kind
    if kind not in _KINDS:
        raise DpreproError(
            f"not valid arff: line {line}: the type of {name!r} is {kind!r}. Allowed: "
            f"{', '.join(_KINDS)}, and lists in braces"
        )
    if kind in _NUMERIC:
        return Attribute(name, "number", bounds=_bounds(found["kind"] + rest, name, line))
    return Attribute(name, "date" if kind == "date" else "text")


def _bounds(text: str, name: str, line: int) -> tuple[float, float] | None:
    """Return the range that is stated after the type of a number; None if none is."""
    stated = text.partition("%")[0]
    if "[" not in stated:
        return None
    try:
        low, high = map(float, stated[stated.index("[") + 1 :].rstrip("] \t").split(","))
    except ValueError:
        raise DpreproError(
            f"not valid arff: line {line}: the range of {name!r} is not of two numbers"
        ) from None
    return (low, high) if low < high else None


def _values(text: str, line: int) -> tuple[str, ...]:
    values, place = [], 0
    while True:
        found = _VALUE.match(text, place)
        if found is None:
            raise DpreproError(
                f"not valid arff: line {line}: a list of values begins with {{, ends with }} and "
                "has commas between; a value with one of these in it needs quotes"
            )
        values.append(_plain(found["value"]))
        place = found.end()
        if found["end"] == "}":
            return tuple(value for value in values if value or len(values) > 1)


def _plain(text: str) -> str:
    """Return a text without its quotes and escapes."""
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def read_sparse(file: ArffFile) -> pa.Table:
    """Return the rows of a sparse file, in which a value that is not named is zero.

    Of a nominal attribute, zero is the first value that the header lists.

    Raises BadRecordError if a line is not as the format wants it; the message names it.
    """
    columns: list[list[str | None]] = [[] for _ in file.attributes]
    for number, line in enumerate(io.StringIO(file.body.decode()), start=file.first_line):
        row = line.strip()
        if not row or row.startswith("%"):
            continue
        for column, value in zip(columns, _sparse_row(row, file.attributes, number), strict=True):
            column.append(value)
    return pa.table([pa.array(column, pa.string()) for column in columns], names=file.names)


def _sparse_row(row: str, attributes: Sequence[Attribute], line: int) -> list[str | None]:
    values: list[str | None] = [a.values[0] if a.values else "0" for a in attributes]
    fault = BadRecordError(
        f"line {line}: a sparse row is {{INDEX VALUE, ...}} with an INDEX from 0 to "
        f"{len(attributes) - 1}, ascending"
    )
    if not (row.startswith("{") and row.endswith("}")):
        raise fault
    if not row[1:-1].strip():
        return values
    place, last = 1, -1
    while place < len(row):
        found = _PAIR.match(row, place)
        if found is None or not last < int(found[1]) < len(attributes):
            raise fault
        last = int(found[1])
        values[last] = None if found[2] == "?" else _plain(found[2])
        place = found.end()
    return values
