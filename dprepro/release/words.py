"""Plain sentences about a guarantee, for statements and questions."""

from __future__ import annotations

import math

from dprepro.privacy.ledger import ROW
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, Adjacency

_NEIGHBOURS = {
    ADD_REMOVE: "one with and one without {unit}",
    ZERO_OUT: "one with {unit} and one with nothing in its place (the number of rows is public)",
    REPLACE_ONE: "which differ in {unit} (the number of rows is public)",
}
_LARGEST_AS_NUMBER = 10.0


def is_bounded(adjacency: Adjacency) -> bool:
    """Whether neighbours have the same number of rows, which is then public.

    NIST SP 800-226 calls this bounded differential privacy.
    """
    return adjacency is not ADD_REMOVE


def unit_in_words(unit: str, rows_per_unit: int) -> str:
    """Return whom the guarantee protects: "one row", or all rows of one unit."""
    if unit == ROW:
        return "one row"
    return f"one {unit} with all its rows ({rows_per_unit} at most)"


def neighbours_in_words(adjacency: Adjacency, unit: str, rows_per_unit: int) -> str:
    """Return which two tables the guarantee compares."""
    return _NEIGHBOURS[Adjacency(adjacency)].format(unit=unit_in_words(unit, rows_per_unit))


def number(epsilon: float | None) -> str:
    """Return an epsilon as text; None is an infinite one."""
    return "unbounded" if epsilon is None else f"{epsilon:.4g}"


def factor(epsilon: float) -> str:
    """Return e^epsilon as text, rounded up to two decimals; as a power where it is large."""
    if epsilon > _LARGEST_AS_NUMBER:
        return f"e^{epsilon:g}"
    return f"{math.ceil(math.exp(epsilon) * 100) / 100:,.2f}"
