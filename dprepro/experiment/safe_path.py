"""Keep the working directory out of what the processes started from here can import.

Python looks for modules in the working directory first when it starts with ``-m`` or ``-c``, as
loky's workers and both resource trackers do: a ``random.py`` of the user's would be run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any


def keep_working_directory_out() -> None:
    """Have every Python process that this one starts from now on ignore its working directory.

    Such processes still see what ``PYTHONPATH`` names, and workers what this process can import.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    if sys.version_info < (3, 11):  # which do not know the variable
        _rewrite_commands()


def guarded(command: Sequence[str]) -> list[str]:
    """Return a command ``[python, ..., "-c" or "-m", what, ...]`` that ignores its directory.

    With ``-c`` nothing is imported before the code runs, which takes the directory out of the path
    first; with ``-m`` it would be too late for ``runpy``, so that becomes a ``-c`` too.
    """
    for i, argument in enumerate(command[:-1]):
        if argument == "-c":
            code = command[i + 1]
        elif argument == "-m":
            code = f"import runpy; runpy.run_module({command[i + 1]!r}, None, '__main__', True)"
        else:
            continue
        return [*command[:i], "-c", f"{_CLEAR}; {code}", *command[i + 2 :]]
    return list(command)


_CLEAR = "import sys; sys.path[:1] = [p for p in sys.path[:1] if p]"


def _rewrite_commands() -> None:
    from multiprocessing import util

    from loky.backend import fork_exec as of_loky

    for module, name, place in (
        (util, "spawnv_passfds", 1),
        (of_loky, "fork_exec", 0),
    ):
        start = getattr(module, name)
        if not hasattr(start, "guards"):
            setattr(module, name, _Guarding(start, place))


class _Guarding:
    """Starts a process by way of `start`, whose argument at `place` is the command."""

    def __init__(self, start: Any, place: int) -> None:
        self.guards = start
        self._place = place

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        command = guarded(arguments[self._place])
        return self.guards(
            *arguments[: self._place], command, *arguments[self._place + 1 :], **options
        )
