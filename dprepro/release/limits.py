"""The limits that hold for the releases of one dataset, each for the units of its own card.

What several releases of the same rows spend together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import ROW, TOLERANCE, Ledger, slack, spent_epsilon
from dprepro.privacy.ledger_entry import LARGEST_EXPONENT, LedgerEntry
from dprepro.privacy.sampling.sampler import SAMPLING_DISTANCE
from dprepro.privacy.sensitivity import REPLACE_ONE, Adjacency
from dprepro.release.statement import mixed_in_words
from dprepro.runtime.errors import DpreproError

if TYPE_CHECKING:
    from dprepro.release.book import Entry


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
    """

    budget: PrivacyBudget
    adjacency: Adjacency
    unit: str
    by_accountant: bool


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
    entries = tuple(e for ledger in ledgers for e in _entries(ledger, unit, adjacency))
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


def require_limits(entries: Sequence[Entry]) -> None:
    """Refuse a release, the last entry, if a limit would be exceeded. Raises DpreproError.

    Each limit holds for the units of its own card, whomever the last release protects.
    """
    for limited in limits_of(entries):
        _require(limited, entries)


def limits_of(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of one dataset whose limits hold: each for the units of its own ledger.

    A card may change its own limit for a unit, or take back all its limits. Another card of the
    same rows, or a limit of the card for another unit, lifts none.
    """
    found: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if not entry.counts:
            continue
        if entry.limit is None:
            found = {key: e for key, e in found.items() if key[0] != entry.card}
        else:
            key = (entry.card, entry.spent.unit)
            found.pop(key, None)
            found[key] = entry
    return list(found.values())


def total_for(of: Entry, entries: Sequence[Entry], delta: float | None) -> Total:
    """Return what all entries spend together for the units of one of them; see `total_of`."""
    ledgers = [entry.spent for entry in entries]
    same = all(entry.has_units_of(of) for entry in entries)
    return total_of(ledgers, of.spent.unit, delta, same_units=same)


def _require(limited: Entry, entries: Sequence[Entry]) -> None:
    """Refuse what exceeds the limit of an entry, for the units of that entry."""
    limit, unit = limited.limit, limited.spent.unit
    if limit is None:
        return
    total = total_for(limited, entries, limit.delta)
    if total.budget.epsilon <= limit.epsilon + slack(limit.epsilon):
        return
    allowed = (
        f"the card of {limited.dataset} allows {PrivacyBudget(limit.epsilon, limit.delta)} in all "
        f"for each {unit}"
    )
    advice = "Choose a smaller --epsilon"
    if not total.budget.is_finite:
        reason = f"at delta {limit.delta:g} nothing bounds what the releases spend together for it"
        advice = f"Release these rows only for each {unit}, with `unit` as on that card"
        if all(entry.has_units_of(limited) for entry in entries):
            advice = "Choose a method whose guarantee holds at this delta"
    else:
        has_earlier = len(entries) > 1
        whole = "with all earlier releases of these rows" if has_earlier else "this release alone"
        reason = f"{whole}, epsilon {total.budget.epsilon:.4g} would be spent ({total.adjacency})"
        *earlier, own = (entry.spent.adjacency for entry in entries)
        if mixed := mixed_in_words(earlier, own):
            reason += f": {mixed}"
            if len(set(earlier)) == 1:
                advice += f", or a method with {earlier[0]} neighbours"
    raise DpreproError(
        f"beyond the budget: {allowed}, and {reason}. Nothing was drawn and nothing was written. "
        f"{advice}; `dprepro budget` lists what was released. Only the owner of "
        "the data can raise `budget_limit` on the card"
    )
