"""Take over what another journal of the same folder has finished already."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from dprepro.errors import DpreproError
from dprepro.experiment.appended import JournalWarning
from dprepro.experiment.journal import JournalContents, journal_files, read_journal
from dprepro.experiment.record import Record, Task


def finished_elsewhere(
    path: Path, tasks: Collection[Task], metrics: Collection[str] = ()
) -> list[dict[str, Any] | Record]:
    """Return journal entries for those of `tasks` that a neighbour of the journal `path` finished.

    Records follow the environment that they were computed in, with the name of the journal that
    was written there as ``taken_from``. Equal tasks have equal results, so there is nothing to run;
    only tasks without a seed, which no run repeats, are left out. A neighbour is passed over if it
    or a record wanted of it cannot be read, and a record if no environment precedes it, or if it
    lacks one of `metrics`.
    """
    wanted = {task.key for task in tasks if task.seed is not None}
    entries: list[dict[str, Any] | Record] = []
    for name, neighbour in journal_files(path.parent).items() if wanted else ():
        if name == path.stem:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", JournalWarning)
                contents = read_journal(neighbour, wanted)
        except DpreproError:
            continue
        taken = list(_taken(contents, neighbour.stem, metrics))
        entries += taken
        wanted -= {entry.task.key for entry in taken if isinstance(entry, Record)}
    return entries


def _taken(
    contents: JournalContents, journal: str, metrics: Collection[str]
) -> Iterator[dict[str, Any] | Record]:
    """Yield the finished records, each environment before those that it holds for."""
    last: dict[str, Any] | None = None
    for record in contents.records:
        environment = contents.computed_in.get(record.task.key)
        if environment is None or record.status != "ok" or record.lacks(metrics):
            continue
        if environment is not last:
            # What the neighbour took over itself was computed for the journal named there.
            yield {"taken_from": journal, **environment}
            last = environment
        yield record
