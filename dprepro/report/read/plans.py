"""What the config of a journal asks for, and which of the journal's records answer to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dprepro.experiment.journal import JournalContents
from dprepro.experiment.record import Record, Task
from dprepro.experiment.stated import StatedPlan


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
    """

    splits: int
    paper: str | None
    table: str | None = None
    title: str = ""
    metric: str = ""
    cells: Mapping[tuple[str, float], Sequence[str]] | None = field(default=None, repr=False)
    has_own_card: bool = False

    @classmethod
    def stated(cls, plan: StatedPlan) -> JournalPlan:
        """Return what a plan line says."""
        return cls(
            plan.splits,
            plan.paper,
            plan.table,
            plan.title,
            plan.metric,
            {(cell.label, cell.epsilon): cell.keys for cell in plan.cells},
            not plan.has_builtin_card,
        )

    @cached_property
    def order(self) -> dict[str, int]:
        """The place of each task's key."""
        keys = [key for found in (self.cells or {}).values() for key in found]
        return {key: place for place, key in enumerate(keys)}


def current(
    contents: JournalContents, assumed: JournalPlan | None = None
) -> tuple[list[Record], JournalPlan | None]:
    """Return the records that the config asked for last, in its order, and the plan that says so.

    Parameters
    ----------
    assumed
        What the config asks for, as far as is known, where the journal states no plan. If the
        journal holds none of its keys, the journal is older or another config's, and the keys are
        left out.
    """
    plan = JournalPlan.stated(contents.plan) if contents.plan else assumed
    if plan is not None and plan.cells is not None:
        order = plan.order
        asked = [record for record in contents.records if record.task.key in order]
        if asked or contents.plan:
            return sorted(asked, key=lambda record: order[record.task.key]), plan
        plan = replace(plan, cells=None)
    return _last_of_each_label(contents.records), plan


def planned_splits(plan: JournalPlan | None, records: Sequence[Record]) -> dict[str, int]:
    """Return, by key of a record's task, the number of splits that make its cell complete.

    Where no plan says, as many as the fullest cell of the same dataset has.
    """
    fullest: dict[str, set[int]] = defaultdict(set)
    for record in records:
        fullest[record.task.dataset].add(record.task.split)
    found = {}
    for record in records:
        task = record.task
        keys = (plan.cells or {}).get((task.label, task.epsilon)) if plan else None
        known = plan.splits if plan else len(fullest[task.dataset])
        found[task.key] = len(keys) if keys else known
    return found


def _last_of_each_label(records: Sequence[Record]) -> list[Record]:
    """Keep, of several settings under one label, those of the last record."""
    latest = {_coordinates(r.task): r.task.cell for r in records}
    return [r for r in records if latest[_coordinates(r.task)] == r.task.cell]


def _coordinates(task: Task) -> tuple[str, str, float]:
    return task.dataset, task.label, task.epsilon
