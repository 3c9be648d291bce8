"""Take over what another journal of the same folder has finished already."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dprepro.errors import DpreproError
from dprepro.experiment.journal import JournalWarning, read_journal
from dprepro.experiment.record import Record, Task


def finished_elsewhere(path: Path, tasks: Collection[Task]) -> list[dict[str, Any] | Record]:
    """Return journal entries for those of `tasks` that a neighbour of the journal `path` finished.

    Records follow the environment that they were computed in, with the name of the journal that
    was written there as ``taken_from``. Equal tasks have equal results, so there is nothing to run;
    only tasks without a seed, which no run repeats, are left out. A neighbour that cannot be read
    is passed over, and so is a record that no environment precedes.
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
        taken = _with_environments(neighbour, found) if found else []
        entries += taken
        wanted -= {entry.task.key for entry in taken if isinstance(entry, Record)}
    return entries


def _with_environments(journal: Path, records: list[Record]) -> list[dict[str, Any] | Record]:
    """Return the records in their order, each environment before those that it holds for."""
    environments = _environments(journal)
    entries: list[dict[str, Any] | Record] = []
    last: dict[str, Any] | None = None
    for record in records:
        environment = environments.get(record.task.key)
        if environment is None:
            continue
        if environment is not last:
            # What the neighbour took over itself was computed for the journal named there.
            entries.append({"taken_from": journal.stem, **environment})
            last = environment
        entries.append(record)
    return entries


def _environments(journal: Path) -> dict[str, dict[str, Any]]:
    """Return by task key the environment that stands before a task's last record."""
    found: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] | None = None
    for line in journal.read_bytes().split(b"\n")[:-1]:
        try:
            fields = json.loads(line)
        except ValueError:
            continue  # torn by a crash; `read_journal` has dropped it, too
        if fields["kind"] == "environment":
            current = fields
        elif current is not None:
            found[Task.from_json(fields["task"]).key] = current
    return found
