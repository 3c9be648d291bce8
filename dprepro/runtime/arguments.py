"""What callers give, as plain numbers, texts, flags and paths; else an error that names it.

A caller may give what is equal to a plain value: scalars of NumPy and pandas, arrays without a
dimension, fractions, members of enums of texts. Nothing else is converted: True is no number, 1.0
is no integer, and "1" is neither. Every function and kind here raises ValueError: the parameter's
name, what is allowed, and what was given. Only numbers and short texts are quoted, since a table of
private rows can end up in the wrong place.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias

Kind: TypeAlias = Callable[[str, Any], Any]
"""Of a parameter: returns the plain value of what is given under a name, or raises ValueError."""

_LONGEST, _LARGEST = 100, 2**63 - 1


def real(name: str, given: object, allowed: str = "a number") -> float:
    """Return a number as int or float: infinite ones and NaN, too."""
    value = _unboxed(given)
    if isinstance(value, Integral) and not _is_no_number(value):
        value = int(value)
    elif isinstance(value, Real) and not _is_no_number(value):
        return float(value)
    else:
        raise refusal(name, allowed, given)
    try:
        float(value)
    except OverflowError:
        raise refusal(name, allowed, given) from None
    return value


def flag(name: str, given: object) -> bool:
    """Return True or False."""
    value = _unboxed(given)
    if not isinstance(value, bool):
        raise refusal(name, "true or false", given)
    return value


def text(name: str, given: object, allowed: str = "a text") -> str:
    """Return a text, of an array or enum of texts, too; not with the blanks cut off."""
    # NumPy drops a NUL at the end when it makes a scalar a text.
    value = given if isinstance(given, str) else _unboxed(given)
    if not isinstance(value, str):
        raise refusal(name, allowed, given)
    return str.__str__(value)  # of an enum its value


def name_of(name: str, given: object) -> str:
    """Return the name of a column: a text, or a whole number as text."""
    value = _unboxed(given)
    if isinstance(value, Integral) and not _is_no_number(value):
        return str(int(value))
    return text(name, given, "a text, or a whole number")


def path(name: str, given: object) -> Path:
    """Return a path, given as text or as a path of any kind."""
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    return Path(text(name, given, "a path: a text or a pathlib.Path"))


def sequence(name: str, given: Any, of: Kind, allowed: str) -> tuple[Any, ...]:
    """Return the members of a list, an array, a column or any other iterable but a text."""
    is_table = _is_of_numpy(given, "ndarray") and given.ndim != 1
    if is_table or isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise refusal(name, allowed, given)
    return tuple(of(f"each of {name}", member) for member in given)


def texts(name: str, given: object) -> tuple[str, ...]:
    """Return several texts; a single one is refused, as its letters would be meant."""
    return sequence(name, given, text, "a list of texts, such as ['a', 'b']")


def numbers(name: str, given: object) -> tuple[float, ...]:
    """Return several numbers."""
    return sequence(name, given, real, "a list of numbers, such as [0.5, 1]")


def name_or_path(name: str, given: object) -> str | Path:
    """Return a text, which can be a name or a path, as text, and a path as path."""
    return text(name, given) if isinstance(given, str) else path(name, given)


def refusal(name: str, allowed: str, given: object) -> ValueError:
    """Return the error about what was given for a parameter, to be raised."""
    verb = "lie" if allowed.startswith("strictly") else "be"
    return ValueError(f"{name} must {verb} {allowed}, got {shown(given)}")


def shown(given: object) -> str:
    """Return a number, a short text or None as Python writes it, and of all else the type."""
    value = _unboxed(given)
    if not (value is None or isinstance(value, str | Real)):
        return f"a value of type {type(given).__name__}"
    try:
        written = str.__repr__(value) if isinstance(value, str) else repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number that is too large"
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}..."


@dataclass(frozen=True)
class Number:
    """A number between `low` and `high`; `ends` says which of both belong to it, as "(0, 1]" does.

    Infinity and NaN never do, but for an infinite `high` that belongs to it.
    """

    low: float = -math.inf
    high: float = math.inf
    ends: str = "[)"

    def __call__(self, name: str, given: object) -> float:
        """Return what is given as int or float."""
        value = real(name, given, self._allowed)
        above = value > self.low if self.ends[0] == "(" else -math.inf < value >= self.low
        below = value < self.high if self.ends[1] == ")" else value <= self.high
        if not (above and below):
            raise refusal(name, self._allowed, given)
        return value

    @property
    def _allowed(self) -> str:
        low, high = f"{self.low:g}", f"{self.high:g}"
        if self.high == math.inf and self.ends[1] == "]":
            finite = "a positive number" if self.ends[0] == "(" else f"a number of at least {low}"
            return f"{finite}, or math.inf"
        if self.low == -math.inf:
            return "a finite number"
        if self.high == math.inf:
            return "positive and finite" if self.ends[0] == "(" else (
                f"a finite number of at least {low}"
            )  # fmt: skip
        return {
            "()": f"strictly between {low} and {high}",
            "(]": f"a number above {low} and at most {high}",
            "[)": f"a number of at least {low} and below {high}",
            "[]": f"a number from {low} to {high}",
        }[self.ends]


@dataclass(frozen=True)
class Both:
    """What two kinds take, one after the other: the first has the message of most mistakes."""

    first: Kind
    second: Kind

    def __call__(self, name: str, given: object) -> Any:
        """Return what the second kind returns of what the first returns."""
        return self.second(name, self.first(name, given))


POSITIVE = Number(0, ends="()")
MODERATE = Number(1e-15, 1e15, "[]")
"""Of a constant whose squares and products a float has to hold."""

SHARE = Both(Number(0, 1, "(]"), Number(1e-15, 1, "[]"))
INSIDE = Both(Number(0, 1, "()"), Number(1e-15, 1))
EPSILON = Both(POSITIVE, Number(1e-13, 1e15, "[]"))
DELTA = Both(Number(0, 1, "()"), Number(1e-100, 1))
"""Of a budget: for less or more of either no noise can be found, or drawn."""


@dataclass(frozen=True)
class Integer:
    """A whole number from `low` to `high`; None is no limit but that of int64."""

    low: int | None = None
    high: int | None = None

    def __call__(self, name: str, given: object) -> int:
        """Return what is given as int."""
        value = _unboxed(given)
        low = -_LARGEST if self.low is None else self.low
        high = _LARGEST if self.high is None else self.high
        whole = isinstance(value, Integral) and not _is_no_number(value)
        if not (whole and low <= int(value) <= high):
            beyond = ", of less than 2^63" if whole and self.high is None and value > high else ""
            raise refusal(name, self._allowed + beyond, given)
        return int(value)

    @property
    def _allowed(self) -> str:
        if self.low is None:
            return "an integer"
        if self.high is None:
            return f"an integer of at least {self.low}"
        return f"an integer from {self.low} to {self.high}"


@dataclass(frozen=True)
class OneOf:
    """One of several texts."""

    options: tuple[str, ...]

    def __call__(self, name: str, given: object) -> str:
        """Return what is given as text."""
        allowed = f"one of {', '.join(map(repr, self.options))}"
        value = text(name, given, allowed)
        if value not in self.options:
            raise refusal(name, allowed, given)
        return value


@dataclass(frozen=True)
class Instance:
    """An object of a class; `allowed` says which, and how to make one."""

    of: type | UnionType
    allowed: str

    def __call__(self, name: str, given: object) -> Any:
        """Return what is given, as it is."""
        if not isinstance(given, self.of):
            raise refusal(name, self.allowed, given)
        return given


@dataclass(frozen=True)
class OrNone:
    """None, or what another kind takes."""

    kind: Kind

    def __call__(self, name: str, given: object) -> Any:
        """Return None, or what the kind returns."""
        if given is None:
            return None
        try:
            return self.kind(name, given)
        except ValueError as error:
            raise ValueError(str(error).replace(", got ", ", or None, got ", 1)) from None


def _unboxed(given: Any) -> Any:
    """Return the Python value of a scalar or an array of NumPy's without a dimension."""
    if _is_of_numpy(given, "generic", "ndarray") and given.ndim == 0:
        return given.item() if given.dtype.kind in "biufUO" else given
    return given


def _is_no_number(value: object) -> bool:
    """Whether it is one that Python or NumPy counts as an integer all the same."""
    return isinstance(value, bool) or _is_of_numpy(value, "timedelta64")


def _is_of_numpy(value: Any, *names: str) -> bool:
    """Whether it is of one of NumPy's types. Not all commands load NumPy; who gives one has."""
    numpy = None if type(value).__module__ == "builtins" else sys.modules.get("numpy")
    return numpy is not None and isinstance(value, tuple(getattr(numpy, name) for name in names))
