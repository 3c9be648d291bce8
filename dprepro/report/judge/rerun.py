"""Compare records of a fresh run with committed ones of the same tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dprepro.experiment.record import Record
from dprepro.report.levels import level_in_words


def tolerance_of(method: str) -> float:
    """Return the largest relative difference allowed for a method: what its entry says."""
    from dprepro.methods.registry import REPEATS, all_methods

    found = all_methods().get(method)
    return found.repeats_within if found else REPEATS


@dataclass(frozen=True)
class Mismatch:
    """A metric that differs; `fresh` is NaN where the fresh task gave none."""

    record: Record
    metric: str
    committed: float
    fresh: float

    def __str__(self) -> str:
        task = self.record.task
        reason = f" ({self.record.message})" if self.record.message else ""
        return (
            f"{task.dataset}, {task.label}, {level_in_words(task.epsilon)}, split {task.split}: "
            f"{self.metric} {self.fresh:.8g}, committed {self.committed:.8g}{reason}"
        )


@dataclass(frozen=True)
class RerunReport:
    """How many fresh records have a committed twin, which differ, and which have none.

    `largest` is the largest relative difference found, `tolerances` the largest allowed, by
    the names of the methods that were run again. Where all is allowed, a task only has to finish,
    and `largest` leaves it out.
    """

    matched: int
    mismatches: Sequence[Mismatch]
    missing: Sequence[Record]
    largest: float
    tolerances: Mapping[str, float]

    @property
    def passes(self) -> bool:
        """Whether every fresh record has a twin and agrees with it."""
        return self.matched > 0 and not self.mismatches and not self.missing


@dataclass(frozen=True)
class Again:
    """What `dprepro check --fast` finds: tasks run again, recorded cells, stale explanations.

    Attributes
    ----------
    rerun
        Of a few tasks that were run again with the journals.
    changed
        What differs from the recorded cells and verdicts, a line a cell; None where none are
        recorded.
    stale
        How many entries of the deviations file no longer apply.
    """

    rerun: RerunReport
    changed: Sequence[str] | None
    stale: int

    @property
    def passes(self) -> bool:
        """Whether nothing differs and no entry is stale."""
        return self.rerun.passes and not self.changed and not self.stale


def compare_records(fresh: Iterable[Record], committed: Iterable[Record]) -> RerunReport:
    """Compare metrics by task key, each within the tolerance of its method (`tolerance_of`).

    Parameters
    ----------
    committed
        May hold any other tasks as well; only finished ones count.
    """
    twins = {r.task.key: r for r in committed if r.status == "ok"}
    matched, largest, allowed = 0, 0.0, {}
    mismatches: list[Mismatch] = []
    missing: list[Record] = []
    for record in fresh:
        twin = twins.get(record.task.key)
        if twin is None:
            missing.append(record)
            continue
        matched += 1
        tolerance = allowed[record.task.method] = tolerance_of(record.task.method)
        differences = _differences(record, twin)
        if tolerance < math.inf:
            largest = max([largest, *(d for d in differences.values() if not math.isnan(d))])
        mismatches += [
            Mismatch(record, name, twin.metrics[name], record.metrics.get(name, math.nan))
            for name, difference in differences.items()
            if not difference <= tolerance
        ]
    return RerunReport(matched, mismatches, missing, largest, dict(sorted(allowed.items())))


def _differences(fresh: Record, committed: Record) -> Mapping[str, float]:
    return {
        name: abs(fresh.metrics.get(name, math.nan) - value) / (abs(value) or 1.0)
        for name, value in committed.metrics.items()
    }
