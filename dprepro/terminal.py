"""Tables and consoles for terminals: with `dprepro.stacked`, what makes them for the report."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from dprepro.stacked import Stacked, StackedColumn

Renderable = RenderableType
"""What a console prints."""

_LINED: dict[str, Any] = {"box": box.SIMPLE_HEAD, "title_justify": "left"}

# A file or a pipe has no width: this one has room for a table of six methods.
_FILE_WIDTH = 180


def console() -> Console:
    """Return a console of the terminal's width, or a wide one for a file or a pipe.

    The environment variable COLUMNS sets the width instead, if it is a positive number.
    """
    return Console(width=shutil.get_terminal_size((_FILE_WIDTH, 0)).columns)


def error_console() -> Console:
    """Return a console for standard error."""
    return Console(stderr=True)


def progress_bar(
    console: Console, amount: ProgressColumn, *more: ProgressColumn, is_transient: bool = False
) -> Progress:
    """Return a progress bar with the time gone and the time left; `amount` says how much is done.

    A transient bar goes away at its end.
    """
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        amount,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        *more,
        console=console,
        transient=is_transient,
    )


def below(*parts: Renderable) -> Renderable:
    """Return the parts one below the other; strings are read as rich markup."""
    return Group(*parts)


def indented(part: Renderable) -> Renderable:
    """Return a part moved to the right, with an empty line above and below."""
    return Padding(part, (1, 0, 1, 2))


def stacked_table(
    title: str, columns: Sequence[StackedColumn], lead: int, ends: Iterable[int] = ()
) -> Renderable:
    """Return a table that becomes several, one below the other, where the console is too narrow.

    Parameters
    ----------
    lead
        Every part repeats so many of the first columns.
    ends
        Rows, counted from 0, that a blank line follows.
    """
    return Stacked(title, columns, lead, frozenset(ends), _LINED)


def bare_table(
    words: Sequence[str],
    figures: Sequence[str],
    title: str | None = None,
    *,
    wraps: bool = False,
    is_flush: bool = False,
) -> Table:
    """Return an empty table without lines.

    Parameters
    ----------
    words, figures
        Headings of the columns that are set left, and of those that are set right. Columns of
        words are never broken unless the table `wraps`.
    title
        In rich markup; above the table.
    is_flush
        Whether the table begins at the left edge, with its title in the middle; else it begins one
        character further right, with its title on the left.
    """
    justify: Literal["center", "left"] = "center" if is_flush else "left"
    table = Table(title=title, box=None, pad_edge=not is_flush, title_justify=justify)
    for heading in words:
        table.add_column(heading, no_wrap=not wraps, overflow="fold" if wraps else "ellipsis")
    for heading in figures:
        table.add_column(heading, justify="right")
    return table


def prose_table(title: str, columns: Sequence[tuple[str, int | None]]) -> Table:
    """Return an empty table of sentences, with a line between its rows.

    Parameters
    ----------
    columns
        Headings, each with its share of the width; None for a column that is never broken.
    """
    table = Table(title=title, show_lines=True, **_LINED)
    for heading, ratio in columns:
        table.add_column(heading, ratio=ratio, no_wrap=ratio is None, overflow="fold")
    return table
