"""The runs that come with dprepro, beside one's own: marked, so that neither counts as the other.

A task can be in both, with one key: it is shown on both sides, and no record of one side is counted
on the other. Verdicts are on one's own results, since no printed number has a marked label.
"""

from __future__ import annotations

from dataclasses import replace

from dprepro.experiment.record import Record, Task
from dprepro.results.aggregation import HeldJournal
from dprepro.results.cell import shipped
from dprepro.results.folder import Results, assemble


def beside(own: Results, others: Results) -> Results:
    """Return one's own results, then those of the runs that come with dprepro, marked."""
    return assemble([*own.held, *map(_marked, others.held)])


def in_both(own: Results, others: Results) -> tuple[list[Record], list[Record]]:
    """Return the records of the tasks that both hold, of one's own and of the others."""
    both = _keys(own) & _keys(others)
    return _of(own, both), _of(others, both)


def _keys(results: Results) -> set[bytes]:
    found = (journal.table.keys[journal.rows].tolist() for journal in results.held)
    return {key for keys in found for key in keys}


def _of(results: Results, keys: set[bytes]) -> list[Record]:
    found = (record for journal in results.held for record in journal.records)
    return [record for record in found if record.task.key.encode() in keys]


def _marked(journal: HeldJournal) -> HeldJournal:
    plan = journal.plan
    if plan is not None and plan.cells is not None:
        cells = {(shipped(label), epsilon): keys for (label, epsilon), keys in plan.cells.items()}
        plan = replace(plan, cells=cells)
    tasks = [_of_label(task, shipped(task.label)) for task in journal.table.tasks]
    table = replace(journal.table, tasks=tasks)
    return replace(journal, name=shipped(journal.name), plan=plan, table=table)


def _of_label(task: Task, label: str) -> Task:
    """Return a task under another label; its key stays."""
    made = replace(task, label=label)
    vars(made)["key"] = task.key
    return made
