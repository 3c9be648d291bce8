"""The leaderboard: private methods ranked over tables and privacy levels, by one rule for all.

A *board* is of one kind of task, so that its methods meet on the same tables; where there are
several kinds, one more has the methods that take them all. A *cell* is a table at a privacy level.

- All methods of a cell are compared by their means over the splits that all of them have finished.
- A method without a result in a cell (a split failed or was skipped, it was not run there, its rows
  were split in another way, or its delta is larger) is ranked last there, and has the score of a
  constant. So nobody gains by leaving out a table.
- A cell in which no more than half of the methods have results is left out, and named. So nobody
  gains by adding a table.
- The normalised score of a cell is 0 for a constant (`CONSTANT`) and 1 for the best method without
  privacy. Below a constant it is 0.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from dprepro.experiment.record import Task
from dprepro.judge.comparing import PREFERRED, splitting
from dprepro.privacy.guarantee_status import AuditVerdict
from dprepro.results.audits import Audit
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Metric, find_metric
from dprepro.results.result_cell import MARK
from dprepro.results.runs import Spending, Timing, runs_of
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import in_short

if TYPE_CHECKING:
    from dprepro.methods.entry import Method

CONSTANT = "constant"
"""The label of a method without privacy that predicts the same for all rows."""
ALL_KINDS = "all kinds"
KINDS = ("binary", "multiclass", "regression")
FEWEST_TABLES = 5
"""Of fewer there is no interval: they say too little about other tables."""
RESAMPLES = 10_000


@dataclass(frozen=True)
class Facts:
    """What a method costs beside its score, and what it takes as given.

    Attributes
    ----------
    method
        The name in the registry.
    adjacency, reasons, exact
        Of the ledgers of its fits: the neighbours; why they do not back what it states (reads that
        epsilon does not cover, gaps of the proof, too much spent; but not the fixed seeds that all
        have), also that the registry promises nothing; whether no answer is in floating point.
    audit
        See `audit_of`.
    form
        How its model can be read, as the registry says; empty where it cannot.
    is_authors_word
        Whether it is a user's own method, so that its ledger is its author's word.
    seconds, longest
        Of its fits: the median over tables of the mean, and the longest.
    """

    method: str
    adjacency: str
    reasons: tuple[str, ...]
    exact: bool
    audit: str
    form: str
    is_authors_word: bool
    seconds: float
    longest: float

    @property
    def sound(self) -> bool:
        """Whether its ledgers back what it states."""
        return not self.reasons

    @property
    def audited(self) -> bool:
        """Whether an audit of this version could have refuted it, and none did."""
        return self.audit == AuditVerdict.WITHIN.value


@dataclass(frozen=True)
class Cell:
    """A table at a privacy level.

    `means` are by label, of the methods that have a result, over `splits`. `missing` says by label
    why the others have none. `scores` are normalised, of all methods; None without the references.
    """

    table: str
    epsilon: float
    metric: Metric
    splits: tuple[int, ...]
    means: Mapping[str, float]
    missing: Mapping[str, str]
    scores: Mapping[str, float] | None

    @property
    def ranks(self) -> dict[str, float]:
        """The rank of each method, 1 for the best; equal ones, and all without results, share."""
        sign = 1 if self.metric.higher_is_better else -1
        worth = {label: sign * mean for label, mean in self.means.items()}
        worth |= dict.fromkeys(self.missing, -math.inf)
        order = sorted(worth.values(), reverse=True)
        first = {own: order.index(own) + 1 for own in order}
        return {label: first[own] + (order.count(own) - 1) / 2 for label, own in worth.items()}

    @property
    def best(self) -> list[str]:
        """The methods with the best mean."""
        ranks = self.ranks
        return [label for label in self.means if ranks[label] == min(ranks.values())]


@dataclass(frozen=True)
class Standing:
    """A method on a board.

    `mean_rank` and `win_rate`, the share of cells in which it is best (equal ones share it), are
    over cells. `score` is the mean over tables of the mean over levels, None without references,
    and `low` and `high` bound its 95 % interval by a bootstrap over tables. `cells` are those in
    which it has a result.
    """

    label: str
    mean_rank: float
    win_rate: float
    score: float | None
    low: float | None
    high: float | None
    cells: int
    facts: Facts


@dataclass(frozen=True)
class Board:
    """Methods on the tables of one kind of task, or of `ALL_KINDS`, the best mean rank first.

    `references` are the labels without privacy that a score of 1 may be of. `delta` is the largest,
    and `left_out` has tables, levels and methods that are not on it, with reasons.
    """

    kind: str
    cells: tuple[Cell, ...]
    standings: tuple[Standing, ...]
    references: tuple[str, ...]
    delta: float
    left_out: tuple[str, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables, in the order of the journals."""
        return tuple(dict.fromkeys(cell.table for cell in self.cells))

    @property
    def leaders(self) -> dict[float, list[str]]:
        """By level, ascending, the methods with the best mean rank there."""
        found = {}
        for epsilon in sorted({cell.epsilon for cell in self.cells}):
            ranks = [cell.ranks for cell in self.cells if cell.epsilon == epsilon]
            means = {s.label: statistics.fmean(r[s.label] for r in ranks) for s in self.standings}
            found[epsilon] = [n for n, mean in means.items() if mean == min(means.values())]
        return found


def boards(
    results: Results,
    registry: Mapping[str, Method],
    audits: Sequence[Audit],
    *,
    kind: str | None = None,
    epsilons: Sequence[float] = (),
    methods: Sequence[str] = (),
    metric: str | None = None,
    only: Sequence[str] = (),
) -> list[Board]:
    """Return a board for each kind of task, then one of all kinds if two methods take them.

    Raises DpreproError if a label or level has no results, or no board is left.

    Parameters
    ----------
    kind, epsilons, methods
        Only this kind of task, these levels, and these labels (or names of methods).
    metric
        Instead of the configs' own.
    only
        Properties that methods must have: names of `FILTERS`. The methods are ranked without the
        others.
    """
    private = [
        cell for cell in (*results.cells, *results.planned) if math.isfinite(cell.task.epsilon)
    ]
    _require(methods, epsilons, private)
    named = dict.fromkeys(cell.dataset for cell in results.cells)
    tables = [t for name in named if (t := _Table(name, results, metric)).finished]
    empty = [name for name in named if name not in {table.name for table in tables}]
    kinds: list[str] = [k for k in KINDS if any(t.kind == k for t in tables) and kind in (None, k)]
    read = _Facts(results, registry, audits)
    entered = {
        k: [n for n in read.methods if any(n in t.finished for t in tables if t.kind == k)]
        for k in kinds
    }
    groups = {k: [t for t in tables if t.kind == k] for k in kinds}
    if len(kinds) > 1:
        groups[ALL_KINDS] = tables
        every = set.intersection(*map(set, entered.values()))
        entered[ALL_KINDS] = [label for label in read.methods if label in every]
    found = []
    for k, held in groups.items():
        facts = read.on([table.name for table in held], k)
        labels = [
            label
            for label in entered[k]
            if label in facts
            and (not methods or {label, facts[label].method} & set(methods))
            and all(FILTERS[name](facts[label]) for name in only)
        ]
        board = _board(k, held, labels, epsilons, facts)
        if board is not None and empty:
            said = f"{', '.join(empty)}: nothing has finished there"
            board = replace(board, left_out=(*board.left_out, said))
        found += [] if board is None else [board]
    if found:
        return found
    raise DpreproError(
        "no board is left: it needs a table with results of two methods, and of more than half of "
        f"all. There are {', '.join(f'{k} tables with {in_short(n)}' for k, n in entered.items())}"
        ". Give fewer of --task, --method, --interpretable, --sound, --exact and --audited, or run "
        "more: `dprepro run board`"
    )


FILTERS = {
    "interpretable": lambda facts: bool(facts.form),
    "sound": lambda facts: facts.sound,
    "exact": lambda facts: facts.exact,
    "audited": lambda facts: facts.audited,
}
"""By name of an option, whether a method stays."""


def _require(
    methods: Sequence[str], epsilons: Sequence[float], cells: Sequence[ResultCell]
) -> None:
    names = dict.fromkeys(n for cell in cells for n in (cell.task.label, cell.method) if n)
    for name in methods:
        if name not in names:
            raise DpreproError(
                f"no private method {name!r} in the journals read{nearest(name, names) or '.'} "
                f"They have: {', '.join(names) or 'none'}"
            )
    levels = sorted({cell.task.epsilon for cell in cells})
    for epsilon in epsilons:
        if epsilon not in levels:
            raise DpreproError(
                f"no results at epsilon {epsilon:g} in the journals read. They have: "
                f"{', '.join(f'{level:g}' for level in levels) or 'none'}"
            )


class _Table:
    """The results on one table.

    `labels` are the private methods that have results or are to have any, `finished` all that have.
    """

    def __init__(self, name: str, results: Results, metric: str | None) -> None:
        self.name = name
        cells = [cell for cell in results.cells if cell.dataset == name]
        planned = [cell for cell in results.planned if cell.dataset == name]
        wanted = [cell.metric for cell in cells if cell.metric] + list(PREFERRED)
        held = {name for cell in cells for name in cell.values}
        self.kind = "regression" if "rmse" in held else "binary" if "auc" in held else "multiclass"
        self.metric = find_metric(metric or next((m for m in wanted if m in held), wanted[0]))
        self.labels = {c.task.label for c in (*cells, *planned) if math.isfinite(c.task.epsilon)}
        rules = Counter(tuple(splitting(cell.task).values()) for cell in cells if cell.values)
        self._rule = rules.most_common(1)[0][0] if rules else None
        self.finished = {cell.task.label for cell in cells if cell.values}
        deltas = Counter(c.task.delta for c in cells if c.values and c.task.delta)
        self.delta = deltas.most_common(1)[0][0] if deltas else 0.0
        self._at: dict[tuple[str, float], ResultCell] = {}
        for cell in cells:  # of several results of a label the one with the most splits counts
            place = cell.task.label, cell.task.epsilon
            if place not in self._at or self._size(cell) > self._size(self._at[place]):
                self._at[place] = cell

    def _size(self, cell: ResultCell) -> tuple[bool, int]:
        return not self._fault(cell), cell.splits(self.metric.name)

    @property
    def levels(self) -> set[float]:
        """The privacy levels with results."""
        return {epsilon for _, epsilon in self._at if math.isfinite(epsilon)}

    @property
    def references(self) -> list[str]:
        """The labels without privacy, but for the constant."""
        found = (label for label, epsilon in self._at if math.isinf(epsilon))
        return [label for label in found if label.removesuffix(MARK) != CONSTANT]

    def _fault(self, cell: ResultCell) -> str:
        if cell.failed:
            return "failed"
        if not cell.by_split(self.metric.name):
            return "skipped" if cell.skipped else f"no {self.metric.title}"
        if tuple(splitting(cell.task).values()) != self._rule:
            return "other splits"
        return "larger delta" if cell.task.delta > self.delta else ""

    def cell(self, epsilon: float, labels: Sequence[str]) -> Cell | None:
        """Return the cell of these methods; None unless more than half have results, and two."""
        held: dict[str, Mapping[int, float]] = {}
        missing: dict[str, str] = {}
        for label in labels:
            found = self._at.get((label, epsilon))
            fault = "not run" if found is None else self._fault(found)
            if found is None or fault:
                missing[label] = fault
            else:
                held[label] = found.by_split(self.metric.name)
        while held and not (common := set.intersection(*map(set, held.values()))):
            fewest = min(held, key=lambda label: len(held[label]))
            del held[fewest]
            missing[fewest] = "other splits"
        if len(held) < 2 or 2 * len(held) <= len(labels):
            return None
        splits = tuple(sorted(common))
        means = {n: statistics.fmean(values[s] for s in splits) for n, values in held.items()}
        scale = self._scale(splits)
        scores = None
        if scale is not None:
            zero, one = scale
            scores = {n: max(0.0, (mean - zero) / (one - zero)) for n, mean in means.items()}
            scores |= dict.fromkeys(missing, 0.0)
        return Cell(self.name, epsilon, self.metric, splits, means, missing, scores)

    def _scale(self, splits: Sequence[int]) -> tuple[float, float] | None:
        """Return the means of the constant and of the best reference on the same splits."""
        found: dict[bool, list[float]] = {True: [], False: []}
        for (label, epsilon), cell in self._at.items():
            values = cell.by_split(self.metric.name)
            if math.isinf(epsilon) and not self._fault(cell) and values.keys() >= set(splits):
                is_constant = label.removesuffix(MARK) == CONSTANT
                found[is_constant].append(statistics.fmean(values[split] for split in splits))
        if not (found[True] and found[False]):
            return None
        choose = max if self.metric.higher_is_better else min
        zero, one = choose(found[True]), choose(found[False])
        return (zero, one) if choose(zero, one) == one != zero else None


def _board(
    kind: str,
    tables: Sequence[_Table],
    labels: Sequence[str],
    epsilons: Sequence[float],
    facts: Mapping[str, Facts],
) -> Board | None:
    cells, left_out = [], defaultdict(list)
    for table in tables:
        for epsilon in sorted(table.levels):
            if epsilons and epsilon not in epsilons:
                continue
            found = table.cell(epsilon, labels)
            if found is None:
                left_out[table.name].append(epsilon)
            else:
                cells.append(found)
    if not cells:
        return None
    absent = {n for table in tables for n in table.labels} - facts.keys()
    said = [f"{', '.join(sorted(absent))}: no result on any of the tables"] if absent else []
    said += [
        f"{name} at epsilon {', '.join(f'{e:g}' for e in levels)}: half of the methods or more "
        "have no result there"
        for name, levels in left_out.items()
    ]
    unscored = dict.fromkeys(cell.table for cell in cells if cell.scores is None)
    if unscored:
        said.append(
            f"the normalised score of {', '.join(unscored)}: it needs {CONSTANT!r} and a better "
            "method without privacy, on the same splits"
        )
    there = {cell.table for cell in cells}
    return Board(
        kind,
        tuple(cells),
        tuple(sorted(_standings(cells, labels, facts), key=lambda s: (s.mean_rank, s.label))),
        tuple(dict.fromkeys(n for t in tables if t.name in there for n in t.references)),
        max(table.delta for table in tables if table.name in there),
        tuple(said),
    )


def _standings(
    cells: Sequence[Cell], labels: Sequence[str], facts: Mapping[str, Facts]
) -> Iterator[Standing]:
    ranks = [cell.ranks for cell in cells]
    best = [cell.best for cell in cells]
    by_table: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    for cell in cells:
        if cell.scores is not None:
            by_table[cell.table].append(cell.scores)
    drawn = _resamples(len(by_table))
    for label in labels:
        scores = [statistics.fmean(at[label] for at in levels) for levels in by_table.values()]
        low = high = None
        if drawn is not None:
            means = np.asarray(scores)[drawn].mean(axis=1)
            low, high = map(float, np.quantile(means, [0.025, 0.975]))
        yield Standing(
            label,
            statistics.fmean(rank[label] for rank in ranks),
            math.fsum(1 / len(won) for won in best if label in won) / len(cells),
            statistics.fmean(scores) if scores else None,
            low,
            high,
            sum(label in cell.means for cell in cells),
            facts[label],
        )


def _resamples(tables: int) -> np.ndarray | None:
    """Return numbers of tables drawn with replacement, (`RESAMPLES`, tables); always the same."""
    if tables < FEWEST_TABLES:
        return None
    return np.random.default_rng(0).integers(tables, size=(RESAMPLES, tables))


def audit_of(task: Task, kind: str, audits: Iterable[Audit]) -> str:
    """Return what audits say of a task's method on a kind of task: the worst verdict, or no.

    Audits of single answers ("METHOD/CASE") count, too. One of another version says nothing of
    this one, and is named instead. One of a user's own method is of the code that it states.
    """
    found = [a for a in audits if a.method == task.method and kind in (a.task, ALL_KINDS)]
    now = {a.verdict for a in found if a.method_version in (None, task.method_version)}
    refuting = (AuditVerdict.EXCEEDED, AuditVerdict.ABOVE_LEDGER, AuditVerdict.UNDECIDED)
    for verdict in (*refuting, AuditVerdict.WITHIN, AuditVerdict.FEW_RUNS):
        if verdict in now:
            return verdict.value
    others = sorted({a.method_version for a in found if a.method_version is not None})
    return f"version {others[-1]}" if others else "no"


class _Facts:
    """What journals, registry and audits say of every label; `methods` has a task of each."""

    def __init__(
        self, results: Results, registry: Mapping[str, Method], audits: Sequence[Audit]
    ) -> None:
        self._runs, self._registry, self._audits = runs_of(results), registry, audits
        self.methods = {
            cell.task.label: cell.task
            for cell in results.cells
            if cell.values and math.isfinite(cell.task.epsilon)
        }

    def on(self, tables: Sequence[str], kind: str) -> dict[str, Facts]:
        """Return the facts of every label that has a finished result on one of these tables."""
        found = {}
        for label, task in self.methods.items():
            spent = [s for s in self._runs.spendings if s.method == label and s.dataset in tables]
            times = [t for t in self._runs.timings if t.method == label and t.dataset in tables]
            times = [timing for timing in times if timing.finished]
            if times:
                found[label] = self._facts(task, kind, spent, times)
        return found

    def _facts(
        self, task: Task, kind: str, spent: Sequence[Spending], times: Sequence[Timing]
    ) -> Facts:
        reasons: Iterable[str]
        reasons = (t for s in spent for t in (*s.unaccounted, *s.gaps, *_overspent(s)))
        known = self._registry.get(task.method)
        if known is not None and known.guarantee == "none":
            reasons = chain(reasons, ["promises nothing"])
        return Facts(
            task.method,
            ", ".join(dict.fromkeys(s.adjacency for s in spent if s.adjacency)),
            tuple(dict.fromkeys(reasons)),
            all(s.floating_point == () for s in spent),
            audit_of(task, kind, self._audits),
            known.form if known else "",
            any(s.is_authors_word for s in spent),
            statistics.median(t.fit_mean for t in times),
            max(t.fit_longest for t in times),
        )


def _overspent(spending: Spending) -> Iterator[str]:
    if spending.is_overspent:
        yield "overspent"
    if spending.unverified:
        yield "no ledger"
