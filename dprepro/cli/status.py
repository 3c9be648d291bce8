"""What a command that takes a while says of itself: nothing if it is quick."""

from __future__ import annotations

import sys
from threading import Timer

from dprepro.cli.streams import say

SECONDS = 2.0
"""What takes no longer says nothing."""


class Patience:
    """Within a ``with`` block, says on standard error what is done, from `SECONDS` on.

    Of the steps before that time only the last one is said.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._timer = Timer(seconds, self._begin)
        self._timer.daemon = True
        self._step = ""
        self._speaks = False

    def __enter__(self) -> Patience:
        self._timer.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._timer.cancel()

    def step(self, text: str) -> None:
        """Take note of what begins now, and say it if the command takes long."""
        self._step = text
        if self._speaks:
            self._say()

    def _begin(self) -> None:
        self._speaks = True
        if self._step:
            self._say()

    def _say(self) -> None:
        say(f"{self._step} ...", err=True)


class Waiting(Patience):
    """Within a ``with`` block, the same in a line of the terminal that goes away with the block.

    Nothing is said where standard output or standard error is no terminal.
    """

    def __init__(self, seconds: float = SECONDS / 2) -> None:
        from dprepro.runtime.terminal import can_draw, error_console

        super().__init__(seconds)
        console = error_console()
        shows = sys.stdout.isatty() and can_draw(console)
        self._line = console.status("") if shows else None

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self._timer.join()  # the line must not begin after its end
        if self._line is not None:
            self._line.stop()

    def _say(self) -> None:
        if self._line is not None:
            self._line.update(f"{self._step} ...")
            self._line.start()
