"""What several releases spend together, for one row or for one unit of privacy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dprepro.privacy.budget import LARGEST_EXPONENT, PrivacyBudget
from dprepro.privacy.ledger import ROW, TOLERANCE, Ledger, spent_epsilon
from dprepro.privacy.ledger_entry import LedgerEntry
from dprepro.privacy.sampling.sampler import SAMPLING_DISTANCE
from dprepro.privacy.sensitivity import REPLACE_ONE, Adjacency

PARALLEL = ", the most for one of them: the owner says that some releases are of other people"
"""What is said of a total in which releases of other people are not added up."""


@dataclass(frozen=True)
class Total:
    """What releases spend together.

    Attributes
    ----------
    budget
        The (epsilon, delta); epsilon is infinite where nothing is known.
    adjacency
        The relation that it is counted under: that of all releases if they share one, else
        replace-one, which follows from every ledger.
    unit
        Whose rows it protects; see `Ledger.unit`.
    by_accountant
        Whether `dp_accounting` composed the releases of all ledgers. If not, epsilons and deltas
        were added up.
    is_parallel
        Whether releases of other people were not added up.
    """

    budget: PrivacyBudget
    adjacency: Adjacency
    unit: str
    by_accountant: bool
    is_parallel: bool = False


def total_of(
    ledgers: Sequence[Ledger],
    unit: str = ROW,
    delta: float | None = None,
    *,
    same_units: bool = True,
) -> Total:
    """Return what fits with these ledgers spend together, for a unit of privacy.

    It is the smaller of two bounds. The first composes the entries of all ledgers with
    `dp_accounting`, after what the samplers of all fits add to delta is taken off. The second is
    basic composition: epsilons and deltas add up.

    A ledger that protects units of another name says nothing of this one, so the total is infinite.
    But every ledger bounds what one row spends, so any ledgers have a total for rows.

    Parameters
    ----------
    delta
        At which epsilon is stated; by default the sum of all deltas.
    same_units
        Whether units of this name are the same ones in all ledgers. If not, the total is infinite,
        too. It makes no difference to rows.
    """
    relations = {ledger.adjacency for ledger in ledgers}
    adjacency = relations.pop() if len(relations) == 1 else REPLACE_ONE
    added = sum(ledger.delta for ledger in ledgers)
    delta = min(added, 1.0) if delta is None else delta
    if unit != ROW and not (same_units and all(ledger.unit == unit for ledger in ledgers)):
        return Total(PrivacyBudget(math.inf, delta), adjacency, unit, False)
    basic = math.inf
    if added <= delta * (1 + TOLERANCE):
        basic = sum(_alone(ledger, unit, adjacency) for ledger in ledgers)
    composed = _composed(ledgers, unit, adjacency, delta)
    return Total(PrivacyBudget(min(basic, composed), delta), adjacency, unit, composed <= basic)


def _composed(ledgers: Sequence[Ledger], unit: str, adjacency: Adjacency, delta: float) -> float:
    counted = Counter(e for ledger in ledgers for e in _entries(ledger, unit, adjacency))
    # Answers that are alike are uses of one: so a hundred releases take as long as one.
    entries = tuple(replace(entry, uses=entry.uses * n) for entry, n in counted.items())
    try:
        spent = spent_epsilon(entries, delta)
        if delta == 0:
            return spent
        left = delta - len(ledgers) * _of_samplers(spent)
        return spent_epsilon(entries, left) if left > 0 else math.inf
    except (ValueError, OverflowError, MemoryError):  # basic composition is left
        return math.inf


def _of_samplers(epsilon: float) -> float:
    """Return what the distance of one fit's samplers adds to delta; twice that, to be above it.

    The epsilon in the term is that of the result, which is larger by less than 1e-300 of delta.
    """
    return 2 * (1 + math.exp(min(epsilon, LARGEST_EXPONENT))) * SAMPLING_DISTANCE


def _alone(ledger: Ledger, unit: str, adjacency: Adjacency) -> float:
    """Return what a ledger spends by itself."""
    if unit == ROW != ledger.unit:
        return _composed([ledger], unit, adjacency, ledger.delta)
    return ledger.spent_epsilon(adjacency)


def _entries(ledger: Ledger, unit: str, adjacency: Adjacency) -> list[LedgerEntry]:
    if unit == ROW != ledger.unit:
        return list(ledger.entries_of_row())  # exchanges already
    rows = 1 if unit == ROW else ledger.rows_per_unit
    entries = [entry.for_group(rows) for entry in ledger.entries]
    if adjacency is ledger.adjacency:
        return entries
    return [entry.under_replace_one() for entry in entries]
