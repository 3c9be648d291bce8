"""From a folder of journals to cells: one method on one dataset at one privacy level."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dprepro.errors import DpreproError, nearest
from dprepro.experiment.journal import read_journal
from dprepro.experiment.record import Record, Task


@dataclass(frozen=True)
class Plan:
    """What a journal's config asks for: how many splits, and the printed table it answers to."""

    splits: int
    paper: str | None
    table: str | None = None


@dataclass(frozen=True)
class ResultCell:
    """The finished splits of one cell.

    Attributes
    ----------
    task
        Any one of the cell's tasks; all of them agree in everything but the split.
    journals
        Names of the journals that hold it.
    values
        By metric, one value a finished split, in the order of the splits.
    failed, skipped
        Number of splits that ended so.
    planned
        Number of splits that make the cell complete.
    papers
        The documents that its configs answer to; None where the configs are unknown.
    tables
        The tables of those documents, as (document, table); empty where unknown.
    messages
        The distinct errors and reasons of failed and skipped splits.
    true_epsilon
        The epsilon really spent, as the ledger recomposes it (the largest over the splits), or
        None where the records hold none.
    keeps_ledger
        Whether every finished split has a ledger; without privacy there is none to keep.
    """

    task: Task
    journals: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]
    failed: int = 0
    skipped: int = 0
    planned: int = 1
    papers: frozenset[str] | None = None
    tables: frozenset[tuple[str, str]] = frozenset()
    messages: tuple[str, ...] = ()
    true_epsilon: float | None = None
    keeps_ledger: bool = True

    @property
    def is_unverified(self) -> bool:
        """Whether it stands at a privacy level that no ledger backs."""
        return math.isfinite(self.task.epsilon) and not self.keeps_ledger

    def splits(self, metric: str) -> int:
        """Return the number of finished splits that have this metric."""
        return len(self.values.get(metric, ()))

    def is_complete(self, metric: str, planned: int | None = None) -> bool:
        """Whether all planned splits finished; `planned` overrides the cell's own number."""
        return self.splits(metric) >= (planned or self.planned)

    def mean(self, metric: str) -> float:
        """Return the mean over the finished splits."""
        return statistics.fmean(self.values[metric])

    def sd(self, metric: str) -> float | None:
        """Return the sample standard deviation (ddof 1) over splits; None for a single one."""
        values = self.values[metric]
        return statistics.stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Results:
    """All cells of some journals. `notes` says what was left out and why."""

    cells: tuple[ResultCell, ...]
    notes: tuple[str, ...] = ()
    _index: dict[tuple[str, str, float], list[ResultCell]] = field(
        default_factory=lambda: defaultdict(list), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for cell in self.cells:
            self._index[cell.task.dataset, cell.task.label, cell.task.epsilon].append(cell)

    def all(self, dataset: str, label: str, epsilon: float) -> list[ResultCell]:
        """Return every cell at these coordinates, whatever its other settings."""
        return self._index.get((dataset, label, epsilon), [])


def only(cells: Sequence[ResultCell]) -> ResultCell | None:
    """Return the only cell, None if there is none; `DpreproError` if there are several."""
    if len(cells) < 2:
        return cells[0] if cells else None
    first, second = cells[0].task, cells[1].task
    ours, theirs = first.to_json(), second.to_json()
    names = [name for name in ours if name != "split" and ours[name] != theirs[name]]
    differences = ", ".join(f"{name} {ours[name]!r} against {theirs[name]!r}" for name in names)
    raise DpreproError(
        f"{first.dataset}, {first.label}: two results with different settings ({differences}), "
        f"in {' and '.join(_names(cell) for cell in cells[:2])}. "
        "Choose one with --config, or give one of them a label of its own in its config."
    )


def read_results(
    folder: Path,
    configs: Sequence[str] = (),
    plans: Mapping[str, Plan] | None = None,
) -> Results:
    """Read the journals of `folder`: all, or those of the configs named.

    Parameters
    ----------
    plans
        By journal, what its config asks for. Where unknown, a complete cell has as many splits as
        the fullest of the same dataset in the same journal.

    Raises
    ------
    DpreproError
        If the folder, its journals or a named one is missing.

    Examples
    --------
    >>> results = read_results(Path("results"), ["telco"])  # in a clone
    >>> {cell.task.dataset for cell in results.cells}
    {'telco'}
    """
    merged: dict[str, list[_Entry]] = defaultdict(list)
    notes = []
    for path in journal_paths(folder, configs):
        records = read_journal(path).records
        current = current_records(records)
        if len(current) < len(records):
            notes.append(
                f"{path.name}: {len(records) - len(current)} records of settings that later "
                "ones under the same label replace are left out"
            )
        fullest = _fullest(current)
        plan = (plans or {}).get(path.stem)
        for record in current:
            splits = plan.splits if plan else fullest[record.task.dataset]
            merged[_settings(record.task)].append(_Entry(record, path.stem, splits, plan))
    return Results(tuple(_cell(entries) for entries in merged.values()), tuple(notes))


def journal_paths(folder: Path, configs: Sequence[str] = ()) -> list[Path]:
    """Return the journals of `folder`, sorted, or those of the configs named.

    Raises
    ------
    DpreproError
        If the folder has no journals, or not the one of a named config.
    """
    paths = {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
    if not paths:
        raise DpreproError(
            f"no journals (*.jsonl) in {folder}: `dprepro run CONFIG` writes them, "
            "--results DIR names another folder"
        )
    for name in configs:
        if name not in paths:
            raise DpreproError(
                f"no journal of config {name!r} in {folder}{nearest(name, list(paths)) or '.'} "
                f"There are: {', '.join(paths)}. `dprepro run {name}` writes it."
            )
    return [paths[name] for name in dict.fromkeys(configs)] if configs else list(paths.values())


@dataclass(frozen=True)
class _Entry:
    """A record, the journal it stands in, and what that journal's config asks for."""

    record: Record
    journal: str
    planned: int
    plan: Plan | None

    @property
    def papers(self) -> frozenset[str] | None:
        if self.plan is None:
            return None
        return frozenset() if self.plan.paper is None else frozenset({self.plan.paper})

    @property
    def tables(self) -> frozenset[tuple[str, str]]:
        plan = self.plan
        if plan is None or plan.paper is None or plan.table is None:
            return frozenset()
        return frozenset({(plan.paper, plan.table)})


def _settings(task: Task) -> str:
    """Return a string that the tasks of one cell share, and only they: all but the split."""
    fields = {k: v for k, v in task.to_json().items() if k != "split"}
    return json.dumps(fields, sort_keys=True)


def current_records(records: Sequence[Record]) -> list[Record]:
    """Keep, of several settings under one label in one journal, those of the last record.

    They differ when a config was edited, or a method or its data got a new version, and the run
    was repeated into the same journal.
    """
    latest = {_coordinates(r.task): _settings(r.task) for r in records}
    return [r for r in records if latest[_coordinates(r.task)] == _settings(r.task)]


def _coordinates(task: Task) -> tuple[str, str, float]:
    return task.dataset, task.label, task.epsilon


def _fullest(records: Sequence[Record]) -> dict[str, int]:
    splits: dict[str, set[int]] = defaultdict(set)
    for record in records:
        splits[record.task.dataset].add(record.task.split)
    return {dataset: len(found) for dataset, found in splits.items()}


def _cell(entries: Sequence[_Entry]) -> ResultCell:
    """Make a cell; the same task in two journals counts once, a finished one before a failed."""
    records: dict[int, Record] = {}
    for record in (entry.record for entry in entries):
        known = records.get(record.task.split)
        if known is None or (known.status != "ok" and record.status == "ok"):
            records[record.task.split] = record
    ordered = [records[split] for split in sorted(records)]
    finished = [r for r in ordered if r.status == "ok"]
    metrics = dict.fromkeys(name for r in finished for name in r.metrics)
    return ResultCell(
        task=ordered[0].task,
        journals=tuple(dict.fromkeys(entry.journal for entry in entries)),
        values={m: tuple(float(r.metrics[m]) for r in finished if m in r.metrics) for m in metrics},
        failed=sum(r.status == "failed" for r in ordered),
        skipped=sum(r.status == "skipped" for r in ordered),
        planned=max(entry.planned for entry in entries),
        papers=_papers(entries),
        tables=frozenset().union(*(entry.tables for entry in entries)),
        messages=tuple(dict.fromkeys(r.message for r in ordered if r.message)),
        true_epsilon=_true_epsilon(finished),
        keeps_ledger=all(record.ledger is not None for record in finished),
    )


def _papers(entries: Sequence[_Entry]) -> frozenset[str] | None:
    known = [entry.papers for entry in entries if entry.papers is not None]
    return frozenset().union(*known) if len(known) == len(entries) else None


def _true_epsilon(records: Iterable[Record]) -> float | None:
    """Return the largest epsilon really spent; None unless every record of the cell states it."""
    spent = [(r.ledger or {}).get("true_epsilon") for r in records]
    known = [float(value) for value in spent if value is not None]
    return max(known) if known and len(known) == len(spent) else None


def _names(cell: ResultCell) -> str:
    return "+".join(cell.journals)
