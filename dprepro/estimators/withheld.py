"""Errors of libraries, without the private values that their texts quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

# Errors of numpy and scikit-learn that quote private values or count rows, and what to say instead.
_QUOTING = {
    "inconsistent numbers of samples": (
        "X and y have inconsistent numbers of samples: y needs one value a row"
    ),
    "This solver needs samples of at least 2 classes": (
        "y must hold samples of at least 2 classes, but it holds one class"
    ),
    "could not convert": "an array must hold numbers, but it holds text: pass a DataFrame",
    "Complex data not supported": "Complex data not supported, only real numbers",
    "Expected 2D array": "Expected 2D array. Reshape your data: rows by features",
    "should be a 1d array": "should be a 1d array, one value a row",
}
# Those that name the fault and nothing of the rows.
_HARMLESS = re.compile(r"Input \S.* contains (NaN|infinity)|Unknown label type: [a-z-]+\. Maybe")


@contextmanager
def values_withheld(name: str = "X or y") -> Iterator[None]:
    """Let errors of libraries pass without the values, and the numbers of rows, in their texts."""
    try:
        yield
    except ValueError as error:
        raise _without_values(error, name) from None


def _without_values(error: ValueError, name: str) -> ValueError:
    for quoting, plain in _QUOTING.items():
        if quoting in str(error):
            return ValueError(f"{name}: {plain}")
    # A new error, since a journal keeps what this package says itself, and that alone.
    return ValueError(str(error)) if _HARMLESS.match(str(error)) else error
