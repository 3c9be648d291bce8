"""Where numbers come from: machines, versions, runs and their time; of a cell, how to repeat it."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dprepro.experiment.config import config_names
from dprepro.report.layout import ResultTable
from dprepro.report.page.sheets import Cell, Head, Kind, Row, Sheet
from dprepro.results.folder import ResultCell
from dprepro.results.margins import find_metric
from dprepro.results.runs import Run, Timing

_RUN_HEADS = (
    *map(Head, ("Journal", "Began", "Version", "Commit")),
    Head("Processes", Kind.NUMBER),
    Head("Machine"),
)
_TIMING_HEADS = (
    *map(Head, ("Dataset", "Method")),
    Head("Finished", Kind.NUMBER, "number of tasks: one split at one privacy level"),
    Head("Failed", Kind.NUMBER),
    Head("Skipped", Kind.NUMBER),
    Head("Mean fit, s", Kind.NUMBER, "wall time"),
    Head("Longest fit, s", Kind.NUMBER),
    Head("All phases, min", Kind.NUMBER, "summed over the finished tasks"),
)
_MACHINE = ("cpu", "cores", "platform", "python")
_DIGITS = 6


@dataclass(frozen=True)
class Machine:
    """A machine with its libraries. `facts` are pairs of a name and what it is there."""

    name: str
    facts: tuple[tuple[str, str], ...]


def machines_of(runs: Iterable[Run]) -> list[Machine]:
    """Return each machine with other hardware or other versions once, as M1, M2, ..."""
    return list(_by_machine(runs).values())


def machines_by_journal(runs: Iterable[Run]) -> dict[str, list[str]]:
    """Return the names of the machines that each journal was written on."""
    runs = list(runs)
    machines = _by_machine(runs)
    found: dict[str, list[str]] = {}
    for run in runs:
        name = machines[_identity(run)].name
        if name not in found.setdefault(run.journal, []):
            found[run.journal].append(name)
    return found


def run_sheet(runs: Sequence[Run]) -> Sheet:
    """Return the runs in the order of their journals, each with its machine's name."""
    machines = _by_machine(runs)
    rows = tuple(_run(run, machines[_identity(run)].name) for run in runs)
    return Sheet("runs", "Runs that the journals hold", _RUN_HEADS, rows)


def timing_sheet(timings: Iterable[Timing]) -> Sheet:
    """Return how many tasks ended how, and the time that they took."""
    rows = tuple(_timed(timing) for timing in timings)
    return Sheet("times", "Tasks and wall time", _TIMING_HEADS, rows)


def time_in_words(seconds: float) -> str:
    """Return a duration in the unit that says something: ``"4.2 seconds"``, ``"31.5 hours"``."""
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} seconds"


def _by_machine(runs: Iterable[Run]) -> dict[str, Machine]:
    machines: dict[str, Machine] = {}
    for run in runs:
        name = f"M{len(machines) + 1}"
        machines.setdefault(_identity(run), Machine(name, tuple(_facts(run.environment))))
    return machines


def _identity(run: Run) -> str:
    return json.dumps(list(_facts(run.environment)))


def _facts(environment: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name in _MACHINE:
        if name in environment:
            yield name, str(environment[name])
    libraries = environment.get("libraries")
    if isinstance(libraries, Mapping):
        for name, version in libraries.items():
            yield str(name), str(version)


def _run(run: Run, machine: str) -> Row:
    given = run.environment
    journal = f"{run.journal}, taken from {run.taken_from}" if run.taken_from else run.journal
    time = str(given.get("time", "")).replace("T", " ").replace("+00:00", " UTC")
    fields = (journal, time, given.get("dprepro", ""), _commit(given), given.get("jobs", ""))
    return Row(tuple(Cell(str(text)) for text in (*fields, machine)))


def _commit(environment: Mapping[str, Any]) -> str:
    git = environment.get("git")
    if not isinstance(git, Mapping):
        return ""
    return str(git.get("commit", ""))[:10] + (" with changes" if git.get("dirty") else "")


def _timed(timing: Timing) -> Row:
    fields = (
        timing.dataset,
        timing.method,
        f"{timing.finished:,}",
        f"{timing.failed or ''}",
        f"{timing.skipped or ''}",
        f"{timing.fit_mean:.3g}" if timing.finished else "",
        f"{timing.fit_longest:.3g}" if timing.finished else "",
        f"{timing.total / 60:.1f}",
    )
    cells = tuple(Cell(text) for text in fields)
    return Row(cells, None, timing.dataset, timing.method)


@dataclass(frozen=True)
class Origins:
    """What is known of the runs behind cells: names of machines by journal, built-in configs."""

    machines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    configs: frozenset[str] = frozenset()

    def of(self, result: ResultCell | None, metric: str) -> dict[str, Any] | None:
        """Return the facts of a cell in words; None without a finished split.

        Keys: ``facts`` are pairs of a name and what it is, ``splits`` pairs of a split and its
        value, ``command`` repeats the cell into a new folder.
        """
        if result is None or not result.splits(metric):
            return None
        task = result.task
        values = result.by_split(metric) or dict(enumerate(result.values[metric]))
        machines = [name for journal in result.journals for name in self.machines.get(journal, ())]
        facts = {
            "Method": task.method,
            "Parameters": ", ".join(f"{k} = {v}" for k, v in task.params.items()) or "defaults",
            "Config": ", ".join(result.journals),
            "Seed": "of the operating system" if task.seed is None else f"{task.seed}",
            "Test rows": _test_rows(result),
            "Domain": task.domain,
            "\N{GREEK SMALL LETTER DELTA}": f"{task.delta:g}" if task.delta else "",
            "Machines": ", ".join(dict.fromkeys(machines)),
        }
        return {
            "facts": [[name, text] for name, text in facts.items() if text],
            "metric": find_metric(metric).title,
            "splits": [[split, round_off(value)] for split, value in values.items()],
            "command": _command(result, self.configs),
        }


def origins_of(runs: Sequence[Run]) -> Origins:
    """Return what the runs of journals say of the cells in them."""
    return Origins(machines_by_journal(runs), frozenset(config_names()))


def row_numbers(tables: Sequence[ResultTable], rows: Sequence[Any]) -> dict[tuple[str, int], int]:
    """Return the row of each result among the rows of all cells, by (metric, id of the result)."""
    own, looked = {}, {}
    for number, row in reversed(list(enumerate(rows))):
        if row.result is not None:
            own[row.metric, id(row.result)] = number
            if row.result.looks:  # with more splits than the table shows
                looked[row.metric, row.result.task.cell] = number
    shown = {(t.metric.name, id(e.result)): e.result for t in tables for _, e in t.entries}
    for place, result in shown.items():
        if place not in own and result and (place[0], result.task.cell) in looked:
            own[place] = looked[place[0], result.task.cell]
    return {place: own[place] for place in shown if place in own}


def round_off(value: float) -> float:
    """Return a value with six significant digits."""
    return float(f"{value:.{_DIGITS}g}")


def _test_rows(result: ResultCell) -> str:
    task = result.task
    if task.evaluation == "random":
        return f"random, {100 * task.test_share:.3g} % of the rows"
    return f"{task.evaluation}"


def _command(result: ResultCell, configs: frozenset[str]) -> str:
    task = result.task
    name = result.journals[0]
    # A config of one's own goes by its file, which is named like its journal.
    config = name if name in configs else f"{name}.yaml"
    words = ["dprepro", "run", config, "--method", task.label]
    if math.isfinite(task.epsilon):
        words += ["--epsilon", f"{task.epsilon:g}"]
    return shlex.join([*words, "--results", "again"])
