"""Errors meant for the person at the command line: one clear message, no traceback."""


class DpreproError(Exception):
    """Something the user can mend. The message says what was given, what is allowed, what to do.

    The command line prints the message and exits with code 2; it never shows a traceback for it.
    """


def nearest(given: str, allowed: "list[str] | tuple[str, ...]") -> str:
    """Return ``"; did you mean 'x'?"`` for the closest allowed name, or an empty string."""
    from difflib import get_close_matches

    match = get_close_matches(given, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else ""
