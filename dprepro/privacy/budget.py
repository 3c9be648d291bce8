"""Privacy budgets, (epsilon, delta): of a row, of a group of rows, of a unit that owns several."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from dprepro.privacy.sensitivity import Adjacency
from dprepro.runtime.arguments import Integer, Number, text

ROW = "row"
"""The unit of privacy where nothing else is said."""

MOST_ROWS_PER_UNIT = 10**6
"""More rows of one unit leave nothing of any guarantee."""

_ROUNDED_DOWN = 1 - 2.0**-48
"""What a quotient is multiplied by, so that the delta of a unit is never above the stated one."""


LARGEST_EXPONENT = 700.0
"""exp of it is a float; exp of 710 is not."""


class PrivacyBudget(NamedTuple):
    """The (epsilon, delta) of differential privacy; an infinite epsilon promises nothing.

    A pair of floats: ``epsilon, delta = budget``.

    Attributes
    ----------
    epsilon
        Bounds the privacy loss: at least 0, infinite for no privacy.
    delta
        In [0, 1); 0 is pure differential privacy.

    Examples
    --------
    >>> print(PrivacyBudget(0.5, 0), PrivacyBudget(2, 1e-6), PrivacyBudget(math.inf, 0), sep="; ")
    epsilon 0.5; (epsilon 2, delta 1e-06); non-private
    >>> PrivacyBudget(2, 1e-6).name("dp-ebm-gdp")
    'dp-ebm-gdp, ε=2'
    >>> PrivacyBudget(math.inf, 0).name("ebm")
    'ebm'
    """

    epsilon: float
    delta: float

    def plain(self, whose: str = "") -> PrivacyBudget:
        """Return both as plain numbers; ValueError, of what it is `whose`, out of their range."""
        epsilon = Number(0, math.inf, "[]")(f"epsilon{whose}", self.epsilon)
        return PrivacyBudget(epsilon, Number(0, 1, "[]")(f"delta{whose}", self.delta))

    @property
    def is_finite(self) -> bool:
        """Whether it promises anything."""
        return math.isfinite(self.epsilon)

    def name(self, label: str) -> str:
        """Return a method's label with the privacy level it ran at, short, for titles."""
        return f"{label}, ε={self.epsilon:g}" if self.is_finite else label

    def __str__(self) -> str:
        if not self.is_finite:
            return "non-private"
        if self.delta == 0:
            return f"epsilon {self.epsilon:g}"
        return f"(epsilon {self.epsilon:g}, delta {self.delta:g})"


def group_budget(budget: PrivacyBudget, changes: int) -> PrivacyBudget:
    """Return what an (epsilon, delta)-DP mechanism keeps for neighbours so many changes apart.

    (c epsilon, f delta), with c changes and f as `group_factor`; delta is at most 1. By induction:
    one change more multiplies the delta so far by e^epsilon, and adds its own (Vadhan 2017, "The
    Complexity of Differential Privacy", Lemma 2.2).
    """
    epsilon, delta = budget
    grown = 0.0 if delta == 0 else min(1.0, group_factor(epsilon, changes) * delta)
    return PrivacyBudget(changes * epsilon, grown)


def group_factor(epsilon: float, changes: int) -> float:
    """Return 1 + e^epsilon + ... + e^((c - 1) epsilon), c = `changes`, or infinity if it is huge.

    It is (e^(c epsilon) - 1) / (e^epsilon - 1) where epsilon is above 0.
    """
    if epsilon == 0:
        return float(changes)
    if changes * epsilon > LARGEST_EXPONENT:
        return math.inf
    return math.expm1(changes * epsilon) / math.expm1(epsilon)


class Division(str, Enum):
    """How a method's budget for a unit is divided among its rows. Members equal their texts."""

    GAUSSIAN = "gaussian"
    """All its answers are Gaussian sums over all rows: mu-GDP for a row is k mu-GDP for k rows."""

    GROUP = "group privacy"
    """By what holds for every method: group privacy."""

    NONE = "none"
    """Not at all: rows are sampled one by one, so that nothing is known of several."""


def row_budget(budget: PrivacyBudget, rows_per_unit: int, division: Division) -> PrivacyBudget:
    """Return an (epsilon, delta) for one row from which that of a unit with k rows follows.

    Gaussian: mu of a row is mu(epsilon, delta) / k, since k rows move every sum k times as far
    (Dong, Roth, Su 2019, Theorem 2.14). The delta stays. Else epsilon / k and
    delta / (1 + e^(epsilon / k) + ... + e^((k - 1) epsilon / k)), which group privacy leads back to
    (epsilon, delta). A ledger then adds up what was released, independently of either formula.

    Raises ValueError if the method's budget cannot be divided, or nothing is left of it for a row.

    Parameters
    ----------
    budget
        The stated (epsilon, delta) of a unit; returned as it is where it is not finite.
    rows_per_unit
        k, 1 or more.
    """
    if rows_per_unit == 1 or not budget.is_finite:
        return budget
    if division is Division.NONE:
        raise ValueError(
            "the method samples rows one by one, so that nothing is known of several rows of one "
            "unit: set `rows_per_unit` to 1, or choose another method"
        )
    from dprepro.privacy.gdp import epsilon_of, mu_of  # takes long to load

    if division is Division.GAUSSIAN:
        epsilon = epsilon_of(mu_of(*budget) / rows_per_unit, budget.delta)
        divided = PrivacyBudget(epsilon, budget.delta)
    else:
        epsilon = budget.epsilon / rows_per_unit
        factor = group_factor(epsilon, rows_per_unit)
        divided = PrivacyBudget(epsilon, budget.delta * _ROUNDED_DOWN / factor)
    if divided.epsilon <= 0 or (budget.delta > 0 and divided.delta == 0):
        raise ValueError(
            f"{budget} for a unit of {rows_per_unit} rows leaves nothing for one row: "
            "choose a larger epsilon or a smaller delta, or set `rows_per_unit` lower"
        )
    return divided


def check_unit(unit: str, rows_per_unit: int, adjacency: Adjacency) -> tuple[str, int]:
    """Return a unit and its rows; refuse those about which a ledger can promise nothing.

    Raises ValueError if a unit has no name, owns fewer rows than 1, or is a row and owns several;
    or if it owns several under replace-one.
    """
    if not (unit := text("unit", unit)):
        raise ValueError(f"unit must name a column, or be {ROW!r}, got {unit!r}")
    rows_per_unit = Integer(1, MOST_ROWS_PER_UNIT)("rows_per_unit", rows_per_unit)
    if unit == ROW and rows_per_unit != 1:
        raise ValueError(f"a row is 1 row: name the unit that owns {rows_per_unit}")
    if adjacency is Adjacency.REPLACE_ONE and rows_per_unit > 1:
        # Another unit may own more rows or fewer, and under replace-one their number is public.
        raise ValueError(
            f"a unit of several rows needs {Adjacency.ADD_REMOVE} or {Adjacency.ZERO_OUT} "
            f"neighbours, given {adjacency}: a unit that comes or goes changes the number of rows. "
            "Allow one row for each unit, or choose another method"
        )
    return unit, rows_per_unit


def unit_in_words(unit: str, rows_per_unit: int) -> str:
    """Return the unit of a guarantee in words.

    Examples
    --------
    >>> unit_in_words("row", 1), unit_in_words("patient", 2)
    ('row', 'patient with at most 2 rows')
    """
    if unit == ROW:
        return ROW
    return f"{unit} with at most {rows_per_unit} row{'' if rows_per_unit == 1 else 's'}"


def whose_epsilon(units: Iterable[tuple[str, int]]) -> str:
    """Return a sentence about whose epsilon tables show, empty where all is about rows.

    Parameters
    ----------
    units
        (unit, rows per unit) of each result.

    Examples
    --------
    >>> whose_epsilon([("row", 1)])
    ''
    >>> whose_epsilon([("patient", 5), ("patient", 2), ("row", 1)])
    'Epsilon is per patient with at most 2 or 5 rows, or per row: the label says which.'
    """
    bounds: dict[str, set[int]] = {}
    for unit, rows in units:
        bounds.setdefault(unit, set()).add(rows)
    has_rows = bounds.pop(ROW, None) is not None
    if not bounds:
        return ""
    said = []
    for unit, found in bounds.items():
        *first, last = map(str, sorted(found))
        numbers = f"{', '.join(first)} or {last}" if first else last
        said.append(f"per {unit} with at most {numbers} row{'' if max(found) == 1 else 's'}")
    said += ["per row"] if has_rows else []
    which = ": the label says which" if has_rows or any(len(b) > 1 for b in bounds.values()) else ""
    return f"Epsilon is {', or '.join(said)}{which}."
