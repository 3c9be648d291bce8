"""Compare records of a fresh run with committed ones of the same tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dprepro.experiment.record import Record

# THE tolerances of a rerun, relative to the committed metric. The same task gives the same bits on
# the same processor with the same libraries and linear algebra kernels. Elsewhere sums are taken in
# another order: scores move in the sixth digit, solvers that stop at a tolerance (logistic
# regression) end a little apart, and a few of thousands of test rows change sides. Between two
# kernels of OpenBLAS on one machine the accuracy of logistic regression moved by 7e-4.
SAME_MACHINE = 1e-9
OTHER_MACHINE = 1e-3
_MACHINE = ("cpu", "blas", "python", "libraries")


@dataclass(frozen=True)
class Mismatch:
    """A metric that differs; `fresh` is NaN where the fresh task gave none."""

    record: Record
    metric: str
    committed: float
    fresh: float

    def __str__(self) -> str:
        task = self.record.task
        level = "non-private" if math.isinf(task.epsilon) else f"epsilon {task.epsilon:g}"
        reason = f" ({self.record.message})" if self.record.message else ""
        return (
            f"{task.dataset}, {task.label}, {level}, split {task.split}: {self.metric} "
            f"{self.fresh:.8g}, committed {self.committed:.8g}{reason}"
        )


@dataclass(frozen=True)
class RerunReport:
    """How many fresh records have a committed twin, which differ, and which have none.

    `largest` is the largest relative difference found, `tolerance` the largest allowed.
    """

    matched: int
    mismatches: Sequence[Mismatch]
    missing: Sequence[Record]
    largest: float
    tolerance: float

    @property
    def passes(self) -> bool:
        """Whether every fresh record has a twin and agrees with it."""
        return self.matched > 0 and not self.mismatches and not self.missing


def compare_records(
    fresh: Iterable[Record], committed: Iterable[Record], tolerance: float
) -> RerunReport:
    """Compare metrics by task key.

    Parameters
    ----------
    committed
        May hold any other tasks as well; only finished ones count.
    tolerance
        Largest difference of a metric, relative to the committed value.
    """
    twins = {r.task.key: r for r in committed if r.status == "ok"}
    matched, largest = 0, 0.0
    mismatches: list[Mismatch] = []
    missing: list[Record] = []
    for record in fresh:
        twin = twins.get(record.task.key)
        if twin is None:
            missing.append(record)
            continue
        matched += 1
        differences = _differences(record, twin)
        largest = max([largest, *(d for d in differences.values() if not math.isnan(d))])
        mismatches += [
            Mismatch(record, name, twin.metrics[name], record.metrics.get(name, math.nan))
            for name, difference in differences.items()
            if not difference <= tolerance
        ]
    return RerunReport(matched, mismatches, missing, largest, tolerance)


def rerun_tolerance(
    fresh: Sequence[Mapping[str, Any]], committed: Sequence[Mapping[str, Any]]
) -> float:
    """Return the tolerance for runs in these environments (lines of journals)."""
    machines = [[env.get(name) for name in _MACHINE] for env in (*fresh, *committed)]
    same = bool(fresh and committed) and all(machine == machines[0] for machine in machines)
    return SAME_MACHINE if same else OTHER_MACHINE


def _differences(fresh: Record, committed: Record) -> Mapping[str, float]:
    return {
        name: abs(fresh.metrics.get(name, math.nan) - value) / (abs(value) or 1.0)
        for name, value in committed.metrics.items()
    }
