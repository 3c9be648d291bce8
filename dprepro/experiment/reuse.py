"""Take over what another journal of the same folder has finished already."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dprepro.errors import DpreproError
from dprepro.experiment.journal import JournalWarning, read_journal
from dprepro.experiment.record import Record, Task


def finished_elsewhere(path: Path, tasks: Collection[Task]) -> list[dict[str, Any] | Record]:
    """Return journal entries for those of `tasks` that a neighbour of the journal `path` finished.

    The records of each neighbour follow the newest environment that it names (a neighbour written
    in several runs has older ones too), with its name as ``taken_from``. Equal tasks have
    equal results, so there is nothing to run; only tasks without a seed, which no run repeats, are
    left out. A neighbour that cannot be read is passed over.
    """
    wanted = {task.key for task in tasks if task.seed is not None}
    entries: list[dict[str, Any] | Record] = []
    for neighbour in sorted(path.parent.glob("*.jsonl")) if wanted else ():
        if neighbour.name == path.name:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", JournalWarning)
                contents = read_journal(neighbour)
        except DpreproError:
            continue
        found = [r for r in contents.records if r.status == "ok" and r.task.key in wanted]
        if found and contents.environments:
            entries += [{**contents.environments[-1], "taken_from": neighbour.stem}, *found]
            wanted -= {record.task.key for record in found}
    return entries
