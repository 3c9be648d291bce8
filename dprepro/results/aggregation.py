"""Cells made of the records of one journal or several: of those that answer to a config's plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dprepro.experiment.changed_code import TaskLedger
from dprepro.experiment.packed import STATUSES, RecordTable
from dprepro.experiment.plan_record import StatedPlan
from dprepro.experiment.record import Record, Task
from dprepro.privacy.guarantee_status import AuthorsWord, is_unverified
from dprepro.results.audits import WordsOf, kept_ledger_of
from dprepro.results.result_cell import ByMetric, ResultCell, builtin_names, dataset_of

_Told = TypeVar("_Told")
_OK, _FAILED, _SKIPPED = (STATUSES.index(status) for status in ("ok", "failed", "skipped"))


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
    has_own_card, looks
        As in `HeldJournal`.
    """

    splits: int
    paper: str | None
    table: str | None = None
    title: str = ""
    metric: str = ""
    cells: Mapping[tuple[str, float], Sequence[str]] | None = field(default=None, repr=False)
    has_own_card: bool = False
    looks: tuple[int, ...] = ()

    @classmethod
    def stated(cls, plan: StatedPlan) -> JournalPlan:
        """Return what a plan line says."""
        printed = plan.published
        return cls(
            plan.splits,
            printed.paper if printed else None,
            printed.table if printed else None,
            plan.title,
            plan.metric,
            {(cell.label, cell.epsilon): cell.keys for cell in plan.cells},
            not plan.builtin_card,
            printed.looks if printed else (),
        )


def current(
    stated: StatedPlan | None, table: RecordTable, assumed: JournalPlan | None = None
) -> tuple[NDArray[np.intp], JournalPlan | None]:
    """Return the rows that the config asked for last, in its order, and the plan that says so.

    Parameters
    ----------
    stated
        The plan that the journal states last.
    assumed
        What the config asks for, as far as is known, where the journal states no plan. If the
        journal holds none of its keys, it is older or another config's, and the keys are left out.

    Returns
    -------
    Rows of `table`, integers (number of tasks,), of several records of a task the last; the plan.
    """
    plan = JournalPlan.stated(stated) if stated else assumed
    if plan is not None and plan.cells is not None:
        keys = [key for found in plan.cells.values() for key in found]
        asked = table.last_of_each(table.positions(keys), len(keys))
        if asked.size or stated:
            return asked, plan
        plan = replace(plan, cells=None)
    return _last_of_each_label(table), plan


def planned_splits(
    plan: JournalPlan | None, table: RecordTable, rows: NDArray[np.intp]
) -> dict[int, int]:
    """Return, by position of a task in the table, how many splits make its cell complete.

    Where no plan says, as many as the fullest cell of the same dataset has.
    """
    present = np.flatnonzero(np.bincount(table.task[rows])).tolist()
    fullest: dict[str, set[int]] = defaultdict(set)
    if plan is None:
        for position in present:
            splits = table.split[rows][table.task[rows] == position]
            fullest[table.tasks[position].dataset].update(splits.tolist())
    found = {}
    for position in present:
        task = table.tasks[position]
        keys = (plan.cells or {}).get((task.label, task.epsilon)) if plan else None
        known = plan.splits if plan else len(fullest[task.dataset])
        found[position] = len(keys) if keys else known
    return found


def _last_of_each_label(table: RecordTable) -> NDArray[np.intp]:
    """Keep, of several settings under one label, those of the last record."""
    labels: dict[tuple[str, str, float], int] = {}
    places = [(task.dataset, task.label, task.epsilon) for task in table.tasks]
    label = np.array([labels.setdefault(place, len(labels)) for place in places], np.intp)
    rows = table.last
    latest = np.full(len(labels), -1, np.int64)
    latest[label[table.task[rows]]] = table.task[rows]  # the last of equal positions stays
    return rows[latest[label[table.task[rows]]] == table.task[rows]]


@dataclass(frozen=True)
class HeldJournal:
    """A journal: the records that count, what its config asks for, and machines and versions.

    `table` has all its records, `rows` are those that count, in the order of the plan, integers
    (n,). `words` are what audits say of the code of methods of one's own.
    """

    name: str
    plan: JournalPlan | None
    table: RecordTable
    rows: NDArray[np.intp]
    words: WordsOf
    environments: Sequence[dict[str, Any]] = ()

    @property
    def records(self) -> Iterator[Record]:
        """The records that count."""
        return self.table.records(self.rows)

    @cached_property
    def names_code(self) -> NDArray[np.bool_]:
        """Of each ledger of the table, and of none, whether a method of one's own wrote it."""
        return np.array([*(bool(found.get("code")) for found in self.table.ledgers), False])

    @property
    def own_ledgers(self) -> Iterator[TaskLedger]:
        """Of the records that count, those with the ledger of a method of one's own."""
        table, names_code = self.table, self.names_code
        for row in self.rows[names_code[table.ledger[self.rows]]].tolist():
            yield table.tasks[table.task[row]], table.ledger_of(row)

    @property
    def has_own_card(self) -> bool:
        """Whether the card of its dataset is known not to be built in."""
        return self.plan is not None and self.plan.has_own_card

    @property
    def metric(self) -> str:
        """The metric that its config names; empty where unknown."""
        return "" if self.plan is None else self.plan.metric

    @property
    def papers(self) -> frozenset[str] | None:
        """What its config answers to; None where its config is unknown."""
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

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many splits verdicts are looked at, where it adds splits to another's."""
        return self.plan.looks if self.plan else ()

    @cached_property
    def parts(self) -> Sequence[Part]:
        """What it holds of each cell."""
        planned = planned_splits(self.plan, self.table, self.rows)
        codes = self.table.task[self.rows]
        order = np.argsort(codes, kind="stable")
        found, starts = np.unique(codes[order], return_index=True)
        groups = np.split(self.rows[order], starts[1:]) if found.size else []
        parts = [
            Part(self, self.table.tasks[code], rows, planned[int(code)], int(order[start]))
            for code, start, rows in zip(found, starts, groups, strict=True)
        ]
        return sorted(parts, key=lambda part: part.place)

    @cached_property
    def planned(self) -> Sequence[ResultCell]:
        """The cells of the plan that no record answers to.

        A plan has keys and no tasks. The other fields of a task are copied from another record, one
        of the same label if there is one.
        """
        if self.plan is None or not self.rows.size:
            return []
        cells = self.plan.cells or {}
        keys = [key for found in cells.values() for key in found]
        owner = np.repeat(np.arange(len(cells)), [len(found) for found in cells.values()])
        places = self.table.positions(keys)
        answered = set(owner[places[places >= 0]].tolist())
        # The first of each label; a grid has thousands of cells.
        first = {part.task.label: part.task for part in reversed(self.parts)}
        other = replace(self.parts[0].task, method="", params={})
        data = dataset_of(other, self.has_own_card)
        return [
            ResultCell(
                replace(first.get(label, other), label=label, epsilon=epsilon, split=0),
                (self.name,), {}, planned=len(found), papers=self.papers, tables=self.tables,
                metric=self.metric, data=data,
            )
            for number, ((label, epsilon), found) in enumerate(cells.items())
            if number not in answered
        ]  # fmt: skip


@dataclass(frozen=True)
class Part:
    """What one journal holds of a cell: the task of any split, and rows of its table (n integers).

    `planned` splits make the cell complete. `place` is where the first of its records stands among
    those that count.
    """

    journal: HeldJournal
    task: Task
    rows: NDArray[np.intp]
    planned: int
    place: int

    @cached_property
    def alone(self) -> ResultCell:
        """The cell as if no other journal held it: made once, also where others join."""
        return _cell([self])


def make_cell(parts: Sequence[Part]) -> ResultCell:
    """Make a cell; of several journals, with what each of them holds.

    What journals with `looks` add is apart (`ResultCell.more`) from the splits of the others. What
    journals without a document add is left out of what answers to printed cells
    (`ResultCell.answering`).
    """
    if len(parts) == 1:
        looks, cell = parts[0].journal.looks, parts[0].alone
        return replace(cell, looks=looks) if looks else cell
    own = [part for part in parts if not part.journal.looks]
    cell = _cell(own or parts)
    adding: dict[str, list[Part]] = {}
    for part in parts:
        for paper, _ in part.journal.tables if part.journal.looks else ():
            adding.setdefault(paper, []).append(part)
    more = {
        paper: replace(
            _cell([*own, *found]),
            looks=max((part.journal.looks for part in found), key=lambda looks: looks[-1]),
            papers=frozenset({paper}),
        )
        for paper, found in adding.items()
    }
    answering = [part for part in parts if part.journal.papers != frozenset()]
    return replace(
        cell,
        parts={part.journal.name: part.alone for part in parts},
        printed=make_cell(answering) if 0 < len(answering) < len(parts) else None,
        looks=() if own else next(iter(more.values())).looks,
        more=more,
    )


def _cell(parts: Sequence[Part]) -> ResultCell:
    """Make a cell; of a task in two journals the record counts that says more (`_says`)."""
    counting = _counting(parts)
    finished = [
        (table, rows if table.all_finished else rows[table.status[rows] == _OK])
        for table, rows in counting
    ]
    measured = _Measured(finished)
    values = ByMetric(measured.names, measured.values)
    task, with_ledgers = parts[0].task, list(_one_of_each_ledger(finished))
    return ResultCell(
        task=task,
        journals=tuple(part.journal.name for part in parts),
        values=values,
        numbers=ByMetric(measured.names, measured.splits),
        absent={
            name: why
            for told in _in_order(finished, lambda table: table.absent)
            for name, why in told.items()
            if name not in values
        },
        failed=_number_of(_FAILED, counting),
        skipped=_number_of(_SKIPPED, counting),
        planned=max(part.planned for part in parts),
        papers=_papers(parts),
        tables=frozenset().union(*(part.journal.tables for part in parts)),
        messages=tuple(dict.fromkeys(_in_order(counting, lambda table: table.messages))),
        spent_epsilon=_spent_epsilon(with_ledgers),
        keeps_ledger=not any(
            is_unverified(task.epsilon, table.ledger_of(row)) for table, row in with_ledgers
        ),
        word=AuthorsWord.worst(word for part in parts for word in _words(part)),
        metric=next((metric for part in parts if (metric := part.journal.metric)), ""),
        data=dataset_of(task, any(part.journal.has_own_card for part in parts)),
    )


_Counting = Sequence[tuple[RecordTable, NDArray[np.intp]]]
"""Tables, and of each the rows that count."""


def _number_of(status: int, counting: _Counting) -> int:
    others = [(table, rows) for table, rows in counting if not table.all_finished]
    return sum(int((table.status[rows] == status).sum()) for table, rows in others)


class _Measured:
    """The metrics of finished records, in the order of the splits."""

    def __init__(self, finished: _Counting) -> None:
        self._finished = [(table, rows) for table, rows in finished if rows.size]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The metrics that any record has."""
        known = dict.fromkeys(name for table, _ in self._finished for name in table.metrics)
        there = {name for table, rows in self._finished for name in _measured(table, rows)}
        return tuple(name for name in known if name in there)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self._splits, kind="stable")

    @cached_property
    def _splits(self) -> NDArray[np.int64]:
        return np.concatenate([table.split[rows] for table, rows in self._finished])

    def _figures(self, name: str) -> NDArray[np.float64]:
        found = [_column(table, name, rows) for table, rows in self._finished]
        return np.concatenate(found)[self._order]

    def values(self, name: str) -> tuple[float, ...]:
        """Return the values of a metric."""
        figures = self._figures(name)
        return tuple(figures[~np.isnan(figures)].tolist())

    def splits(self, name: str) -> tuple[int, ...]:
        """Return the splits that they are of."""
        return tuple(self._splits[self._order][~np.isnan(self._figures(name))].tolist())


def _measured(table: RecordTable, rows: NDArray[np.intp]) -> Iterator[str]:
    """Yield the metrics that any of these rows has."""
    yield from table.complete
    others = [name for name in table.metrics if name not in table.complete]
    if others:
        yield from (name for name in others if not np.isnan(table.metrics[name][rows]).all())


def _counting(parts: Sequence[Part]) -> _Counting:
    """Return one row for each split, of the journal that says most of it."""
    if len(parts) == 1:
        return [(parts[0].journal.table, parts[0].rows)]
    best: dict[int, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        table = part.journal.table
        for row in part.rows.tolist():
            split = int(table.split[row])
            known = best.get(split)
            if known is None or _says(table, row) > _says(parts[known[0]].journal.table, known[1]):
                best[split] = number, row
    return [
        (part.journal.table, np.array([r for n, r in best.values() if n == number], np.intp))
        for number, part in enumerate(parts)
    ]


def _says(table: RecordTable, row: int) -> set[str]:
    """Return "ok" and the metrics of a finished record; of another one nothing."""
    measured = {name for name, values in table.metrics.items() if values[row] == values[row]}
    return {"ok", *measured} if table.status[row] == _OK else set()


def _column(table: RecordTable, name: str, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    return table.metrics[name][rows] if name in table.metrics else np.full(rows.size, np.nan)


def _in_order(counting: _Counting, of: Callable[[RecordTable], Mapping[int, _Told]]) -> list[_Told]:
    """Return what some rows say, in the order of their splits."""
    found = [
        (int(table.split[row]), told[row])
        for table, rows in counting
        if (told := of(table))
        for row in rows.tolist()
        if row in told
    ]
    return [told for _, told in sorted(found, key=lambda each: each[0])]


def _papers(parts: Sequence[Part]) -> frozenset[str] | None:
    known = [part.journal.papers for part in parts if part.journal.papers is not None]
    return frozenset().union(*known) if len(known) == len(parts) else None


def _one_of_each_ledger(finished: _Counting) -> Iterator[tuple[RecordTable, int]]:
    """Yield a row of each distinct ledger; rows without one count as one more."""
    for table, rows in finished:
        codes = table.ledger[rows]
        if codes.size and (codes == codes[0]).all():  # as nearly always
            yield table, int(rows[0])
            continue
        for row in np.unique(codes, return_index=True)[1].tolist():
            yield table, int(rows[row])


def _words(part: Part) -> Iterator[AuthorsWord | None]:
    table = part.journal.table
    if not part.journal.names_code.any():  # as nearly always
        return
    for _, row in _one_of_each_ledger([(table, part.rows)]):
        ledger = table.ledger_of(row)
        yield part.journal.words.of(part.task.method, ledger.get("code")) if ledger else None


def _spent_epsilon(with_ledgers: Sequence[tuple[RecordTable, int]]) -> float | None:
    """Return the largest spent epsilon; None unless every record of the cell states it."""
    ledgers = [kept_ledger_of(table, row) for table, row in with_ledgers]
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
        cell if (name := names.get((cell.data, _rows(cell.task)))) is None else _named(cell, name)
        for cell in cells
    )


def _rows(task: Task) -> str:
    """Return the fingerprint of the data without that of the donors' own test rows."""
    return task.data_fingerprint.partition("+")[0]


def _named(cell: ResultCell, data: str) -> ResultCell:
    parts, more = (
        {name: replace(part, data=data) for name, part in found.items()}
        for found in (cell.parts, cell.more)
    )
    printed = cell.printed and _named(cell.printed, data)
    return replace(cell, data=data, parts=parts, more=more, printed=printed)
