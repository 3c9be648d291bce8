"""Read a folder of journals as cells: records with one `Task.cell` make one cell.

The runs that come with dprepro can stand beside one's own. They are marked: a task can be in both,
with one key, and no record of one side is counted on the other. Verdicts are on one's own results,
since no printed number has a marked label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from dprepro.experiment.journal import JournalTable, journal_files
from dprepro.experiment.record import Record, Task
from dprepro.results.aggregation import (
    HeldJournal,
    JournalPlan,
    Part,
    current,
    make_cell,
    told_apart,
)
from dprepro.results.audits import WordsOf
from dprepro.results.result_cell import ResultCell, shipped
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import in_short

__all__ = ["JournalPlan", "ResultCell", "Results", "assemble", "journal_paths", "read_results"]


@dataclass(frozen=True, repr=False)
class Results:
    """All cells of some journals.

    `cells` are what there are records of, `planned` what a config asks for and its journal has no
    record of: their dataset is that of the journal's other records, and a journal without any has
    none. `plans` are, by name, what is known of each journal's config, and `held` the journals.
    """

    cells: tuple[ResultCell, ...]
    plans: Mapping[str, JournalPlan] = field(default_factory=dict)
    planned: tuple[ResultCell, ...] = ()
    held: tuple[HeldJournal, ...] = field(default=(), repr=False, compare=False)
    _index: dict[tuple[str, str, float], list[ResultCell]] = field(
        default_factory=lambda: defaultdict(list), repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for cell in self.cells:
            self._index[cell.dataset, cell.task.label, cell.task.epsilon].append(cell)

    def __repr__(self) -> str:
        data = in_short(sorted({cell.dataset for cell in self.cells}))
        return f"Results({len(self.cells)} cells of {data}; configs: {in_short(self.journals)})"

    @property
    def is_private(self) -> bool:
        """Whether a cell is of private rows, so that its scores are not covered by epsilon."""
        return any(cell.task.is_private for cell in self.cells)

    @cached_property
    def begun(self) -> tuple[ResultCell, ...]:
        """Those of `planned` whose label and epsilon both have records in their journal.

        The others were not asked for so far, as by `dprepro run CONFIG --method NAME`, or their
        run has not come to them.
        """
        run = {
            (name, part)
            for cell in self.cells
            for name in cell.journals
            for part in (cell.task.label, cell.task.epsilon)
        }
        return tuple(
            cell
            for cell in self.planned
            if {(cell.journals[0], cell.task.label), (cell.journals[0], cell.task.epsilon)} <= run
        )

    @property
    def journals(self) -> tuple[str, ...]:
        """The names of all journals that were read, those without a record included."""
        named = (name for cell in self.cells for name in cell.journals)
        return tuple(dict.fromkeys([*(journal.name for journal in self.held), *named]))

    @property
    def datasets(self) -> frozenset[str]:
        """The names of all data, those of their cards included."""
        return frozenset(n for cell in self.cells for n in (cell.dataset, cell.task.dataset))

    def all(self, dataset: str, label: str, epsilon: float) -> list[ResultCell]:
        """Return every cell at these coordinates, whatever its other settings."""
        return self._index.get((dataset, label, epsilon), [])

    def of(self, journal: str) -> Results:
        """Return the results of one of `journals` alone, as if no other had been read."""
        return assemble([found for found in self.held if found.name == journal])

    def joined(self, others: Sequence[HeldJournal]) -> Results:
        """Return these results and those of other journals, as if all had been read together."""
        return assemble([*self.held, *others])

    def of_datasets(self, names: Sequence[str]) -> Results:
        """Return the results of the data of these names, as the card has them or as told apart.

        Raises DpreproError if there are none of one of them.
        """
        measured = list(dict.fromkeys(cell.dataset for cell in self.cells))
        for name in names:
            if name not in self.datasets:
                raise DpreproError(
                    f"no results of dataset {name!r} in the journals that were read"
                    f"{nearest(name, measured) or '.'} They have: {', '.join(measured)}"
                )
        cells, planned = (
            tuple(cell for cell in found if {cell.dataset, cell.task.dataset} & set(names))
            for found in (self.cells, self.planned)
        )
        return Results(cells, self.plans, planned, self.held)


def read_results(
    folder: Path,
    configs: Sequence[str] = (),
    plan_of: Callable[[str], JournalPlan | None] | None = None,
    only_usual: bool = False,
) -> Results:
    """Read the journals of `folder`, all or those of the configs named: what their plans ask for.

    Raises DpreproError if the folder, its journals or a named one is missing.

    Parameters
    ----------
    plan_of
        Returns what a config asks for, by its name, as far as is known: asked of journals that
        state no plan. Otherwise the last of several settings under a label counts, and a complete
        cell has as many splits as the fullest of the same dataset in the same journal.
    only_usual
        Leave out what `usual` does.

    Examples
    --------
    >>> results = read_results(Path("results"), ["telco"])  # in a clone
    >>> {cell.task.dataset for cell in results.cells}
    {'telco'}
    """
    return assemble(read_journals(folder, configs, plan_of, only_usual))


def read_journals(
    folder: Path,
    configs: Sequence[str] = (),
    plan_of: Callable[[str], JournalPlan | None] | None = None,
    only_usual: bool = False,
) -> list[HeldJournal]:
    """Read journals, but make no cells of them; see `read_results`."""
    journals, words = [], WordsOf(folder)
    paths = journal_paths(folder, configs)
    for found in usual(paths) if only_usual else map(JournalTable, paths):
        name = found.path.stem
        assumed = plan_of(name) if plan_of and found.plan is None else None
        rows, plan = current(found.plan, found.table, assumed)
        journals.append(HeldJournal(name, plan, found.table, rows, words, found.environments))
    return journals


def usual(paths: Iterable[Path]) -> Iterator[JournalTable]:
    """Yield the journals without those of hypotheses, or those if there are no others.

    Hypotheses (the key `hypotheses` of a config) are for `dprepro forensics`. One journal is opened
    at a time: together the files take as much memory as what is read of them.
    """
    left_out, is_any = [], False
    for path in paths:
        table = JournalTable(path)
        if _runs_hypotheses(table):
            left_out.append(path)
        else:
            is_any = True
            yield table
    if not is_any:
        yield from map(JournalTable, left_out)


def _runs_hypotheses(table: JournalTable) -> bool:
    """Return what a journal's plan says; of an older one, what the built-in config of its name."""
    plan = table.last_plan
    if plan is not None and plan.hypotheses is not None:
        return plan.hypotheses
    from dprepro.experiment.config import runs_hypotheses

    return runs_hypotheses(table.path.stem)


def assemble(journals: Sequence[HeldJournal]) -> Results:
    """Return the cells of these journals."""
    by_settings: dict[str, list[Part]] = defaultdict(list)
    for journal in journals:
        for part in journal.parts:
            by_settings[part.task.cell].append(part)
    cells = [make_cell(parts) for parts in by_settings.values()]
    planned = [cell for journal in journals for cell in journal.planned]
    named = told_apart([*cells, *planned])
    return Results(
        named[: len(cells)],
        {journal.name: journal.plan for journal in journals if journal.plan is not None},
        named[len(cells) :],
        tuple(journals),
    )


def journal_paths(folder: Path, configs: Sequence[str] = ()) -> list[Path]:
    """Return the journals of `folder`, sorted, or those of the configs named.

    Raises DpreproError if the folder has no journals, or not the one of a named config.
    """
    paths = journal_files(folder)
    if not paths:
        raise DpreproError(
            f"no journals (*.jsonl, *.parquet) in {folder.absolute()}"
            f"{'' if folder.is_dir() else ', which is not a folder'}: `dprepro run CONFIG` writes "
            "those of your config there. --results (in Python results=) names another folder, or, "
            "by the name shipped, the runs that come with dprepro"
        )
    for name in configs:
        if name not in paths:
            from dprepro.experiment.config import to_run

            raise DpreproError(
                f"no journal of config {name!r} in {folder}{nearest(name, list(paths), 3) or '.'} "
                f"`dprepro run {to_run(name)}` writes it; `dprepro configs` lists all built-in ones"
            )
    return [paths[name] for name in dict.fromkeys(configs)] if configs else list(paths.values())


Tasks = Mapping[str, Sequence[Task]]
"""By the name of a journal, one task of each cell that it holds records of."""


def tasks_held(folder: Path) -> Tasks:
    """Return what the journals of `folder` hold, those of hypotheses left out; see `usual`.

    Raises DpreproError if the folder has no journals, or one cannot be read.
    """
    return {table.path.stem: table.tasks for table in usual(journal_paths(folder))}


def holding_both(held: Tasks, first: str, second: str, datasets: Collection[str] = ()) -> list[str]:
    """Return the sorted names of the journals that are needed to compare two methods.

    On each dataset these are the journals that hold both methods. Where there are none, they are
    those that hold one of the two, if each method is in one of them. If no dataset has both
    methods: those that hold either, and all of them if none does.

    Parameters
    ----------
    first, second
        Labels or names of methods.
    datasets
        Only these; default all. If one of them is in no journal, all are taken.
    """
    holders: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for journal, tasks in held.items():
        for dataset, methods in _mentioned(tasks, (first, second)).items():
            holders[dataset][journal] = methods
    wanted = holders.keys() & set(datasets) if holders.keys() >= set(datasets) else set()
    found: set[str] = set()
    for dataset in wanted or holders:
        there = holders[dataset]
        both = {name for name, methods in there.items() if len(methods) == 2}
        if len(set().union(*there.values())) == 2:
            found |= both or there.keys()
    either = {name for there in holders.values() for name in there}
    return sorted(found or either or held)


def is_mentioned(held: Tasks, name: str) -> bool:
    """Whether a journal holds a label or a method of this name."""
    return any(_mentioned(tasks, [name]) for tasks in held.values())


def _mentioned(tasks: Sequence[Task], names: Sequence[str]) -> dict[str, set[str]]:
    """Return, by dataset, those of `names` that are the label or the method of a task there."""
    found: dict[str, set[str]] = defaultdict(set)
    for task in tasks:
        for name in {task.label, task.method}.intersection(names):
            found[task.dataset].add(name)
    return found


def beside(own: Results, others: Results) -> Results:
    """Return one's own results, then those of the runs that come with dprepro, marked."""
    return assemble([*own.held, *map(_marked, others.held)])


def in_both(own: Results, others: Results) -> tuple[list[Record], list[Record]]:
    """Return the records of the tasks that both hold, of one's own and of the others."""
    both = _keys(own) & _keys(others)
    return _of(own, both), _of(others, both)


def _keys(results: Results) -> set[bytes]:
    found = (journal.table.keys[journal.rows].tolist() for journal in results.held)
    return set().union(*found)


def _of(results: Results, keys: set[bytes]) -> list[Record]:
    found = (record for journal in results.held for record in journal.records)
    return [record for record in found if record.task.key.encode() in keys]


def _marked(journal: HeldJournal) -> HeldJournal:
    plan = journal.plan
    if plan is not None and plan.cells is not None:
        cells = {(shipped(label), epsilon): keys for (label, epsilon), keys in plan.cells.items()}
        plan = replace(plan, cells=cells)
    tasks = [replace(task, label=shipped(task.label)) for task in journal.table.tasks]
    for task, own in zip(tasks, journal.table.tasks, strict=True):
        vars(task)["key"] = own.key  # it does not depend on whose run it is
    table = replace(journal.table, tasks=tasks)
    return replace(journal, name=shipped(journal.name), plan=plan, table=table)
