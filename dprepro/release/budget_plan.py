"""How many more releases fit into what the limits of a dataset leave, by the book's own count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dprepro.data.card import Card
from dprepro.privacy.ledger import Ledger
from dprepro.release import planning
from dprepro.release.budget_book import (
    Entry,
    limits_of,
    require_limits,
    total_for,
    with_ledger,
)
from dprepro.release.statement import round_up
from dprepro.runtime.errors import DpreproError

MOST = 365
"""Releases that are looked for, at most: one a day for a year."""

_SHARES = (1, 2, 4, 10)
"""Parts of the limit's epsilon that are tried where nobody names one."""


@dataclass(frozen=True)
class Fit:
    """How many releases of one budget fit into what is left.

    Attributes
    ----------
    epsilon, delta
        Of each release.
    releases
        How many more fit, `MOST` at most: then more may.
    spent
        What all releases have spent with them, at the delta of the limit; None if infinite.
    with_one_more
        The same with one release more, which exceeds a limit. None if infinite, or if so many are
        not looked for.
    why_not
        Why not even one fits; empty if one does.
    """

    epsilon: float
    delta: float
    releases: int
    spent: float | None
    with_one_more: float | None
    why_not: str = ""


@dataclass(frozen=True)
class BudgetPlan:
    """What is left of the limits of one dataset, for one method.

    Attributes
    ----------
    limits
        Epsilon, delta and unit of each limit that holds. Units are called as cards call them.
    spent
        The epsilon that was spent so far for the unit of the card; 0 without any release, None if
        infinite.
    delta
        At which `spent` and those of `fits` are stated.
    """

    dataset: str
    method: str
    unit: str
    relation: str
    limits: list[tuple[float, float, str]]
    releases_so_far: int
    spent: float | None
    delta: float
    fits: list[Fit]

    def in_words(self) -> list[str]:
        """Return lines for people."""
        limits = [
            f"epsilon {epsilon:g}, delta {delta:g}, for each {unit}"
            for epsilon, delta, unit in self.limits
        ]
        lines = [
            f"{self.dataset}, by {self.method} ({self.relation}), for each {self.unit}",
            f"  limit: {'; '.join(limits)}",
            f"  spent by {self.releases_so_far} release(s): epsilon {_shown(self.spent)} at delta "
            f"{self.delta:g}",
        ]
        for fit in self.fits:
            each = f"  epsilon {fit.epsilon:g}, delta {fit.delta:g} each:"
            if not fit.releases:
                lines.append(f"{each} none fits: {fit.why_not}")
            elif fit.releases == MOST:
                lines.append(f"{each} {MOST} more fit, or more; they make it {_shown(fit.spent)}")
            else:
                lines.append(
                    f"{each} {fit.releases} more fit, which make it {_shown(fit.spent)}; one more "
                    f"would make it {_shown(fit.with_one_more)}"
                )
        return lines

    def as_values(self) -> dict[str, Any]:
        """Return plain values for JSON, which has no infinity: None stands for it."""
        values = asdict(self)
        names = ("epsilon", "delta", "unit")
        return values | {"limits": [dict(zip(names, one, strict=True)) for one in self.limits]}


def plan_budget(
    place: str,
    card: Card,
    account: Sequence[Entry],
    entry: Entry,
    epsilons: Sequence[float] = (),
    delta: float | None = None,
    data_dir: Path | None = None,
) -> BudgetPlan:
    """Return how many releases of these epsilons fit, each with the ledger that it would leave.

    No row is read, and nothing is entered.

    Parameters
    ----------
    place
        Name or path of the card.
    account
        The releases that count together with those to come.
    entry
        A release to come, without its ledger.
    epsilons
        Of each release to come; by default some parts of the card's limit.
    delta
        Of each; by default that of a release.

    Raises
    ------
    DpreproError
        If no limit holds, or a release of that kind is not possible at all.
    """
    if wrong := [epsilon for epsilon in epsilons if not 0 < epsilon < math.inf]:
        raise DpreproError(f"--epsilon must be a finite number above 0, given {wrong[0]:g}")
    counted = [e for e in account if e.counts]
    if delta is None:
        delta = planning.default_delta(card)
    elif not 0 <= delta < 1:
        raise DpreproError(f"--delta must lie from 0 to below 1, given {delta:g}")
    ledgers = []
    for epsilon in dict.fromkeys(epsilons or _parts_of(card)):
        experiment = planning.release_config(card, place, entry.method, epsilon, delta)
        planning.check_method(card, entry.method, False)
        (planned,) = planning.planned_ledgers(experiment, data_dir=data_dir, all_rows=True)
        ledgers.append(planning.require_sound(planned.ledger, planned.why_missing, False))
    entry = with_ledger(entry, ledgers[0])
    limits = [e for e in limits_of([*counted, entry]) if e.limit is not None]
    if not limits:
        raise DpreproError(_no_limit(card))
    stated = [(e.limit.epsilon, e.limit.delta, e.unit_title) for e in limits if e.limit]
    limit = entry.limit or limits[-1].limit
    at = limit.delta if limit else delta
    before = total_for(entry, counted, at).budget.epsilon if counted else 0.0
    return BudgetPlan(
        dataset=card.name,
        method=entry.method,
        unit=entry.unit_title,
        relation=entry.spent.adjacency.value,
        limits=list(dict.fromkeys(stated)),
        releases_so_far=len(counted),
        spent=round_up(before),
        delta=at,
        fits=[fitting(counted, entry, ledger, at) for ledger in ledgers],
    )


def fitting(counted: Sequence[Entry], entry: Entry, ledger: Ledger, delta: float) -> Fit:
    """Return how many releases with this ledger fit beside those that count.

    More releases never spend less, so the largest number is found by doubling and halving.
    """
    entry = with_ledger(entry, ledger)
    reasons: dict[int, str] = {}

    def fits(number: int) -> bool:
        try:
            require_limits([*counted, *[entry] * number])
        except DpreproError as error:
            reasons[number] = str(error).partition(". Nothing was drawn")[0]
        return number not in reasons

    def spent(number: int) -> float | None:
        entries = [*counted, *[entry] * number]
        return round_up(total_for(entry, entries, delta).budget.epsilon) if entries else 0.0

    most, beyond = 0, 1
    while beyond <= MOST and fits(beyond):
        most, beyond = beyond, 2 * beyond
    beyond = min(beyond, MOST + 1)
    while beyond - most > 1:
        middle = (most + beyond) // 2
        most, beyond = (middle, beyond) if fits(middle) else (most, middle)
    return Fit(
        epsilon=ledger.epsilon,
        delta=ledger.delta,
        releases=most,
        spent=spent(most),
        with_one_more=spent(beyond) if beyond <= MOST else None,
        why_not="" if most else reasons[1],
    )


def _shown(epsilon: float | None) -> str:
    return "unbounded" if epsilon is None else f"{epsilon:.6g}"


def _parts_of(card: Card) -> list[float]:
    if card.budget_limit is None:
        raise DpreproError(_no_limit(card))
    limit = card.budget_limit.epsilon
    return [float(f"{limit / share:.2g}") for share in _SHARES]


def _no_limit(card: Card) -> str:
    return (
        f"the card of {card.name} sets no limit, so any number of releases fits: add "
        "`budget_limit: {epsilon: 2, delta: 1e-6}` to it, with what all releases of these rows may "
        "spend together"
    )
