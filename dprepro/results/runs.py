"""What journals say beside the results: machines and versions, time taken, budgets spent."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dprepro.experiment.record import Record
from dprepro.privacy.ledger import slack
from dprepro.results.audits import LedgerSummary, kept_ledger
from dprepro.results.folder import Results
from dprepro.results.result_cell import dataset_of

_FIXED_SEED = "fixed seed"
# Of the stated epsilon: what the accountant can add. And the decimals of a recorded epsilon, see
# `dprepro.privacy.ledger.Ledger.summary`.
_ACCOUNTANT, _DECIMALS = 1e-6, 6


@dataclass(frozen=True)
class Level:
    """Epsilons at one privacy level: stated, spent, and spent under replace-one neighbours."""

    stated: float
    spent: float
    replace_one: float

    @property
    def is_overspent(self) -> bool:
        """Whether more was spent than stated, beyond what a ledger and the accountant round."""
        most = self.stated + max(slack(self.stated), _ACCOUNTANT * self.stated)
        # A record rounds what was spent, and not what was stated. Rounding keeps the order.
        return self.spent > max(most, round(most, _DECIMALS))


@dataclass(frozen=True)
class Spending:
    """The spent epsilon of a method on a dataset, the largest over the splits.

    Attributes
    ----------
    levels, unverified
        In order of the stated epsilon; and the stated epsilons at which the method kept no ledger.
    unaccounted, gaps
        Distinct reads that epsilon does not cover, and gaps in the proof; without the fixed seed.
    is_seeded
        Whether a fixed seed was used, as reproductions do. Such a model must not be released.
    floating_point
        Distinct answers in floating point; None where a record does not say.
    is_authors_word
        Whether the method is one's own, so that its ledger is its author's word.
    """

    dataset: str
    method: str
    adjacency: str
    delta: float
    levels: tuple[Level, ...]
    unaccounted: tuple[str, ...]
    gaps: tuple[str, ...]
    is_seeded: bool
    floating_point: tuple[str, ...] | None = None
    unverified: tuple[float, ...] = ()
    is_authors_word: bool = False

    @property
    def largest_share(self) -> float:
        """The largest spent epsilon in units of the stated one; 0 without a ledger."""
        return max((level.spent / level.stated for level in self.levels), default=0.0)

    @property
    def replace_one_share(self) -> float:
        """The same under replace-one neighbours."""
        return max((level.replace_one / level.stated for level in self.levels), default=0.0)

    @property
    def is_overspent(self) -> bool:
        """Whether more was spent than stated at any level."""
        return any(level.is_overspent for level in self.levels)

    @property
    def stands(self) -> bool:
        """Whether the stated guarantee holds, apart from a fixed seed."""
        return not (self.unaccounted or self.gaps or self.is_overspent or self.unverified)


@dataclass(frozen=True)
class Timing:
    """Tasks of a method on a dataset: how they ended, and wall seconds of the finished ones."""

    dataset: str
    method: str
    finished: int
    failed: int
    skipped: int
    fit_mean: float
    fit_longest: float
    total: float


@dataclass(frozen=True)
class Run:
    """One run of a config: its journal's name and the environment line as written."""

    journal: str
    environment: Mapping[str, Any]

    @property
    def taken_from(self) -> str:
        """The journal whose records of this run were taken over; empty for a run of its own."""
        return str(self.environment.get("taken_from", ""))


@dataclass(frozen=True)
class Runs:
    """What the journals of a folder say beside the results."""

    runs: tuple[Run, ...]
    spendings: tuple[Spending, ...]
    timings: tuple[Timing, ...]


def runs_of(results: Results) -> Runs:
    """Return what the journals of these results say beside them.

    Records count that the configs asked for at their last run. A record that another journal took
    over counts once.

    Raises DpreproError if a ledger is malformed.
    """
    runs = []
    distinct: dict[object, tuple[str, Record]] = {}
    for journal in results.held:
        runs += [Run(journal.name, environment) for environment in journal.environments]
        for record in journal.records:
            dataset = dataset_of(record.task, journal.has_own_card)
            distinct.setdefault(_computation(record), (dataset, record))
    groups: dict[tuple[str, str], list[Record]] = {}
    for dataset, record in distinct.values():
        groups.setdefault((dataset, record.task.label), []).append(record)
    return Runs(tuple(runs), tuple(_spendings(groups)), tuple(_timings(groups)))


def _computation(record: Record) -> object:
    """Return what identifies a computation: only a record that was taken over has equal times."""
    return record.task.key, record.status, tuple(sorted(record.seconds.items()))


def _timings(groups: Mapping[tuple[str, str], Sequence[Record]]) -> Iterable[Timing]:
    for (dataset, method), found in groups.items():
        ended = Counter(record.status for record in found)
        done = [record.seconds for record in found if record.status == "ok"]
        fits = [float(seconds.get("fit", 0.0)) for seconds in done]
        yield Timing(
            dataset,
            method,
            ended["ok"],
            ended["failed"],
            ended["skipped"],
            fit_mean=statistics.fmean(fits) if fits else 0.0,
            fit_longest=max(fits, default=0.0),
            total=math.fsum(value for seconds in done for value in seconds.values()),
        )


def _spendings(groups: Mapping[tuple[str, str], Sequence[Record]]) -> Iterable[Spending]:
    for (dataset, method), records in groups.items():
        # A journal keeps a ledger once, however many records have it.
        found = {(id(r.ledger), r.task.epsilon, r.task.delta): r for r in records}.values()
        ledgers = [ledger for ledger in map(kept_ledger, found) if ledger is not None]
        by_delta: dict[float, list[LedgerSummary]] = {}
        for ledger in ledgers:
            if ledger.epsilon is not None and ledger.epsilon > 0:
                by_delta.setdefault(ledger.delta, []).append(ledger)
        for delta, same in by_delta.items():
            yield _spending(dataset, method, delta, same)
        yield from _unverified(dataset, method, found)


def _unverified(dataset: str, method: str, records: Iterable[Record]) -> Iterable[Spending]:
    by_delta: dict[float, set[float]] = {}
    for record in records:
        if record.is_unverified:
            by_delta.setdefault(record.task.delta, set()).add(record.task.epsilon)
    for delta, stated in by_delta.items():
        levels = tuple(sorted(stated))
        yield Spending(dataset, method, "", delta, (), (), (), False, unverified=levels)


def _spending(
    dataset: str, method: str, delta: float, ledgers: Sequence[LedgerSummary]
) -> Spending:
    unaccounted = dict.fromkeys(text for ledger in ledgers for text in ledger.unaccounted)
    reads = tuple(text for text in unaccounted if not text.startswith(_FIXED_SEED))
    return Spending(
        dataset,
        method,
        ", ".join(dict.fromkeys(ledger.adjacency for ledger in ledgers)),
        delta,
        tuple(_levels(ledgers)),
        reads,
        tuple(dict.fromkeys(text for ledger in ledgers for text in ledger.gaps)),
        is_seeded=len(reads) < len(unaccounted),
        floating_point=_floating_point(ledgers),
        is_authors_word=any(ledger.code for ledger in ledgers),
    )


def _floating_point(ledgers: Iterable[LedgerSummary]) -> tuple[str, ...] | None:
    found = [ledger.floating_point for ledger in ledgers]
    said = [texts for texts in found if texts is not None]
    if len(said) < len(found):
        return None
    return tuple(dict.fromkeys(text for texts in said for text in texts))


def _levels(ledgers: Iterable[LedgerSummary]) -> Iterable[Level]:
    by_level: dict[float, list[LedgerSummary]] = {}
    for ledger in ledgers:
        by_level.setdefault(ledger.epsilon or 0.0, []).append(ledger)
    for stated, same in sorted(by_level.items()):
        spent = max(_finite_or_inf(ledger.spent_epsilon) for ledger in same)
        exchanged = max(_finite_or_inf(ledger.replace_one_epsilon) for ledger in same)
        yield Level(stated, spent, exchanged)


def _finite_or_inf(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon
