"""From a folder of journals to cells: one method on one dataset at one privacy level."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dprepro.errors import DpreproError, nearest
from dprepro.experiment.journal import read_journal
from dprepro.experiment.record import Record, Task
from dprepro.report.datasets import builtin_names, dataset_of
from dprepro.report.plans import Plan, current, planned_splits, settings


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
    metric
        The metric that its config names; empty where unknown.
    data
        The name that it stands under where that is not the dataset's; see `dataset`.
    parts
        Of a cell that several journals hold, what each one's config asks for, by journal.
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
    metric: str = ""
    data: str = ""
    parts: Mapping[str, ResultCell] = field(default_factory=dict, repr=False)

    @property
    def has_records(self) -> bool:
        """Whether any split has a record; if none, only label and epsilon of `task` are known."""
        return bool(self.values or self.failed or self.skipped)

    def part(self, journal: str) -> ResultCell:
        """Return what one of `journals` holds: exactly the records that its config asks for."""
        return self.parts.get(journal, self)

    @property
    def is_unverified(self) -> bool:
        """Whether it stands at a privacy level that no ledger backs."""
        return math.isfinite(self.task.epsilon) and not self.keeps_ledger

    @property
    def dataset(self) -> str:
        """The name of its data: that of the card, told apart from others of the same name."""
        return self.data or dataset_of(self.task)

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
    """All cells of some journals.

    Attributes
    ----------
    cells
        What there are records of.
    plans
        What is known of each journal's config, by name.
    planned
        What a config asks for and none of its journal's records answers. A journal without any
        record that counts does not tell its dataset, and has none of these.
    """

    cells: tuple[ResultCell, ...]
    plans: Mapping[str, Plan] = field(default_factory=dict)
    planned: tuple[ResultCell, ...] = ()
    _read: tuple[_Journal, ...] = field(default=(), repr=False, compare=False)
    _index: dict[tuple[str, str, float], list[ResultCell]] = field(
        default_factory=lambda: defaultdict(list), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for cell in self.cells:
            self._index[cell.dataset, cell.task.label, cell.task.epsilon].append(cell)

    @property
    def journals(self) -> tuple[str, ...]:
        """The names of all journals that were read, those without a record included."""
        held = (name for cell in self.cells for name in cell.journals)
        return tuple(dict.fromkeys([*(journal.name for journal in self._read), *held]))

    @property
    def datasets(self) -> frozenset[str]:
        """The names of all data, those of their cards included."""
        return frozenset(n for cell in self.cells for n in (cell.dataset, cell.task.dataset))

    def all(self, dataset: str, label: str, epsilon: float) -> list[ResultCell]:
        """Return every cell at these coordinates, whatever its other settings."""
        return self._index.get((dataset, label, epsilon), [])

    def of(self, journal: str) -> Results:
        """Return the results of one of `journals` alone, as if no other had been read."""
        return _assemble([found for found in self._read if found.name == journal])

    def of_datasets(self, names: Sequence[str]) -> Results:
        """Return the results of the data of these names, as the card has them or as told apart.

        Raises
        ------
        DpreproError
            If there are none of one of them.
        """
        measured = list(dict.fromkeys(cell.dataset for cell in self.cells))
        for name in names:
            if name not in self.datasets:
                raise DpreproError(
                    f"no results of dataset {name!r}{nearest(name, measured) or '.'} "
                    f"There are: {', '.join(measured)}"
                )
        cells, planned = (
            tuple(cell for cell in found if {cell.dataset, cell.task.dataset} & set(names))
            for found in (self.cells, self.planned)
        )
        return Results(cells, self.plans, planned, self._read)


def read_results(
    folder: Path,
    configs: Sequence[str] = (),
    plans: Mapping[str, Plan] | None = None,
) -> Results:
    """Read the journals of `folder`, all or those of the configs named: what their plans ask for.

    Parameters
    ----------
    plans
        What the configs of journals that state no plan ask for, by journal, as far as is known.
        Otherwise the last of several settings under a label counts, and a complete cell has as
        many splits as the fullest of the same dataset in the same journal.

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
    journals = []
    for path in journal_paths(folder, configs):
        records, plan = current(read_journal(path), (plans or {}).get(path.stem))
        planned = planned_splits(plan, records)
        entries = [_Entry(record, path.stem, planned[record.task.key], plan) for record in records]
        journals.append(_Journal(path.stem, plan, entries))
    return _assemble(journals)


def _assemble(journals: Sequence[_Journal]) -> Results:
    merged: dict[str, list[_Entry]] = defaultdict(list)
    for journal in journals:
        for entry in journal.entries:
            merged[settings(entry.record.task)].append(entry)
    cells = [_cell_with_parts(entries) for entries in merged.values()]
    planned = [cell for journal in journals for cell in journal.planned()]
    named = _told_apart([*cells, *planned])
    return Results(
        named[: len(cells)],
        {journal.name: journal.plan for journal in journals if journal.plan is not None},
        named[len(cells) :],
        tuple(journals),
    )


def _told_apart(cells: Sequence[ResultCell]) -> tuple[ResultCell, ...]:
    """Name several data of one name, none of them built in, by the configs that hold them."""
    fingerprints: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for cell in cells:
        if cell.data not in builtin_names():
            journals = fingerprints[cell.data].setdefault(_rows(cell.task), [])
            journals += [name for name in cell.journals if name not in journals]
    names = {
        (data, rows): f"{data} (as in {' and '.join(journals)})"
        for data, found in fingerprints.items()
        for rows, journals in found.items()
        if len(found) > 1
    }
    return tuple(
        _named(cell, names.get((cell.data, _rows(cell.task)), cell.data)) for cell in cells
    )


def _rows(task: Task) -> str:
    """Return the fingerprint of the data without that of the donors' own test rows."""
    return task.data_fingerprint.partition("+")[0]


def _named(cell: ResultCell, data: str) -> ResultCell:
    parts = {journal: replace(part, data=data) for journal, part in cell.parts.items()}
    return replace(cell, data=data, parts=parts)


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


@dataclass(frozen=True)
class _Journal:
    """A journal: the records that count, and what its config asks for."""

    name: str
    plan: Plan | None
    entries: Sequence[_Entry]

    def planned(self) -> list[ResultCell]:
        """Return the cells of the plan that no record answers to.

        A plan has keys, not tasks: dataset and the like are those of another record, of the same
        label if there is one.
        """
        if self.plan is None or not self.entries:
            return []
        held = {entry.record.task.key for entry in self.entries}
        return [
            self._planned(label, epsilon, len(keys), self.plan)
            for (label, epsilon), keys in (self.plan.cells or {}).items()
            if not held.intersection(keys)
        ]

    def _planned(self, label: str, epsilon: float, splits: int, plan: Plan) -> ResultCell:
        same = [entry for entry in self.entries if entry.record.task.label == label]
        like = (same or self.entries)[0]
        task = replace(like.record.task, label=label, epsilon=epsilon, split=0)
        return ResultCell(
            task if same else replace(task, method="", params={}),
            (self.name,),
            {},
            planned=splits,
            papers=like.papers,
            tables=like.tables,
            metric=plan.metric,
            data=dataset_of(task, plan.has_own_card),
        )


def _cell_with_parts(entries: Sequence[_Entry]) -> ResultCell:
    """Make a cell; of several journals, with what each of them holds."""
    cell = _cell(entries)
    if len(cell.journals) == 1:
        return cell
    parts = {
        journal: _cell([entry for entry in entries if entry.journal == journal])
        for journal in cell.journals
    }
    return replace(cell, parts=parts)


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
        metric=next((e.plan.metric for e in entries if e.plan and e.plan.metric), ""),
        data=dataset_of(ordered[0].task, any(e.plan and e.plan.has_own_card for e in entries)),
    )


def _papers(entries: Sequence[_Entry]) -> frozenset[str] | None:
    known = [entry.papers for entry in entries if entry.papers is not None]
    return frozenset().union(*known) if len(known) == len(entries) else None


def _true_epsilon(records: Iterable[Record]) -> float | None:
    """Return the largest epsilon really spent; None unless every record of the cell states it."""
    spent = [(r.ledger or {}).get("true_epsilon") for r in records]
    known = [float(value) for value in spent if value is not None]
    return max(known) if known and len(known) == len(spent) else None
