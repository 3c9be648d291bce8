"""Tasks that were run again, compared with the records that earlier runs left of them.

Of a config, a sample is run again: the first splits of each dataset and label at its lowest and its
highest epsilon. What the same program does to the same rows is the same to the last digit; a
tolerance is for other processors and other versions of libraries.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dprepro.experiment.config import to_run
from dprepro.experiment.journal import JournalContents
from dprepro.experiment.packed import STATUSES
from dprepro.experiment.record import Record, Task
from dprepro.results.aggregation import HeldJournal
from dprepro.results.margins import level_in_words
from dprepro.runtime.errors import DpreproError

SPLITS = 2
"""As many of the first splits are in a sample."""
_OK = STATUSES.index("ok")


def tolerance_of(method: str) -> float:
    """Return the largest relative difference allowed for a method: what its entry says."""
    from dprepro.methods.entry import REPEATS
    from dprepro.methods.registry import all_methods

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
        reason = f" ({self.record.message})" if self.record.message else ""
        return f"{place_of(self.record.task)}: {self.in_words('committed')}{reason}"

    def in_words(self, earlier: str) -> str:
        """Return both values, with as many digits as tell them apart; `earlier` names one."""
        short = f"{self.fresh:.8g}", f"{self.committed:.8g}"
        now, then = short if short[0] != short[1] else (repr(self.fresh), repr(self.committed))
        return f"{self.metric} {now}, {earlier} {then}"


def place_of(task: Task) -> str:
    """Return which task it is: ``"adult, ebm, epsilon 1, split 0"``."""
    return f"{task.dataset}, {task.label}, {level_in_words(task.epsilon)}, split {task.split}"


@dataclass(frozen=True)
class RerunReport:
    """How many fresh records have a committed twin, which differ, and which have none.

    `largest` is the largest difference found, `tolerances` the largest allowed, by method: both
    relative, or absolute where one tolerance was given for all. Where all is allowed, a task only
    has to finish, and `largest` leaves it out.
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


def compare_records(
    fresh: Iterable[Record], committed: Iterable[Record], tolerance: float | None = None
) -> RerunReport:
    """Compare metrics by task key.

    `committed` may hold any other tasks as well; only finished ones count.

    Parameters
    ----------
    tolerance
        The largest absolute difference allowed, 0 or more. None: a relative one, for each method
        what `tolerance_of` says. A method that need not repeat only has to finish in either case.
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
        most = tolerance_of(record.task.method)
        if tolerance is not None and most < math.inf:
            most = tolerance
        allowed[record.task.method] = most
        differences = {
            name: abs(record.metrics.get(name, math.nan) - value)
            / (1.0 if tolerance is not None else abs(value) or 1.0)
            for name, value in twin.metrics.items()
        }
        if most < math.inf:
            largest = max([largest, *(d for d in differences.values() if not math.isnan(d))])
        mismatches += [
            Mismatch(record, name, twin.metrics[name], record.metrics.get(name, math.nan))
            for name, difference in differences.items()
            if not difference <= most
        ]
    return RerunReport(matched, mismatches, missing, largest, dict(sorted(allowed.items())))


@dataclass(frozen=True)
class Sample:
    """Which finished tasks of a config are run again.

    Attributes
    ----------
    config
        The name of its journal.
    tasks
        At least one, in the order of the plan.
    finished
        How many tasks of the plan have finished in all.
    """

    config: str
    tasks: Sequence[Task]
    finished: int

    @property
    def cells(self) -> dict[tuple[str, float], int]:
        """By label and epsilon, so many of the first splits hold all of `tasks`."""
        found: dict[tuple[str, float], int] = {}
        for task in self.tasks:
            place = task.label, task.epsilon
            found[place] = max(found.get(place, 0), task.split + 1)
        return found


def sample_of(journal: HeldJournal) -> Sample:
    """Return the sample of a config's results: `SPLITS` splits at the lowest and highest epsilon.

    Raises DpreproError if none of these tasks has finished, or none has a seed; the message says
    what to do.
    """
    table = journal.table
    finished = journal.rows[table.status[journal.rows] == _OK]
    tasks = [r.task for r in table.records(finished[table.split[finished] < SPLITS])]
    run = f"`dprepro run {to_run(journal.name)}`"
    if not tasks:
        raise DpreproError(
            f"{journal.name}: no task of splits 0 and 1 has finished, so there is "
            f"nothing to compare with: {run} runs some, with --retry-failed also those that failed"
        )
    seeded = [task for task in tasks if task.seed is not None]
    if not seeded:
        raise DpreproError(
            f"{journal.name}: its config has `seed: null`, and no run without a seed repeats "
            "another. Give the config a seed and run it; `dprepro check --baseline FOLDER` "
            "compares results without one"
        )
    levels: dict[tuple[str, str], set[float]] = defaultdict(set)
    for task in seeded:
        levels[task.dataset, task.label].add(task.epsilon)
    ends = {place: {min(found), max(found)} for place, found in levels.items()}
    wanted = [task for task in seeded if task.epsilon in ends[task.dataset, task.label]]
    return Sample(journal.name, wanted, int(finished.size))


@dataclass(frozen=True)
class Repeated:
    """The sample of a config, run again.

    Attributes
    ----------
    sample
        What was run again.
    rerun
        What that gave. A task is missing that the config no longer asks for.
    tolerance
        The largest absolute difference allowed.
    versions
        In words, the versions and the machine that differ between the records that do not agree
        and now. Empty if all agree.
    """

    sample: Sample
    rerun: RerunReport
    tolerance: float
    versions: Sequence[str] = ()


def compare_sample(
    sample: Sample, recorded: JournalContents, fresh: JournalContents, tolerance: float
) -> Repeated:
    """Compare the records of a sample with those of a fresh run of it.

    `recorded` and `fresh` may hold any other tasks as well.
    """
    twins = {record.task.key: record for record in recorded.records}
    again = {record.task.key: record for record in fresh.records}
    keys = [task.key for task in sample.tasks]
    found = compare_records([again[key] for key in keys if key in again], twins.values(), tolerance)
    missing = [twins[key] for key in keys if key not in again]
    rerun = RerunReport(found.matched, found.mismatches, missing, found.largest, found.tolerances)
    differing = dict.fromkeys(mismatch.record.task.key for mismatch in found.mismatches)
    now = fresh.environments[-1] if fresh.environments else {}
    versions = dict.fromkeys(
        line
        for key in differing
        for line in version_changes(recorded.computed_in.get(key, {}), now)
    )
    return Repeated(sample, rerun, tolerance, tuple(versions))


def version_changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield in words what differs between two environments of journals, and results may depend on.

    Nothing is said of what one of the two does not state.
    """
    pairs = [(name, _stated(then, name), _stated(now, name)) for name in _STATED]
    libraries = [one.get("libraries") for one in (then, now)]
    if all(libraries):
        before, after = (found or {} for found in libraries)
        pairs += [
            (name, before.get(name, "not installed"), after.get(name, "not installed"))
            for name in dict.fromkeys([*before, *after])
        ]
    for name, earlier, later in pairs:
        if earlier and later and earlier != later:
            yield f"{name} {earlier} then, {later} now"


_STATED = ("dprepro", "commit", "python", "processor", "linear algebra")


def _stated(environment: Mapping[str, Any], name: str) -> str:
    """Return what an environment says, see `dprepro.experiment.environment`; empty if nothing."""
    if name == "commit":
        return str((environment.get("git") or {}).get("commit", ""))[:10]
    if name == "linear algebra":
        return ", ".join(environment.get("blas") or ())
    return str(environment.get("cpu" if name == "processor" else name) or "")
