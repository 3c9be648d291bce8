"""Errors for the user of the command line: one clear message, no traceback."""

import dis
from pathlib import Path

DEBUG_VARIABLE = "DPREPRO_DEBUG"
"""If set, every error is printed to the terminal with its full text and traceback."""

_PACKAGE = Path(__file__).parent


class DpreproError(Exception):
    """A mistake that the user can correct.

    The message says what was given, what is allowed, and what to do. It quotes no value of a
    private row and does not count private rows. The command line prints the message, without a
    traceback, and exits with code 2.
    """


class DpreproWarning(UserWarning):
    """A warning for the user. The command line prints each one once, as one line."""


def nearest(given: str, allowed: "list[str] | tuple[str, ...]", most: int = 1) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest allowed names, or an empty string.

    At most `most` names are given, the closest first.
    """
    from difflib import get_close_matches

    matches = get_close_matches(given, list(allowed), n=most, cutoff=0.6)
    *first, last = map(repr, matches) if matches else [""]
    names = f"{', '.join(first)} or {last}" if first else last
    return f"; did you mean {names}?" if names else ""


def publishable(error: BaseException) -> str:
    """Return the text of an error, as far as it may be published in a journal or a report.

    Messages of this package quote no value of a row. Messages of other libraries and of the user's
    own methods may ("could not convert string to float: 'secret'"), so their text is withheld.
    """
    if isinstance(error, DpreproError) or _is_raised_here(error):
        return str(error)
    return f"(text withheld, as it can quote rows; {DEBUG_VARIABLE}=1 prints it to the terminal)"


def _is_raised_here(error: BaseException) -> bool:
    """Whether a `raise` of this package made the error, and not a call of other code.

    Compiled code has no frame. Its errors seem to come from the line that called it, but that line
    is not a `raise`.
    """
    place = error.__traceback__
    if place is None:
        return False
    while place.tb_next is not None:
        place = place.tb_next
    code = place.tb_frame.f_code
    raised = dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"
    return raised and _PACKAGE in Path(code.co_filename).parents
