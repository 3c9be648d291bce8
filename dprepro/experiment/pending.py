"""What a run has before it: which tasks its journal has done, and which are to run or to skip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dprepro.experiment.machine_errors import was_fault
from dprepro.experiment.plan import PlannedTask
from dprepro.experiment.record import Record, Task


@dataclass(frozen=True)
class Pending:
    """What a run has before it.

    Attributes
    ----------
    planned
        The tasks asked for.
    done
        Records that stay as they are, of tasks asked for.
    todo
        Tasks to run.
    skips
        Records to write for tasks that cannot be run.
    stale
        Number of records in the journal that the config no longer asks for.
    others
        Records of the config's plan that are not asked for.
    again
        Number of tasks to run whose records lack a metric that the config asks for.
    """

    planned: tuple[PlannedTask, ...]
    done: tuple[Record, ...]
    todo: tuple[Task, ...]
    skips: tuple[Record, ...]
    stale: int
    others: tuple[Record, ...] = ()
    again: int = 0


def pending_of(
    planned: Sequence[PlannedTask],
    asked: Sequence[PlannedTask],
    known: dict[str, Record],
    retry_failed: bool,
    metrics: Sequence[str],
) -> Pending:
    """Return what is left of a plan where these records, by key, are `known`.

    Parameters
    ----------
    planned, asked
        The whole plan, and the part of it that is asked for.
    retry_failed
        Whether failed tasks are run again. Those that earlier versions recorded as failed because
        a worker was killed are, anyway.
    metrics
        What every record must have, or say why it has not; see `Record.lacks`.
    """
    done: list[Record] = []
    todo: list[Task] = []
    skips: list[Record] = []
    again = 0
    for entry in asked:
        record = known.get(entry.task.key)
        if entry.skip and (record is None or record.status == "skipped"):
            skip = Record(entry.task, "skipped", message=entry.skip)
            (done if record == skip else skips).append(skip)
        elif record is None or record.status == "skipped":
            todo.append(entry.task)  # what was in its way is gone
        elif record.status == "failed" and not entry.skip and (retry_failed or was_fault(record)):
            todo.append(entry.task)
        elif record.lacks(metrics):
            todo.append(entry.task)
            again += 1
        else:
            done.append(record)
    of_plan = {entry.task.key for entry in planned}
    rest = of_plan - {entry.task.key for entry in asked}
    others = tuple(record for key, record in known.items() if key in rest)
    stale = len(known.keys() - of_plan)
    return Pending(tuple(asked), tuple(done), tuple(todo), tuple(skips), stale, others, again)
