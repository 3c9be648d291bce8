"""A sortable table of the page, as plain data: one template renders them all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from dprepro.results.cell import ResultCell


class Kind(str, Enum):
    """What a column holds, and so how it is set: left, right-aligned digits, or wrapped prose."""

    TEXT = "text"
    NUMBER = "number"
    PROSE = "prose"


@dataclass(frozen=True)
class Head:
    """The heading of a column; `hint` explains it."""

    title: str
    kind: Kind = Kind.TEXT
    hint: str = ""


@dataclass(frozen=True)
class Cell:
    """A field.

    Attributes
    ----------
    text
        What stands there.
    key
        What it sorts by, if not its text or the number that the text begins with.
    tone
        Verdict or state that colours it, a CSS class name; empty for none.
    link
        Identifier of the part of the page that the text leads to.
    more
        Lines folded away behind the text.
    """

    text: str
    key: str | None = None
    tone: str = ""
    link: str = ""
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row, and what the filters go by; None passes every choice of that filter.

    `result` and `metric` are what a row of a single cell shows.
    """

    cells: tuple[Cell, ...]
    paper: str | None = None
    dataset: str | None = None
    method: str | None = None
    verdict: str | None = None
    result: ResultCell | None = field(default=None, repr=False)
    metric: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table of rows under headings. `name` is its identifier in the page."""

    name: str
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...] = field(repr=False)

    def without_blank_columns(self, blank: str = "") -> Sheet:
        """Leave out the columns in which no row has anything but `blank`."""
        kept = [
            number
            for number in range(len(self.heads))
            if any(row.cells[number].text not in ("", blank) for row in self.rows)
        ]
        rows = (replace(row, cells=tuple(row.cells[k] for k in kept)) for row in self.rows)
        return replace(self, heads=tuple(self.heads[k] for k in kept), rows=tuple(rows))


def tone(words: str) -> str:
    """Return a verdict or a state as a CSS class name: ``"not run"`` becomes ``"not-run"``."""
    return "-".join(words.lower().split())
