"""Consoles and tables for terminals, none of which cuts a cell.

What is too wide is split into stacked parts, or shown in a form that needs less room.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from dprepro.runtime.text import visible

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

StackedCell = str | tuple[Text, ...]
"""Words, which wrap at spaces and hyphens; or pieces, which stand side by side if there is room."""

# Wide enough to measure a table as if there were no edge.
_NO_EDGE = 1_000_000
# No column of names is made narrower than so many characters.
_SHORTEST_NAME = 4

_LINED: dict[str, Any] = {"box": box.SIMPLE_HEAD, "title_justify": "left"}

# Of lists: characters between columns, and the widest column but the last.
_GAP = 2
_LONGEST_CELL = 36
# Words that wrap are not set a word a line.
_READABLE = 16

# A file or a pipe has no width: this one has room for a table of six methods.
_FILE_WIDTH = 180
_FILE_HEIGHT = 24


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


Renderable = RenderableType
"""What a console prints."""


class PlainConsole(Console):
    """A console that shows every text as it is: no markup, no emoji, nothing that steers it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield what is drawn, with what would steer the terminal made visible."""
        for segment in super().render(renderable, options):
            text, style, control = segment  # what steers is never printable; a table has thousands
            yield segment if control or text.isprintable() else Segment(visible(text), style)


def console() -> Console:
    """Return a console of the terminal's width, or a wide one for a file or a pipe.

    The environment variable COLUMNS sets the width instead, if it is a positive number.
    """
    size = shutil.get_terminal_size((_FILE_WIDTH, _FILE_HEIGHT))
    return PlainConsole(width=size.columns, height=size.lines)


def error_console() -> Console:
    """Return a console for standard error."""
    return PlainConsole(stderr=True)


def can_draw(console: Console) -> bool:
    """Return whether a line of the console can be drawn anew: not in a file, pipe or dumb one."""
    return console.is_terminal and not console.is_dumb_terminal


def progress_bar(
    console: Console,
    amount: ProgressColumn,
    *more: ProgressColumn,
    is_transient: bool = False,
    left: ProgressColumn | None = None,
) -> Progress:
    """Return a progress bar with the time gone and the time left; `amount` says how much is done.

    The time left is `left`, by default what has been done so far goes on as fast. A transient bar
    goes away at its end.
    """
    from rich.progress import (  # not all that prints has a bar
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", "bold", markup=False),
        BarColumn(),
        amount,
        TimeElapsedColumn(),
        TextColumn("left"),
        left or TimeRemainingColumn(),
        *more,
        console=console,
        transient=is_transient,
        # What goes to standard output while a bar stands on standard error stays there.
        redirect_stdout=not console.stderr,
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural: ``"1 task"``, ``"25 tasks"``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def below(*parts: Renderable) -> Renderable:
    """Return the parts one below the other; strings are plain text."""
    return Group(*(Text(visible(part)) if isinstance(part, str) else part for part in parts))


def indented(part: Renderable) -> Renderable:
    """Return a part moved to the right, with an empty line above and below."""
    return Padding(part, (1, 0, 1, 2))


def stacked_table(
    title: str,
    columns: Sequence[StackedColumn],
    lead: int,
    ends: Iterable[int] = (),
    *,
    is_tight: bool = False,
) -> Stacked:
    """Return a table that becomes several, one below the other, where the console is too narrow.

    Parameters
    ----------
    lead
        Every part repeats so many of the first columns.
    ends
        Rows, counted from 0, that a blank line follows.
    is_tight
        Whether two characters stand between columns; else three.
    """
    looks = _LINED | ({"padding": (0, 1, 0, 0)} if is_tight else {})
    return Stacked(title, columns, lead, frozenset(ends), looks)


@dataclass(frozen=True)
class BareTable:
    """A table without lines; where the console is too narrow, it becomes several.

    Attributes
    ----------
    words, figures
        Headings of the columns that are set left, and of those that are set right.
    title
        Above the table, in plain text.
    wraps
        Whether columns of words may be broken at spaces and hyphens.
    is_flush
        Whether the table begins at the left edge, with its title in the middle; else it begins one
        character further right, with its title on the left.
    """

    words: Sequence[str]
    figures: Sequence[str]
    title: str = ""
    wraps: bool = False
    is_flush: bool = False
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        """Add a row of plain text, a cell for each heading."""
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or its parts."""
        columns = []
        for position, heading in enumerate((*self.words, *self.figures)):
            cells = [row[position] if position < len(row) else "" for row in self.rows]
            is_word = position < len(self.words)
            whole = not (is_word and self.wraps)
            columns.append(
                StackedColumn(
                    heading,
                    [(Text(visible(cell)),) for cell in cells] if whole else cells,
                    "left" if is_word else "right",
                    least=_READABLE,
                )
            )
        looks = {
            "box": None,
            "pad_edge": not self.is_flush,
            "title_justify": "center" if self.is_flush else "left",
        }
        yield Stacked(self.title, columns, len(self.words), looks=looks)


def aligned_list(
    rows: Sequence[Sequence[str]], width: int, figures: Iterable[int] = ()
) -> list[str]:
    """Return rows of cells as lines, with columns below each other; the last cell may wrap.

    A cell is never cut. Where the last has too little room beside the others, it stands below them,
    and a single word that is longer than `width` makes its line longer.

    Parameters
    ----------
    figures
        Columns, counted from 0, that are set right.
    """
    if not rows:
        return []
    rows = [[visible(cell) for cell in row] for row in rows]
    right = set(figures)
    widths = [
        min(max(cell_len(row[k]) for row in rows), _LONGEST_CELL) for k in range(len(rows[0]) - 1)
    ]
    indent = sum(widths) + _GAP * len(widths)
    lines = []
    for *cells, last in rows:
        padded = [
            cell.rjust(size) if k in right else cell.ljust(size)
            for k, (cell, size) in enumerate(zip(cells, widths, strict=True))
        ]
        head = "".join(cell + " " * _GAP for cell in padded)
        room = width - indent
        if cell_len(head) > indent or room < min(cell_len(last), _READABLE):
            lines += wrapped(head.rstrip(), width, _GAP)
            lines += wrapped(" " * _GAP + last, width, _GAP) if last else []
        else:
            lines += wrapped(head + last, width, indent)
    return [line.rstrip() for line in lines]


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Return a text as lines of at most `width` characters, broken at spaces alone.

    All but the first are indented. A word that is longer than a line, such as a path or a checksum,
    stays whole, so that it can be copied.
    """
    start = len(text) - len(text.lstrip())
    body = textwrap.wrap(
        text.strip(),
        width,
        initial_indent=" " * start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return body or [""]
