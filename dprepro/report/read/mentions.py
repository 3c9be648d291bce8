"""Which journals of a folder hold two methods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from dprepro.experiment.journal import JournalTable
from dprepro.experiment.record import Task
from dprepro.report.read.results import journal_paths, usual

Tasks = Mapping[str, Sequence[Task]]
"""By the name of a journal, one task of each cell that it holds records of."""


def tasks_held(folder: Path) -> Tasks:
    """Return what the journals of `folder` hold, those of hypotheses left out; see `usual`.

    Raises
    ------
    DpreproError
        If the folder has no journals, or one cannot be read.
    """
    tables = [JournalTable(path) for path in journal_paths(folder)]
    return {table.path.stem: table.tasks for table in usual(tables)}


def holding_both(held: Tasks, first: str, second: str, datasets: Collection[str] = ()) -> list[str]:
    """Return the journals that are needed to compare two methods, dataset by dataset.

    On each dataset these are the journals that hold both methods. Where there are none, they are
    those that hold one of the two, if each method is in one of them.

    Parameters
    ----------
    first, second
        Labels or names of methods.
    datasets
        Only these; default all. If one of them is in no journal, all are taken.

    Returns
    -------
    list of str
        Names of journals, sorted. If no dataset has both methods: those that hold either; all of
        them if none does.
    """
    holders: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for journal, tasks in held.items():
        for dataset, methods in _mentioned(tasks, (first, second)).items():
            holders[dataset][journal] = methods
    wanted = holders.keys() & set(datasets) if holders.keys() >= set(datasets) else set()
    found: set[str] = set()
    for dataset in wanted or holders:
        there = holders[dataset]
        both = {name for name, methods in there.items() if len(methods) == 2}
        if len(set().union(*there.values())) == 2:
            found |= both or there.keys()
    either = {name for there in holders.values() for name in there}
    return sorted(found or either or held)


def is_mentioned(held: Tasks, name: str) -> bool:
    """Whether a journal holds a label or a method of this name."""
    return any(_mentioned(tasks, [name]) for tasks in held.values())


def _mentioned(tasks: Sequence[Task], names: Sequence[str]) -> dict[str, set[str]]:
    """Return, by dataset, those of `names` that are the label or the method of a task there."""
    found: dict[str, set[str]] = defaultdict(set)
    for task in tasks:
        for name in {task.label, task.method}.intersection(names):
            found[task.dataset].add(name)
    return found
