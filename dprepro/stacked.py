"""Tables for terminals that never cut a cell.

What is too wide is split into stacked parts, or shown in a form that needs less room.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dprepro.text import visible

StackedCell = str | tuple[Text, ...]
"""Words, which wrap at spaces and hyphens; or pieces, which stand side by side if there is room."""

# Wide enough to measure a table as if there were no edge.
_NO_EDGE = 1_000_000
# No column of names is made narrower than so many characters.
_SHORTEST_NAME = 4


@dataclass(frozen=True)
class StackedColumn:
    """A column of a `Stacked`.

    Attributes
    ----------
    title
        Its heading; wraps at spaces and hyphens where there is no room for it on one line.
    cells
        One a row. Pieces are never broken: those that do not fit side by side stand one below the
        other, and each may hold several lines.
    least
        A column of words is not made narrower than so many characters, unless it needs fewer.
    """

    title: str
    cells: Sequence[StackedCell]
    justify: JustifyMethod = "left"
    least: int = 0

    def __post_init__(self) -> None:
        """Make visible, before anything is measured, what would steer the terminal."""
        cells = [visible(c) if isinstance(c, str) else tuple(map(_seen, c)) for c in self.cells]
        object.__setattr__(self, "title", visible(self.title))
        object.__setattr__(self, "cells", cells)

    @cached_property
    def narrowest(self) -> int:
        """Characters that the column needs for its longest word or piece."""
        longest = max(_broken(cell) for cell in (self.title, *self.cells))
        return max(longest, min(self.least, self.widest))

    @cached_property
    def widest(self) -> int:
        """Characters that the column takes if there is room for all."""
        return max(_lines(cell) for cell in (self.title, *self.cells))


@dataclass(frozen=True)
class Stacked:
    """A table that becomes several, one below the other, where the console is too narrow.

    Each part repeats the first `lead` columns. Nothing is cut: where those and one more
    column are wider than the console, names are folded, and only then the other cells.

    Attributes
    ----------
    ends
        Rows, counted from 0, that a blank line follows.
    looks
        Further arguments of `rich.table.Table`.
    """

    title: str
    columns: Sequence[StackedColumn]
    lead: int = 1
    ends: Collection[int] = ()
    looks: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, console: Console, options: ConsoleOptions) -> bool:
        """Whether the console has room for all columns side by side."""
        columns = [(column, column.narrowest) for column in self.columns]
        return self._spare(columns, console, options) >= 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one table if it fits the console, else its parts."""
        whole = [(column, column.widest) for column in self.columns]
        if _width(console, options, self._table(whole)) <= options.max_width:
            yield self._filled(whole, self.title)
            return
        for position, part in enumerate(self._parts(console, options)):
            yield self._filled(part, self.title if position == 0 else None)

    def _parts(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[list[tuple[StackedColumn, int]]]:
        """Yield the columns of each part with their widths."""
        first = [(column, column.narrowest) for column in self.columns[: self.lead]]
        part = list(first)
        for column in self.columns[self.lead :]:
            longer = [*part, (column, column.narrowest)]
            if len(part) > self.lead and self._spare(longer, console, options) < 0:
                yield self._widened(part, console, options)
                longer = [*first, (column, column.narrowest)]
            part = longer
        yield self._widened(part, console, options)

    def _widened(
        self, part: list[tuple[StackedColumn, int]], console: Console, options: ConsoleOptions
    ) -> list[tuple[StackedColumn, int]]:
        """Return the columns with their widths, made wider where there is room.

        Columns that need little more are widened first. Where there is too little room, the first
        columns become narrower, so that names are folded.
        """
        spare = self._spare(part, console, options)
        widths = [width for _, width in part]
        while spare < 0 and max(widths[: self.lead]) > _SHORTEST_NAME:
            widths[widths[: self.lead].index(max(widths[: self.lead]))] -= 1
            spare += 1
        spare = max(spare, 0)
        wishes = [column.widest - width for column, width in part]
        for position in sorted(range(len(part)), key=wishes.__getitem__):
            more = min(wishes[position], spare)
            spare -= more
            widths[position] += more
        return [(column, width) for (column, _), width in zip(part, widths, strict=True)]

    def _spare(
        self, part: list[tuple[StackedColumn, int]], console: Console, options: ConsoleOptions
    ) -> int:
        return options.max_width - _width(console, options, self._table(part))

    def _table(self, part: Sequence[tuple[StackedColumn, int]], title: str | None = None) -> Table:
        """Return a table of these columns without rows."""
        style = self.looks.get("title_style", "table.title")
        table = Table(title=Text(title, style) if title else None, **self.looks)
        for column, width in part:
            heading = _fit(column.title, width)
            table.add_column(heading, justify=column.justify, width=width, overflow="fold")
        return table

    def _filled(self, part: Sequence[tuple[StackedColumn, int]], title: str | None) -> Table:
        table = self._table(part, title)
        for row in range(len(self.columns[0].cells)):
            cells = (_fit(column.cells[row], width) for column, width in part)
            table.add_row(*cells, end_section=row in self.ends)
        return table


@dataclass(frozen=True)
class Fitting:
    """The same tables in several forms, the first of which the console has room for is shown.

    There is room for a form if none of its tables has to be split. The last form is shown where
    there is room for none.
    """

    forms: Sequence[Sequence[Stacked]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables of one form."""
        roomy = (form for form in self.forms if all(table.fits(console, options) for table in form))
        yield from next(roomy, self.forms[-1])


def _width(console: Console, options: ConsoleOptions, table: Table) -> int:
    """Return what the columns of `table` take, with all between them."""
    table.min_width = None  # room for its title, which may wrap
    return Measurement.get(console, options.update_width(_NO_EDGE), table).maximum


def _seen(piece: Text) -> Text:
    if (shown := visible(piece.plain)) != piece.plain:
        piece = Text(shown, piece.style)
    return piece


def _fit(cell: StackedCell, width: int) -> Text:
    """Return a cell, broken where it may be so that its lines have `width` characters at most."""
    if isinstance(cell, str):
        return Text("\n".join(_wrapped(cell, width)) if cell_len(cell) > width else cell)
    return Text(" " if _lines(cell) <= width else "\n").join(cell)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_long_words=False)


def _lines(cell: StackedCell) -> int:
    """Return the length of the longest line where nothing has to be broken."""
    text = cell if isinstance(cell, str) else Text(" ").join(cell).plain
    return max(map(cell_len, text.split("\n")))


def _broken(cell: StackedCell) -> int:
    """Return the length of the longest line where all is broken that may be."""
    if isinstance(cell, str):
        return max(map(cell_len, _wrapped(cell, 1)), default=0)
    return max((cell_len(line) for piece in cell for line in piece.plain.split("\n")), default=0)
