"""How far a fit to a table, or a prediction of one, has come, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import TaskID, TaskProgressColumn

from dprepro.rows.progress import What, listening
from dprepro.terminal import console as standard_console
from dprepro.terminal import progress_bar


@contextmanager
def shown_progress(console: Console | None = None) -> Iterator[None]:
    """Show a progress bar with the time left, for each thing that is done to a table.

    It shows shares and no numbers of rows. Where there is no terminal, nothing is shown.
    """
    console = console or standard_console()
    if not console.is_terminal:
        yield
        return
    bars: dict[What, TaskID] = {}
    with progress_bar(console, TaskProgressColumn(), is_transient=True) as progress:

        def show(what: What, done: int, total: int | None) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total)
            progress.update(bars[what], completed=done, total=total)

        with listening(show):
            yield
