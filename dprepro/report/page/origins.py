"""Where the number of a cell comes from: splits, seed, config, machines, and how to repeat it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dprepro.config import config_names
from dprepro.report.layout.view import ResultTable
from dprepro.report.page.machines import machines_by_journal
from dprepro.report.read.metrics import METRICS
from dprepro.report.read.results import ResultCell
from dprepro.report.read.runs import Run

_DIGITS = 6


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
            "metric": METRICS[metric].title,
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
    found = {
        place: own.get(place, looked.get((place[0], result.task.cell)))
        for place, result in shown.items()
        if result is not None
    }
    return {place: number for place, number in found.items() if number is not None}


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
