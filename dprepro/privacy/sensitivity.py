"""The one place where sensitivities follow from who counts as a neighbour.

All of them are L2 and for what DP-EBM releases; `bound` is the largest absolute residual that any
possible row can have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Adjacency(str, Enum):
    """Which two tables are neighbours: what a guarantee keeps an observer from telling apart.

    Members equal their texts, which configs, parameters and files use: ``Adjacency("zero-out")``
    is ``Adjacency.ZERO_OUT``, and so is ``Adjacency.ZERO_OUT == "zero-out"`` true.

    Raises ValueError on any other value.
    """

    ZERO_OUT = "zero-out"
    """One row is replaced by a null row that adds 0 to every count and sum: add/remove-one with the
    number of rows public."""

    ADD_REMOVE = "add/remove-one"
    """One row more or less; the number of rows is private."""

    REPLACE_ONE = "replace-one"
    """One row is exchanged for any other row."""

    @classmethod
    def _missing_(cls, value: object) -> Adjacency:
        allowed = ", ".join(repr(member.value) for member in cls)
        raise ValueError(f"adjacency must be one of {allowed}, got {value!r}")

    def __str__(self) -> str:
        return self.value


ZERO_OUT, ADD_REMOVE, REPLACE_ONE = Adjacency


@dataclass(frozen=True)
class Sensitivity:
    """How far one answer can move, under the stated relation and under replace-one."""

    stated: float
    replace_one: float

    def __mul__(self, factor: float) -> Sensitivity:
        """Return the sensitivity of `factor` times the answer."""
        return Sensitivity(self.stated * factor, self.replace_one * factor)


def histogram_sensitivity(adjacency: Adjacency) -> Sensitivity:
    """Return the L2 sensitivity of a histogram's counts.

    A row lies in one cell: its coming or going moves one count by 1; an exchange moves two.
    """
    return _by_adjacency(adjacency, 1.0, math.sqrt(2.0))


def leaf_sum_sensitivity(adjacency: Adjacency, bound: float) -> Sensitivity:
    """Return the L2 sensitivity of a step's sums of residuals over disjoint leaves.

    A row adds its residual r, |r| <= bound, to one leaf. An exchange moves two leaves by `bound`
    each, or one leaf by r - r', up to 2 * bound: the larger of the two.
    """
    return _by_adjacency(adjacency, bound, 2.0 * bound)


def _by_adjacency(adjacency: Adjacency, one_row: float, exchange: float) -> Sensitivity:
    exchanged = Adjacency(adjacency) is Adjacency.REPLACE_ONE
    return Sensitivity(exchange if exchanged else one_row, exchange)
