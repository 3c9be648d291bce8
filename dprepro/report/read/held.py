"""Records as journals hold them, and cells made of the records of one journal or several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dprepro.experiment.record import Record, Task
from dprepro.privacy.standing import AuthorsWord
from dprepro.report.read.cell import ResultCell
from dprepro.report.read.datasets import builtin_names, dataset_of
from dprepro.report.read.ledgers import kept_ledger
from dprepro.report.read.plans import JournalPlan


@dataclass(frozen=True)
class HeldRecord:
    """A record, the journal it stands in, and what that journal's config asks for.

    `word` is what audits say of the code of its method, if that is one's own.
    """

    record: Record
    journal: str
    planned: int
    plan: JournalPlan | None
    word: AuthorsWord | None = None

    @property
    def papers(self) -> frozenset[str] | None:
        """What it answers to; None where its config is unknown."""
        if self.plan is None:
            return None
        return frozenset() if self.plan.paper is None else frozenset({self.plan.paper})

    @property
    def tables(self) -> frozenset[tuple[str, str]]:
        """The tables of that, as (document, table); empty where unknown."""
        plan = self.plan
        if plan is None or plan.paper is None or plan.table is None:
            return frozenset()
        return frozenset({(plan.paper, plan.table)})


@dataclass(frozen=True)
class HeldJournal:
    """A journal: the records that count, what its config asks for, and machines and versions."""

    name: str
    plan: JournalPlan | None
    entries: Sequence[HeldRecord]
    environments: Sequence[dict[str, Any]] = ()

    def planned(self) -> list[ResultCell]:
        """Return the cells of the plan that no record answers to.

        A plan has keys and no tasks. The other fields of a task are copied from another record, one
        of the same label if there is one.
        """
        if self.plan is None or not self.entries:
            return []
        held = {entry.record.task.key for entry in self.entries}
        # The first of each label; a grid has thousands of cells.
        first = {entry.record.task.label: entry for entry in reversed(self.entries)}
        return [
            self._planned(label, epsilon, len(keys), self.plan, first.get(label))
            for (label, epsilon), keys in (self.plan.cells or {}).items()
            if not held.intersection(keys)
        ]

    def _planned(
        self, label: str, epsilon: float, splits: int, plan: JournalPlan, same: HeldRecord | None
    ) -> ResultCell:
        like = same or self.entries[0]
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


def make_cell(entries: Sequence[HeldRecord]) -> ResultCell:
    """Make a cell; of several journals, with what each of them holds."""
    cell = _cell(entries)
    if len(cell.journals) == 1:
        return cell
    parts = {
        journal: _cell([entry for entry in entries if entry.journal == journal])
        for journal in cell.journals
    }
    return replace(cell, parts=parts)


def _cell(entries: Sequence[HeldRecord]) -> ResultCell:
    """Make a cell; the same task in two journals counts once.

    A finished record counts before a failed one, and one with more metrics before one with fewer.
    """
    records: dict[int, Record] = {}
    for record in (entry.record for entry in entries):
        known = records.get(record.task.split)
        if known is None or _says_more(record, known):
            records[record.task.split] = record
    ordered = [records[split] for split in sorted(records)]
    finished = [r for r in ordered if r.status == "ok"]
    metrics = dict.fromkeys(name for r in finished for name in r.metrics)
    having = {m: [r for r in finished if m in r.metrics] for m in metrics}
    absent = {name: why for r in finished for name, why in r.absent.items()}
    return ResultCell(
        task=ordered[0].task,
        journals=tuple(dict.fromkeys(entry.journal for entry in entries)),
        values={m: tuple(float(r.metrics[m]) for r in found) for m, found in having.items()},
        numbers={m: tuple(r.task.split for r in found) for m, found in having.items()},
        absent={name: why for name, why in absent.items() if name not in having},
        failed=sum(r.status == "failed" for r in ordered),
        skipped=sum(r.status == "skipped" for r in ordered),
        planned=max(entry.planned for entry in entries),
        papers=_papers(entries),
        tables=frozenset().union(*(entry.tables for entry in entries)),
        messages=tuple(dict.fromkeys(r.message for r in ordered if r.message)),
        spent_epsilon=_spent_epsilon(finished),
        keeps_ledger=not any(record.is_unverified for record in finished),
        word=AuthorsWord.worst(entry.word for entry in entries),
        metric=next((e.plan.metric for e in entries if e.plan and e.plan.metric), ""),
        data=dataset_of(ordered[0].task, any(e.plan and e.plan.has_own_card for e in entries)),
    )


def _says_more(record: Record, known: Record) -> bool:
    if record.status != "ok" or known.status != "ok":
        return record.status == "ok" and known.status != "ok"
    return record.metrics.keys() > known.metrics.keys()


def _papers(entries: Sequence[HeldRecord]) -> frozenset[str] | None:
    known = [entry.papers for entry in entries if entry.papers is not None]
    return frozenset().union(*known) if len(known) == len(entries) else None


def _spent_epsilon(records: Iterable[Record]) -> float | None:
    """Return the largest spent epsilon; None unless every record of the cell states it."""
    ledgers = [kept_ledger(record) for record in records]
    spent = [None if ledger is None else ledger.spent_epsilon for ledger in ledgers]
    known = [value for value in spent if value is not None]
    return max(known) if known and len(known) == len(spent) else None


def told_apart(cells: Sequence[ResultCell]) -> tuple[ResultCell, ...]:
    """Name different data of one name by their configs; built-in data keep their name."""
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
