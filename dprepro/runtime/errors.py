"""Errors for the user of the command line: one clear message, no traceback."""

from __future__ import annotations

import dis
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

DEBUG_VARIABLE = "DPREPRO_DEBUG"
"""If set, every error is printed to the terminal with its full text and traceback."""

NUMBERS_LOOK = "A number has digits and a decimal point, no comma and no unit"

HOW_NUMBERS_LOOK = (
    f"{NUMBERS_LOOK}. To find the rows, sort the column in a spreadsheet: text stands before or "
    "after all numbers"
)
"""What to do about a column of numbers in which there is text; no value of a row is quoted."""

_PACKAGE = Path(__file__).parents[1]
_LONGEST_NAME = 200
"""Characters of a name that others are compared with; each takes time, and nobody means more."""


class DpreproError(Exception):
    """A mistake that the user can correct.

    The message says what was given, what is allowed, and what to do. It quotes no value of a
    private row and does not count private rows. The command line prints the message, without a
    traceback, and exits with code 2.
    """


class DpreproWarning(UserWarning):
    """A warning for the user. The command line prints each one once, as one line."""


class Faults(list[str]):
    """What is wrong with a file, a line each, so that a user hears of all of it at once."""

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Take the lines of an error that is raised in this context, those not there already."""
        try:
            yield
        except DpreproError as error:
            self.extend(line for line in str(error).split("\n") if line not in self)

    def require_none(self) -> None:
        """Raise DpreproError with all lines, if there are any."""
        if self:
            raise DpreproError("\n".join(self))


def nearest(given: str, allowed: Iterable[str], most: int = 1) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest allowed names, or an empty string.

    At most `most` names are given, the closest first. A name is also close if its beginning is:
    ``dp-emb`` is close to ``dp-ebm-gdp``.
    """
    *first, last = [repr(name) for name in nearest_names(given, allowed, most)] or [""]
    names = f"{', '.join(first)} or {last}" if first else last
    return f"; did you mean {names}?" if names else ""


def require_known(value: str | float, known: Collection[str | float], where: str, of: str) -> None:
    """Raise DpreproError unless `value` is one of the `known`; `of` says whose these are."""
    if value not in known:
        names = list(map(str, known))
        raise DpreproError(
            f"{where} {value!r}{nearest(str(value), names) or '.'} "
            f"Allowed{f' {of}' if of else ''}: {', '.join(names) or 'none'}"
        )


def nearest_names(given: str, allowed: Iterable[str], most: int = 1) -> list[str]:
    """Return at most `most` of the allowed names that are close to a given one, closest first.

    Close are names, and names with a beginning, that take few edits (`edits`): one in three
    characters at most. Names that share much of their text, by difflib's ratio, follow these.
    """
    from difflib import get_close_matches

    if len(given) > _LONGEST_NAME:
        return []
    names = list(dict.fromkeys(allowed))
    folded = given.casefold()
    room = len(given) // 3
    ranked: list[tuple[int, int, int, str]] = []
    for name in names:
        of_whole, of_beginning = edits(folded, name.casefold())
        if given and of_beginning <= room:
            ranked.append((min(of_whole, of_beginning + 1), len(name), len(ranked), name))
    close = [name for *_, name in sorted(ranked)]
    close += [name for name in get_close_matches(given, names, n=most) if name not in close]
    return close[:most]


def edits(given: str, name: str) -> tuple[int, int]:
    """Return how many edits turn `given` into `name`, and into the nearest beginning of `name`.

    An edit inserts, deletes or replaces a character, or swaps two neighbours (optimal string
    alignment, in O(len(given) len(name))).
    """
    before: list[int] = []
    row = list(range(len(name) + 1))
    for i, one in enumerate(given, start=1):
        earlier, before, row = before, row, [i]
        for j, other in enumerate(name, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (one != other))
            if i > 1 and j > 1 and one == name[j - 2] and given[i - 2] == other:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1], min(row)


def publishable(error: BaseException) -> str:
    """Return the text of an error, as far as it may be published in a journal or a report.

    Messages of this package quote no value of a row. Messages of other libraries and of the user's
    own methods may ("could not convert string to float: 'secret'"), so their text is withheld.
    """
    if is_our_own(error):
        return str(error)
    return f"(text withheld, as it can quote rows; {DEBUG_VARIABLE}=1 prints it to the terminal)"


def is_our_own(error: BaseException) -> bool:
    """Whether this package made an error: then its text quotes no value of a row."""
    return isinstance(error, DpreproError) or _is_raised_here(error)


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
