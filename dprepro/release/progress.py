"""What is being worked on and how far it has come, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn, TaskID, TaskProgressColumn

from dprepro.runtime.terminal import can_draw, error_console, progress_bar
from dprepro.runtime.terminal import console as standard_console

if TYPE_CHECKING:
    from dprepro.rows.table import What

T = TypeVar("T")


@contextmanager
def shown_progress(console: Console | None = None, first: str = "") -> Iterator[None]:
    """Show a progress bar with the time left, for each thing that is done to a table.

    It shows shares and no numbers of rows. Where there is no terminal, nothing is shown. `first`
    says what goes on from the beginning, with the time gone.
    """
    console = console or standard_console()
    if not can_draw(console):
        yield
        return
    from dprepro.rows.table import listening  # with pandas, which most that has a bar does not need

    bars: dict[What, TaskID] = {}
    with progress_bar(console, TaskProgressColumn(), is_transient=True) as progress:
        if first:
            progress.add_task(first, total=None)

        def show(what: What, done: int, total: int | None) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done, total=total)

        with listening(show):
            yield


def shown_steps(
    what: str, items: Sequence[T], name: Callable[[T], str], console: Console | None = None
) -> Iterator[T]:
    """Yield the items; a bar on the terminal says which one is worked on, and how many are done.

    Where standard error is no terminal, nothing is shown.
    """
    console = console or error_console()
    if not can_draw(console):
        yield from items
        return
    with progress_bar(console, MofNCompleteColumn(), is_transient=True) as progress:
        bar = progress.add_task(what, total=len(items))
        for item in items:
            progress.update(bar, description=f"{what} {name(item)}")
            yield item
            progress.advance(bar)
