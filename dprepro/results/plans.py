"""What the config of a journal asks for, and which of the journal's records answer to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dprepro.experiment.packed import RecordTable
from dprepro.experiment.plan_record import StatedPlan
from dprepro.experiment.record import Task


@dataclass(frozen=True)
class JournalPlan:
    """What a journal's config asks for.

    Attributes
    ----------
    splits
        How many splits make a cell complete.
    paper, table
        The printed table that it answers to, or None.
    title, metric
        The config's; empty where unknown.
    cells
        By (label, epsilon), in the config's order, the keys of all tasks; None where unknown.
    has_own_card
        Whether the card of its dataset is known not to be built in.
    looks
        After how many splits verdicts are looked at, where it adds splits to another config's.
    """

    splits: int
    paper: str | None
    table: str | None = None
    title: str = ""
    metric: str = ""
    cells: Mapping[tuple[str, float], Sequence[str]] | None = field(default=None, repr=False)
    has_own_card: bool = False
    looks: tuple[int, ...] = ()

    @classmethod
    def stated(cls, plan: StatedPlan) -> JournalPlan:
        """Return what a plan line says."""
        printed = plan.published
        return cls(
            plan.splits,
            printed.paper if printed else None,
            printed.table if printed else None,
            plan.title,
            plan.metric,
            {(cell.label, cell.epsilon): cell.keys for cell in plan.cells},
            not plan.builtin_card,
            printed.looks if printed else (),
        )


def current(
    stated: StatedPlan | None, table: RecordTable, assumed: JournalPlan | None = None
) -> tuple[NDArray[np.intp], JournalPlan | None]:
    """Return the rows that the config asked for last, in its order, and the plan that says so.

    Parameters
    ----------
    stated
        The plan that the journal states last.
    assumed
        What the config asks for, as far as is known, where the journal states no plan. If the
        journal holds none of its keys, the journal is older or another config's, and the keys are
        left out.

    Returns
    -------
    Rows of `table`, integers (number of tasks,), of several records of a task the last; and the
    plan.
    """
    plan = JournalPlan.stated(stated) if stated else assumed
    if plan is not None and plan.cells is not None:
        keys = [key for found in plan.cells.values() for key in found]
        asked = table.last_of_each(table.positions(keys), len(keys))
        if asked.size or stated:
            return asked, plan
        plan = replace(plan, cells=None)
    return _last_of_each_label(table), plan


def planned_splits(
    plan: JournalPlan | None, table: RecordTable, rows: NDArray[np.intp]
) -> dict[int, int]:
    """Return, by position of a task in `table.tasks`, how many splits make its cell complete.

    Where no plan says, as many as the fullest cell of the same dataset has.
    """
    present = np.unique(table.task[rows])
    fullest: dict[str, set[int]] = defaultdict(set)
    if plan is None:
        for position in present:
            splits = table.split[rows][table.task[rows] == position]
            fullest[table.tasks[position].dataset].update(splits.tolist())
    found = {}
    for position in present:
        task = table.tasks[position]
        keys = (plan.cells or {}).get((task.label, task.epsilon)) if plan else None
        known = plan.splits if plan else len(fullest[task.dataset])
        found[int(position)] = len(keys) if keys else known
    return found


def _last_of_each_label(table: RecordTable) -> NDArray[np.intp]:
    """Keep, of several settings under one label, those of the last record."""
    labels: dict[tuple[str, str, float], int] = {}
    label = np.array(
        [labels.setdefault(_coordinates(t), len(labels)) for t in table.tasks], np.intp
    )
    rows = table.last
    latest = np.full(len(labels), -1, np.int64)
    latest[label[table.task[rows]]] = table.task[rows]  # the last of equal positions stays
    return rows[latest[label[table.task[rows]]] == table.task[rows]]


def _coordinates(task: Task) -> tuple[str, str, float]:
    return task.dataset, task.label, task.epsilon
