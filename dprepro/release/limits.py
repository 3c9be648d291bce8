"""The limits that hold for the releases of one dataset, each for the units of its own card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dprepro.errors import DpreproError
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import slack
from dprepro.release.composing import Total, total_of
from dprepro.release.words import mixed_in_words

if TYPE_CHECKING:
    from dprepro.release.book import Entry


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
