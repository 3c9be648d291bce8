"""Pack finished journals, unpack them, and join those of several machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprepro.durable import appearing_complete
from dprepro.errors import DpreproError
from dprepro.experiment.journal import (
    Journal,
    entries,
    is_packed,
    journal_files,
    read_bytes,
    refuse_two_forms,
)
from dprepro.experiment.mending import examine
from dprepro.experiment.packed import SUFFIX, packed
from dprepro.experiment.record import Record
from dprepro.experiment.stated import StatedPlan


def pack(path: Path) -> Path | None:
    """Put a packed journal in the place of one of lines, and return its path.

    None if it is packed already. The lines go when the packed file is on the disk and was unpacked
    once, to the same bytes.

    Raises
    ------
    DpreproError
        If a line is not as it was written, no run has ended the journal, one writes it, a packed
        one of other records is beside it, or a file cannot be read or written.
    """
    if is_packed(path):
        return None
    found = examine(path)  # before it is locked, as a run that goes on lacks an end, too
    if found.problems:
        number, text = found.problems[0]
        raise DpreproError(
            f"{path}, line {number}: {text}. Only sound journals are packed: "
            f"`dprepro results verify {path.stem}` names all that is wrong"
        )
    with Journal(path):  # no run begins meanwhile
        raw, into = read_bytes(path), path.with_suffix(SUFFIX)
        refuse_two_forms(path, raw)
        with appearing_complete(into) as unfinished:
            unfinished.write_bytes(packed(raw))
            unfinished.chmod(path.stat().st_mode & 0o777)
    _remove(path, raw)
    return into


def unpack(path: Path) -> Path | None:
    """Put a journal of lines in the place of a packed one, and return its path.

    None if it is one of lines already. The lines are those that were packed, byte for byte.

    Raises
    ------
    DpreproError
        If a file cannot be read or written.
    """
    if not is_packed(path):
        return None
    into = path.with_suffix(".jsonl")
    with Journal(into):  # no run begins meanwhile
        raw = read_bytes(path)
        with appearing_complete(into) as unfinished:
            unfinished.write_bytes(raw)
            unfinished.chmod(path.stat().st_mode & 0o777)
        path.unlink()
    return into


def _remove(path: Path, raw: bytes) -> None:
    """Remove a file, unless a run that began just now has added to it."""
    if read_bytes(path) == raw:
        path.unlink()


@dataclass(frozen=True)
class Merged:
    """What became of the journals of one config.

    Attributes
    ----------
    name, folders
        The config, and how many folders have a journal of it.
    records
        Number of tasks with a record.
    repeated, differing
        Number of tasks that finished in several folders, and of those whose metrics differ there.
    """

    name: str
    folders: int
    records: int
    repeated: int
    differing: int


def merge(folders: Sequence[Path], into: Path) -> list[Merged]:
    """Join the journals of several folders in a new one, by config.

    Of a task that finished in several folders, the record of the first counts. One that failed
    gives way to one that finished. Each record follows the environment that it was computed in.

    Raises
    ------
    DpreproError
        If a folder has no journals, `into` has any, the plans of a config differ, or a file cannot
        be read or written.
    """
    held = [journal_files(folder) for folder in folders]
    for folder, found in zip(folders, held, strict=True):
        if not found:
            raise DpreproError(f"{folder}: no journals (*.jsonl, *.parquet) are in this folder")
    if journal_files(into):
        raise DpreproError(f"--into {into}: has journals already; name a new folder")
    names = sorted({name for found in held for name in found})
    return [_merge(name, [found[name] for found in held if name in found], into) for name in names]


def _merge(name: str, paths: Sequence[Path], into: Path) -> Merged:
    contents = [read_bytes(path) for path in paths]
    for path, raw in zip(paths, contents, strict=True):
        refuse_two_forms(path, raw)
    sources = [
        [entry for _, entry in entries(raw, path)]
        for path, raw in zip(paths, contents, strict=True)
    ]
    best: dict[str, Record] = {}
    repeated: set[str] = set()
    differing: set[str] = set()
    for entry in (entry for source in sources for entry in source):
        if not isinstance(entry, Record):
            continue
        key, known = entry.task.key, best.get(entry.task.key)
        if known is None or (known.status != "ok" and entry.status == "ok"):
            best[key] = entry
        elif known.status == entry.status == "ok":
            repeated.add(key)
            if dict(known.metrics) != dict(entry.metrics):
                differing.add(key)
    with Journal(into / f"{name}.jsonl") as journal:
        plan = _plan(name, paths, sources)
        if plan is not None:
            journal.append(plan)
        for source in sources:
            environment: dict[str, Any] | None = None
            for entry in source:
                if isinstance(entry, Record):
                    if best.get(entry.task.key) is entry:
                        if environment is not None:
                            journal.append(environment)
                            environment = None
                        journal.append(entry)
                elif not isinstance(entry, StatedPlan) and entry["kind"] == "environment":
                    environment = entry
    return Merged(name, len(paths), len(best), len(repeated), len(differing))


def _plan(name: str, paths: Sequence[Path], sources: Sequence[Sequence[Any]]) -> StatedPlan | None:
    plans = [[entry for entry in source if isinstance(entry, StatedPlan)] for source in sources]
    stated = [(path, found[-1]) for path, found in zip(paths, plans, strict=True) if found]
    for path, plan in stated[1:]:
        if not plan.agrees_with(stated[0][1]):
            raise DpreproError(
                f"{stated[0][0]} and {path} have other plans of {name}: the config changed "
                "between their runs. Run the older one again, or leave its folder out"
            )
    return stated[-1][1] if stated else None
