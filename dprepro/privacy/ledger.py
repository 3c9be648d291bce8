"""The ledger: every noisy answer of a fit, what they add up to, and what drew their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from dprepro.privacy.budget import (
    LARGEST_EXPONENT,
    ROW,
    PrivacyBudget,
    check_unit,
    unit_in_words,
)
from dprepro.privacy.ledger_entry import CHOICES, LedgerEntry
from dprepro.privacy.sampling.sampler import SAMPLING_DISTANCE
from dprepro.privacy.sensitivity import Adjacency
from dprepro.runtime.arguments import Instance, sequence, texts
from dprepro.runtime.text import html_table

TOLERANCE = 1e-6
"""By how much the recomposed epsilon may exceed the stated one at most: rounding. See `slack`."""

_RELATIVE = 1e-5
"""The same in units of a small epsilon. `dp_accounting` sorts losses into cells, which round up: by
9e-6 of an epsilon of 0.001 at a delta of 0.01, by less than 1e-6 at a delta of 1e-4 or below. Where
epsilon is below 0.001 and delta is as large, it can be more: then a sound ledger does not hold."""

_ROUNDS, _MARGIN = 50, 1e-9
"""So often, at most, `Ledger.spent_epsilon` takes the samplers' part off delta anew, each time at
an epsilon that is larger by this part of itself than the one just found."""

_ENTRY = Instance(LedgerEntry, "a LedgerEntry")


@lru_cache(maxsize=1024)
def spent_epsilon(entries: tuple[LedgerEntry, ...], delta: float) -> float:
    """Return what the entries add up to at `delta`, infinite if one of them has no noise.

    `dp_accounting` composes them as privacy loss distributions, independently of the formulas that
    calibrated them. There is one exception: the noise of sampled answers may have been found by
    the same distributions, so tests compare it with a simulation. The result is the smallest of
    the bounds that are known: the sum of pure epsilons, the distributions, and, with exponential
    choices, Renyi DP with the bounded range of such choices.
    """
    if not entries:
        return 0.0
    if any(entry.mechanism != "cited" and entry.scale <= 0 for entry in entries):
        return math.inf
    # Without a delta pure guarantees add up, and a Gaussian has none.
    pure = sum(entry.pure_epsilon * entry.uses for entry in entries)
    if delta == 0:
        return pure
    # It imports dp_accounting, which takes longer than most commands that compose nothing.
    from dprepro.privacy.accountant import spent_by_losses, spent_by_renyi

    spent = min(pure, spent_by_losses(entries, delta))
    if any(entry.mechanism in CHOICES for entry in entries):
        spent = min(spent, spent_by_renyi(entries, delta))
    return spent


@dataclass(repr=False)
class Ledger:
    """What one fit released and spent, what it took as public, and what it promises.

    Its repr is a line; a notebook shows a table of the answers.

    Attributes
    ----------
    epsilon, delta, adjacency
        The stated guarantee; `adjacency` can be given by its text.
    entries
        The answers, in order.
    unaccounted
        In words, what was read from private rows and is not covered by epsilon. Empty for a sound
        fit.
    assumed_public
        In words, what the guarantee takes as public.
    gaps
        In words, known holes in the proof of the stated sensitivities. Empty for a sound fit.
    post_processing
        In words, what was changed after the fit. It reads no rows, so it costs nothing.
    floating_point
        In words, answers that are summed or noised in floating-point numbers. For these the
        guarantee takes real arithmetic as given: the low bits of a rounded number can disclose what
        its noise hides (Mironov 2012). Empty where all noise is exact, see
        `dprepro.privacy.sampling`.
    unit
        Whose rows the stated guarantee protects together: "row", or the column of the card that
        says which rows belong to one unit, such as a patient.
    rows_per_unit
        How many rows of the fit one unit owns at most; 1 for rows. Neighbours under `adjacency`
        then differ in so many rows, all of one unit. The entries say what one row can do.
    code
        Of a method of one's own, the SHA-256 of its source files, in hex: then the ledger is its
        author's word. Empty for the methods of this package, whose ledgers tests check.

    Raises
    ------
    ValueError
        On what is no number, text or list of them where one is needed, on an unknown relation, on
        fewer rows than 1 for a unit, or if the entries promise nothing for several rows.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1, delta=0, adjacency="replace-one")
    >>> ledger.add(LedgerEntry("laplace", "a count", 1, "l1", scale=2, uses=2, budget=(1, 0)))
    >>> round(ledger.spent_epsilon(), 6)  # two answers at 1/2 each
    1.0
    >>> print(ledger.budget, ledger.adjacency, sep=", ")
    epsilon 1, replace-one
    >>> ledger.holds
    True
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    entries: list[LedgerEntry] = field(default_factory=list)
    unaccounted: list[str] = field(default_factory=list)
    assumed_public: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    post_processing: list[str] = field(default_factory=list)
    floating_point: list[str] = field(default_factory=list)
    unit: str = ROW
    rows_per_unit: int = 1
    code: str = ""

    def __post_init__(self) -> None:
        self.epsilon, self.delta = self.budget.plain()
        self.adjacency = Adjacency(self.adjacency)
        self.entries = [*sequence("entries", self.entries, _ENTRY, "a list of LedgerEntry")]
        self.unaccounted = [*texts("unaccounted", self.unaccounted)]
        self.assumed_public = [*texts("assumed_public", self.assumed_public)]
        self.gaps = [*texts("gaps", self.gaps)]
        self.post_processing = [*texts("post_processing", self.post_processing)]
        self.floating_point = [*texts("floating_point", self.floating_point)]
        self.unit, self.rows_per_unit = check_unit(self.unit, self.rows_per_unit, self.adjacency)
        self._of_unit()

    def __repr__(self) -> str:
        beside = {"unaccounted": self.unaccounted, "gaps": self.gaps}
        listed = "".join(f", {what}: {len(texts)}" for what, texts in beside.items() if texts)
        return f"Ledger({self.budget}, {self._relation}; entries: {len(self.entries)}{listed})"

    @property
    def _relation(self) -> str:
        if self.unit == ROW:
            return self.adjacency.value
        return f"{self.adjacency} per {unit_in_words(self.unit, self.rows_per_unit)}"

    def _repr_html_(self) -> str:
        """Return the ledger as a table for notebooks; it adds the entries up."""
        heads = ("mechanism", "what is released", "sensitivity", "norm", "scale", "uses")
        rows = (
            (e.mechanism, e.releases, f"{e.sensitivity:.4g}", e.norm, f"{e.scale:.4g}", e.uses)
            for e in self.entries
        )
        says = "holds" if self.holds else "does not hold"
        caption = (
            f"stated: {self.budget}, {self._relation}; spent: epsilon {self.spent_epsilon():.4g}; "
            f"the guarantee {says}"
        )
        notes = {
            "not covered by epsilon": self.unaccounted, "gaps in the proof": self.gaps,
            "in floating point": self.floating_point, "taken as public": self.assumed_public,
            "changed after the fit": self.post_processing,
        }  # fmt: skip
        listed = (f"{what}: {'; '.join(texts)}" for what, texts in notes.items() if texts)
        return html_table(heads, rows, caption, listed)

    @property
    def budget(self) -> PrivacyBudget:
        """The stated (epsilon, delta)."""
        return PrivacyBudget(self.epsilon, self.delta)

    def state_per_unit(self, unit: str, rows_per_unit: int, budget: PrivacyBudget) -> None:
        """State the guarantee for units from now on, with the (epsilon, delta) of a unit.

        The rows of the fit must be bounded: at most `rows_per_unit` of each unit. The entries stay:
        what they add up to is counted anew.

        Raises
        ------
        ValueError
            As the class. Nothing is changed then.
        """
        unit, rows_per_unit = check_unit(unit, rows_per_unit, self.adjacency)
        for entry in self.entries:
            entry.for_group(rows_per_unit)
        self.unit, self.rows_per_unit = unit, rows_per_unit
        self.epsilon, self.delta = PrivacyBudget(*budget).plain()

    def add(self, entry: LedgerEntry) -> None:
        """Append an answer; ValueError if it is no `LedgerEntry`."""
        self.entries.append(_ENTRY("entry", entry))

    def note_floating_point(self, text: str) -> None:
        """List, unless it is listed, an answer that is summed or noised in floating point."""
        if text not in self.floating_point:
            self.floating_point.append(text)

    def note_seed(self, seed: object) -> None:
        """List a fixed seed as not covered by epsilon: whoever knows it can subtract the noise."""
        if seed is not None:
            self.unaccounted.append("fixed seed: repeatable, never for release")

    def note_observed(self, reads: Iterable[str]) -> None:
        """List first, unless listed, what was read of the domain: epsilon does not cover it."""
        self.unaccounted[:0] = [read for read in reads if read not in self.unaccounted]

    @property
    def is_sampled_exactly(self) -> bool:
        """Whether it lists noise or choices, all drawn by `dprepro.privacy.sampling`."""
        drawn_here = any(entry.mechanism != "cited" for entry in self.entries)
        return drawn_here and not self.floating_point

    @property
    def sampling_delta(self) -> float:
        """What the distance of the samplers adds to delta at the stated epsilon, at most.

        If ideal draws are (epsilon, delta)-DP, draws at a distance T in total variation are
        (epsilon, delta + (1 + e^epsilon) T)-DP. T is `SAMPLING_DISTANCE`. The result is in [0, 1],
        and 0 where `is_sampled_exactly` is False. So a pure guarantee is one up to this delta.
        """
        return self._sampling_delta_at(self.epsilon)

    def _sampling_delta_at(self, epsilon: float) -> float:
        if not self.is_sampled_exactly:
            return 0.0
        return min(1.0, (1 + math.exp(min(epsilon, LARGEST_EXPONENT))) * SAMPLING_DISTANCE)

    @property
    def is_calibrated(self) -> bool:
        """Whether the entries, drawn without any distance, spend at most the stated epsilon."""
        return spent_epsilon(self._of_unit(), self.delta) <= self.epsilon + slack(self.epsilon)

    @property
    def within_budget(self) -> bool:
        """Whether the spent epsilon is at most the stated one."""
        return self.spent_epsilon() <= self.epsilon + slack(self.epsilon)

    @property
    def samplers_suffice(self) -> bool:
        """Whether `sampling_delta` leaves anything of delta; of 1 for a pure guarantee.

        It does not at an epsilon of hundreds: then nothing is proved of what is drawn.
        """
        return self.sampling_delta < (self.delta or 1.0)

    @property
    def is_empty(self) -> bool:
        """Whether it states a finite epsilon and lists no answer."""
        return math.isfinite(self.epsilon) and not self.entries

    @property
    def holds(self) -> bool:
        """Whether the stated guarantee holds.

        It holds if all reads are covered by epsilon, no gap is listed, there is an answer, the
        spent epsilon is at most the stated one, and `samplers_suffice`.
        """
        broken = self.unaccounted or self.gaps or self.is_empty
        return not broken and self.samplers_suffice and self.within_budget

    def spent_epsilon(self, adjacency: Adjacency | None = None) -> float:
        """Return the spent epsilon: what the entries add up to at the stated delta.

        `privacy.accountant` says how they are added up. What the samplers add to delta is taken
        off it first: see `sampling_delta`. The epsilon in that term is the result itself. So the
        result is infinite if nothing would be left of delta there. Without a delta it is the sum
        of pure epsilons. The result does not include gaps, nor reads that epsilon does not cover.
        It is that of the ledger's unit; see `spent_epsilon_of_row` for one row.

        Parameters
        ----------
        adjacency
            The relation to count under: by default the stated one. Of the others only replace-one
            follows from the entries.

        Raises
        ------
        ValueError
            On a relation that is neither the stated one nor replace-one.
        """
        asked = self.adjacency if adjacency is None else Adjacency(adjacency)
        if asked is self.adjacency:
            return self._spent(self._of_unit())
        if asked is not Adjacency.REPLACE_ONE:
            raise ValueError(
                f"the ledger states {self.adjacency} neighbours, from which nothing follows for "
                f"{asked}; ask for {self.adjacency} or {Adjacency.REPLACE_ONE}"
            )
        return self._spent(tuple(entry.under_replace_one() for entry in self._of_unit()))

    def spent_epsilon_of_row(self) -> float:
        """Return the spent epsilon of one row by itself, under the stated relation and delta.

        It is about one row of the table before rows of crowded units are left out. If a row that
        trains is taken away there, another row of its unit trains in its place. So one row that
        comes or goes can exchange one row that trains, and this counts whichever moves an answer
        more. It can be more than a unit of few rows spends. Under replace-one, a row is exchanged
        for another of the same unit.
        """
        return self._spent(self.entries_of_row())

    def entries_of_row(self) -> tuple[LedgerEntry, ...]:
        """Return the entries for what `spent_epsilon_of_row` counts."""
        if self.unit == ROW or self.adjacency is Adjacency.REPLACE_ONE:
            return tuple(self.entries)
        return tuple(entry.coming_or_exchanged() for entry in self.entries)

    def _of_unit(self) -> tuple[LedgerEntry, ...]:
        """Return the entries for neighbours that differ in all rows of one unit."""
        return tuple(entry.for_group(self.rows_per_unit) for entry in self.entries)

    def _spent(self, entries: tuple[LedgerEntry, ...]) -> float:
        spent = spent_epsilon(entries, self.delta)
        if self.delta == 0:
            return spent
        for _ in range(_ROUNDS):
            left = self.delta - self._sampling_delta_at(spent)
            if left <= 0:
                return math.inf
            needed = spent_epsilon(entries, left)
            if needed <= spent:
                return spent
            spent = needed * (1 + _MARGIN)
        return math.inf  # an upper bound, too

    def summary(self) -> dict[str, Any]:
        """Return what a journal keeps of the ledger, JSON-able.

        Keys: ``epsilon``, ``delta``, ``adjacency``, ``true_epsilon`` (the spent epsilon),
        ``replace_one_epsilon``, ``holds``, ``unpaid``, ``gaps``, ``floating_point``, and
        ``releases``, a list of mechanism, sensitivity, scale, uses and, if below 1, sampling. If
        the unit is not the row, also ``unit``, ``rows_per_unit``, and ``row_epsilon``, what one row
        spends. Of a method of one's own also ``code``.
        """
        return self._summary_beside() | {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency.value,
            "true_epsilon": _finite(self.spent_epsilon()),
            "replace_one_epsilon": _finite(self.spent_epsilon(Adjacency.REPLACE_ONE)),
            "holds": self.holds,
            "unpaid": list(self.unaccounted),
            "gaps": list(self.gaps),
            "floating_point": list(self.floating_point),
            "releases": [
                {
                    "mechanism": entry.mechanism,
                    "sensitivity": entry.sensitivity,
                    "scale": round(entry.scale, 6),
                    "uses": entry.uses,
                    **({"sampling": round(entry.sampling, 9)} if entry.sampling < 1 else {}),
                }
                for entry in self.entries
            ],
        }

    def _summary_beside(self) -> dict[str, Any]:
        of_code = {"code": self.code} if self.code else {}
        if self.unit == ROW:
            return of_code
        return of_code | {
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "row_epsilon": _finite(self.spent_epsilon_of_row()),
        }


def slack(epsilon: float) -> float:
    """Return by how much the recomposed epsilon may exceed a stated one: rounding.

    `TOLERANCE`, or 1e-5 of the stated epsilon where that is less.

    Examples
    --------
    >>> slack(8), slack(0.001)
    (1e-06, 1e-08)
    """
    return min(TOLERANCE, _RELATIVE * epsilon)


def _finite(epsilon: float) -> float | None:
    """Return epsilon rounded, None for infinity, which strict JSON lacks."""
    return round(epsilon, 6) if math.isfinite(epsilon) else None


# --- which sources drew noise ---------------------------------------------------------------------


class TrackedSource(Protocol):
    """What draws noise; see `dprepro.privacy.mechanisms.NoiseSource`."""

    @property
    def may_have_drawn(self) -> bool:
        """Whether it has drawn noise, or cannot rule it out."""

    def drawn_for(self, ledger: Ledger) -> list[LedgerEntry]:
        """Return the entries of a ledger that it wrote and has drawn exact noise for."""


_TRACKED: ContextVar[tuple[list[TrackedSource], ...]] = ContextVar("watched", default=())


@contextmanager
def tracking_noise() -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether a fit of this context may have drawn noise by now."""
    with tracking_sources() as sources:
        yield lambda: any(source.may_have_drawn for source in sources)


@contextmanager
def tracking_sources() -> Iterator[list[TrackedSource]]:
    """Yield a list that each new source of this context joins. Contexts can be nested."""
    sources: list[TrackedSource] = []
    token = _TRACKED.set((*_TRACKED.get(), sources))
    try:
        yield sources
    finally:
        _TRACKED.reset(token)


def track(source: TrackedSource) -> None:
    """Watch a new source of noise, for all who asked for it."""
    for sources in _TRACKED.get():
        sources.append(source)
