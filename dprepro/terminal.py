"""Tables and consoles for terminals: with `dprepro.stacked`, what makes them for the report."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from dprepro.stacked import Stacked, StackedColumn
from dprepro.text import visible

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

Renderable = RenderableType
"""What a console prints."""

_LINED: dict[str, Any] = {"box": box.SIMPLE_HEAD, "title_justify": "left"}

# Of lists: characters between columns, and the widest column but the last.
_GAP = 2
_LONGEST_CELL = 36
# Words that wrap are not set a word a line.
_READABLE = 16

# A file or a pipe has no width: this one has room for a table of six methods.
_FILE_WIDTH = 180
_FILE_HEIGHT = 24


class PlainConsole(Console):
    """A console that shows every text as it is: no markup, no emoji, nothing that steers it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield what is drawn, with what would steer the terminal made visible."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


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
