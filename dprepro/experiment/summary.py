"""What a run amounts to: cells, failures, skips, and where the time went."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dprepro.experiment.record import Record

CellKey = tuple[str, float]
"""(label, epsilon) of a cell."""


@dataclass
class Tally:
    """Counts and cells over records, kept up to date while they come in.

    Attributes
    ----------
    metric
        The metric that the cells hold.
    values
        By cell, one value a finished split.
    statuses
        How many records ended in each status.
    problems
        (status, label, message) of failed and skipped records, with their number; of finished ones
        without the metric, (``"without METRIC"``, label, reason).
    seconds
        By (label, phase), summed wall time.
    is_synthetic
        Whether any record is of a synthetic stand-in.
    is_private
        Whether any record holds exact functions of private rows.
    unverified
        How many finished records nothing says the spent epsilon of, by label.
    units
        (unit of privacy, rows per unit) of the records.
    """

    metric: str
    values: dict[CellKey, list[float]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    problems: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    seconds: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    is_synthetic: bool = False
    is_private: bool = False
    unverified: Counter[str] = field(default_factory=Counter)
    units: set[tuple[str, int]] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Count one record."""
        task = record.task
        self.statuses[record.status] += 1
        self.is_synthetic |= task.is_synthetic
        self.is_private |= bool(record.exact)
        self.units.add((task.unit, task.rows_per_unit))
        if record.is_unverified:
            self.unverified[task.label] += 1
        if record.status == "ok":
            self._add_value(record)
        else:
            self.problems[record.status, task.label, record.message] += 1
        for phase, seconds in record.seconds.items():
            self.seconds[task.label, phase] += seconds

    def _add_value(self, record: Record) -> None:
        task, name = record.task, self.metric
        if name in record.metrics:
            self.values.setdefault((task.label, task.epsilon), []).append(record.metrics[name])
        else:
            reason = record.absent.get(name, "run before it was recorded")
            self.problems[f"without {name}", task.label, reason] += 1

    def extend(self, records: Iterable[Record]) -> None:
        """Count several records."""
        for record in records:
            self.add(record)

    def joined(self, records: Iterable[Record]) -> Tally:
        """Return a tally over these records as well; this one stays as it is."""
        values = {cell: list(found) for cell, found in self.values.items()}
        copied = Counter(self.statuses), Counter(self.problems), self.seconds.copy()
        unverified, units = Counter(self.unverified), set(self.units)
        joined = Tally(
            self.metric, values, *copied, self.is_synthetic, self.is_private, unverified, units
        )
        joined.extend(records)
        return joined

    def mean(self, cell: CellKey) -> float:
        """Return the mean over the cell's finished splits."""
        return statistics.fmean(self.values[cell])

    def sd(self, cell: CellKey) -> float | None:
        """Return the sample standard deviation (ddof 1) over splits; None for a single one."""
        values = self.values[cell]
        return statistics.stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Summary:
    """A run of one config, ended.

    Attributes
    ----------
    name
        The config's name.
    tally
        Over all records asked for, also those that earlier runs left.
    ran
        Number of tasks that this run added.
    wall_seconds
        Wall time of this run.
    stale
        Number of records in the journal that the config no longer asks for.
    others
        Records of the config that this run was not asked for.
    unfinished
        Tasks that faults of the machine stopped each time, by method's label and fault: they have
        no record.
    """

    name: str
    tally: Tally
    ran: int
    wall_seconds: float
    stale: int = 0
    others: Sequence[Record] = ()
    unfinished: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def whole(self) -> Tally:
        """The tally over all that the config asks for: what `dprepro table` shows of it."""
        return self.tally.joined(self.others)

    @property
    def failed(self) -> int:
        """Number of tasks of the plan whose record is a failure."""
        return self.tally.statuses["failed"]
