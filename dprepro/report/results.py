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

TUNED = "parameters were chosen by `dprepro tune` on rows of this dataset"


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
        Whether every finished split has a ledger of its releases; without privacy there is none
        to keep.
    metric
        The metric that its config names; empty where unknown.
    data
        The name that it stands under where that is not the dataset's; see `dataset`.
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

    @property
    def is_unverified(self) -> bool:
        """Whether it stands at a privacy level that no ledger backs."""
        return math.isfinite(self.task.epsilon) and not self.keeps_ledger

    @property
    def is_tuned(self) -> bool:
        """Whether `dprepro tune` chose its parameters."""
        return self.task.tuned

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
    """All cells of some journals. `plans` has what is known of each journal's config, by name."""

    cells: tuple[ResultCell, ...]
    plans: Mapping[str, Plan] = field(default_factory=dict)
    _index: dict[tuple[str, str, float], list[ResultCell]] = field(
        default_factory=lambda: defaultdict(list), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for cell in self.cells:
            self._index[cell.dataset, cell.task.label, cell.task.epsilon].append(cell)

    def all(self, dataset: str, label: str, epsilon: float) -> list[ResultCell]:
        """Return every cell at these coordinates, whatever its other settings."""
        return self._index.get((dataset, label, epsilon), [])


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
    merged: dict[str, list[_Entry]] = defaultdict(list)
    known: dict[str, Plan] = {}
    for path in journal_paths(folder, configs):
        records, plan = current(read_journal(path), (plans or {}).get(path.stem))
        if plan is not None:
            known[path.stem] = plan
        planned = planned_splits(plan, records)
        for record in records:
            key = settings(record.task)
            merged[key].append(_Entry(record, path.stem, planned[record.task.key], plan))
    return Results(_told_apart([_cell(entries) for entries in merged.values()]), known)


def _told_apart(cells: Sequence[ResultCell]) -> tuple[ResultCell, ...]:
    """Name several data of one name, none of them built in, by the configs that hold them."""
    fingerprints: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for cell in cells:
        if cell.data not in builtin_names():
            journals = fingerprints[cell.data].setdefault(cell.task.data_fingerprint, [])
            journals += [name for name in cell.journals if name not in journals]
    names = {
        (data, fingerprint): f"{data}, as in {' and '.join(journals)}"
        for data, found in fingerprints.items()
        for fingerprint, journals in found.items()
        if len(found) > 1
    }
    return tuple(
        replace(cell, data=names.get((cell.data, cell.task.data_fingerprint), cell.data))
        for cell in cells
    )


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
        keeps_ledger=not any(record.is_unverified for record in finished),
        metric=next((e.plan.metric for e in entries if e.plan and e.plan.metric), ""),
        data=dataset_of(ordered[0].task, any(e.plan and e.plan.has_own_card for e in entries)),
    )


def _papers(entries: Sequence[_Entry]) -> frozenset[str] | None:
    known = [entry.papers for entry in entries if entry.papers is not None]
    return frozenset().union(*known) if len(known) == len(entries) else None


def _true_epsilon(records: Iterable[Record]) -> float | None:
    """Return the largest epsilon really spent; None unless every record of the cell states it."""
    spent = [None if r.is_unverified else (r.ledger or {}).get("true_epsilon") for r in records]
    known = [float(value) for value in spent if value is not None]
    return max(known) if known and len(known) == len(spent) else None
