"""Checks of parameters, with one phrasing."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeGuard


def check_integer(name: str, value: object, lowest: int, highest: int | None = None) -> None:
    """Raise ValueError unless `value` is an integer in [lowest, highest]."""
    limit = f"from {lowest} to {highest}" if highest is not None else f"of at least {lowest}"
    valid = isinstance(value, Integral) and not isinstance(value, bool)
    if not (valid and lowest <= value <= (highest if highest is not None else math.inf)):  # type: ignore[operator]
        raise ValueError(f"{name} must be an integer {limit}, got {value!r}")


def _is_real(value: object) -> TypeGuard[float]:
    """Whether `value` is a number that a float can hold, and not true or false."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def check_share(name: str, value: object) -> None:
    """Raise ValueError unless `value` is a number in (0, 1]."""
    if not (_is_real(value) and 0 < float(value) <= 1):
        raise ValueError(f"{name} must be a number above 0 and at most 1, got {value!r}")


def check_number(name: str, value: object, lowest: float) -> None:
    """Raise ValueError unless `value` is a finite number of at least `lowest`."""
    if not (_is_real(value) and lowest <= float(value) < math.inf):
        raise ValueError(f"{name} must be a finite number of at least {lowest}, got {value!r}")


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
