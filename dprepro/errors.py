"""Errors meant for the person at the command line: one clear message, no traceback."""

import dis
from pathlib import Path

DEBUG_VARIABLE = "DPREPRO_DEBUG"
"""Set to anything, every error is printed whole, with its traceback, to the terminal."""

_PACKAGE = Path(__file__).parent


class DpreproError(Exception):
    """Something the user can mend. The message says what was given, what is allowed, what to do.

    It quotes no value of a private row, and does not count them. The command line prints the
    message and exits with code 2; it never shows a traceback for it.
    """


class DpreproWarning(UserWarning):
    """Something the user should know. The command line prints each one once, as one line."""


def nearest(given: str, allowed: "list[str] | tuple[str, ...]") -> str:
    """Return ``"; did you mean 'x'?"`` for the closest allowed name, or an empty string."""
    from difflib import get_close_matches

    match = get_close_matches(given, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else ""


def publishable(error: BaseException) -> str:
    """Return the text of an error as far as it may be published: in a journal, in a report.

    This package's own messages quote no value of a row. Those of other libraries, and of methods
    that are not part of it, do ("could not convert string to float: 'secret'"); their text is
    withheld.
    """
    if isinstance(error, DpreproError) or _is_raised_here(error):
        return str(error)
    return f"(text withheld, as it can quote rows; {DEBUG_VARIABLE}=1 prints it to the terminal)"


def _is_raised_here(error: BaseException) -> bool:
    """Whether a `raise` of this package made the error, and not a call that it left to others.

    Compiled code has no frame of its own: its errors seem to come from the line that called it,
    but not from a `raise`.
    """
    place = error.__traceback__
    if place is None:
        return False
    while place.tb_next is not None:
        place = place.tb_next
    code = place.tb_frame.f_code
    raised = dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"
    return raised and _PACKAGE in Path(code.co_filename).parents
