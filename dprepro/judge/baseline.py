"""Results held against earlier ones of the same configs: better, worse, equivalent, or neither.

Both sides have the same splits, so each cell has one difference a split, new minus old, and

    equivalent    two one-sided t tests show that the mean difference lies within the margin
    better, worse it is not, and the two-sided test of no difference rejects (Holm over all cells)
    inconclusive  neither is shown

at 5 %, with the standard error of `dprepro.judge.comparing.paired_test`. Differences without any
spread are what they are: equivalent below the margin, else better or worse.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dprepro.experiment.changed_code import ChangedCode, changed_code
from dprepro.experiment.packed import STATUSES
from dprepro.experiment.record import Task
from dprepro.judge.comparing import (
    Pair,
    PairedTest,
    differing_splits,
    holm,
    pair_cells,
    test_of,
)
from dprepro.judge.rerun import version_changes
from dprepro.judge.two_means import LEVEL
from dprepro.judge.verdicts import Verdict
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Margin, level_in_words
from dprepro.runtime.errors import DpreproError

_OK = STATUSES.index("ok")


@dataclass(frozen=True)
class Compared:
    """A cell with an earlier result.

    Attributes
    ----------
    pair
        The new result and the old one, on the splits that both have finished.
    test
        Of the differences, new minus old, in units of the metric.
    margin
        Below it, in units of the metric, a difference does not count.
    p_equivalence
        Of two one-sided tests that the difference is as large as the margin: small means
        equivalent. None where the differences have no spread.
    p_holm
        Of no difference, adjusted for all cells; None where the differences have no spread.
    changed
        In words, the settings in which the two differ.
    """

    pair: Pair
    test: PairedTest
    margin: float
    p_equivalence: float | None
    p_holm: float | None
    changed: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What is shown, at the 5 % level."""
        if self.p_equivalence is None or self.p_holm is None:
            is_equivalent, is_different = abs(self.test.mean) < self.margin, True
        else:
            is_equivalent, is_different = self.p_equivalence < LEVEL, self.p_holm < LEVEL
        if is_equivalent:
            return Verdict.EQUIVALENT
        if not is_different:
            return Verdict.INCONCLUSIVE
        is_better = (self.test.mean > 0) == self.pair.metric.higher_is_better
        return Verdict.BETTER if is_better else Verdict.WORSE

    @property
    def is_same(self) -> bool:
        """Whether every split has the very score that it had."""
        return self.test.sd == 0.0 and self.test.mean == 0.0


@dataclass(frozen=True)
class Unpaired:
    """A cell of which nothing can be said, and why."""

    cell: ResultCell
    reason: str


@dataclass(frozen=True)
class BaselineReport:
    """What became of earlier results.

    Attributes
    ----------
    baseline
        The folder or the revision that they are from.
    cells
        Those that both sides have.
    failing
        Cells with the splits, ascending, that had finished and that fail or are skipped now.
    gone
        Earlier results whose cell has no result now, or not the metric of its config.
    unpaired
        Cells of which both have results that cannot be compared.
    new
        How many cells have a result now and had none.
    versions
        In words, the versions and machines that differ between the last runs of both sides.
    changed_code
        The methods of one's own whose code is no longer that of the results compared.
    """

    baseline: str
    cells: Sequence[Compared]
    failing: Sequence[tuple[ResultCell, Sequence[int]]] = ()
    gone: Sequence[ResultCell] = ()
    unpaired: Sequence[Unpaired] = ()
    new: int = 0
    versions: Sequence[str] = ()
    changed_code: Sequence[ChangedCode] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of cells by verdict, the four that there are."""
        found = Counter(cell.verdict for cell in self.cells)
        return {verdict: found[verdict] for verdict in Verdict if verdict.is_final}

    @property
    def worse(self) -> list[Compared]:
        """The cells that are shown to be worse."""
        return [cell for cell in self.cells if cell.verdict is Verdict.WORSE]

    @property
    def passes(self) -> bool:
        """Whether no cell is worse, none is gone, and no fit fails that did not fail before."""
        return not self.worse and not self.gone and not self.failing


def compare_with_baseline(
    now: Results,
    before: Results,
    baseline: str,
    margins: Mapping[str, Margin],
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> BaselineReport:
    """Compare each cell with the earlier one of its config, dataset, label and privacy level.

    Raises DpreproError if no cell is on both sides, or the splits of one are not the same: a
    difference would be one of the rows as well.

    Parameters
    ----------
    margins
        By name of a metric; a share is one of the earlier mean.
    datasets, methods
        Only these, methods by label or name; default all.
    """

    def wanted(cell: ResultCell) -> bool:
        return (not datasets or bool({cell.dataset, cell.task.dataset} & set(datasets))) and (
            not methods or bool({cell.task.label, cell.method} & set(methods))
        )

    ours = [cell for cell in now.cells if wanted(cell)]
    theirs = [cell for cell in before.cells if wanted(cell)]
    found: list[Compared] = []
    unpaired: list[Unpaired] = []
    failing: list[tuple[ResultCell, Sequence[int]]] = []
    lost: list[ResultCell] = []
    unfinished = _unfinished(now)
    paired: set[int] = set()
    moved: list[str] = []
    for cell in ours:
        old = _earlier(cell, theirs)
        if old is None:
            continue
        paired.add(id(old))
        if splits := unfinished.get(cell.task.cell, set()) & _finished(old) - _finished(cell):
            failing.append((cell, sorted(splits)))
        if not cell.values or not old.values:
            continue
        if differences := differing_splits(cell.task, old.task):
            moved.append(f"{place(cell)}: {'; '.join(differences)}")
            continue
        if any(
            name in old.values and name not in cell.values for name in (cell.metric, old.metric)
        ):
            lost.append(old)
            continue
        pair = pair_cells(cell, old, None)
        if isinstance(pair, Pair):
            found.append(_compared(pair, margins))
        else:
            unpaired.append(Unpaired(cell, pair))
    if moved:
        more = f"\nand {len(moved) - 3} more" if len(moved) > 3 else ""
        shown = "\n".join(moved[:3])
        raise DpreproError(
            f"{baseline} has other splits, so that a difference would be one of the rows, too:\n"
            f"{shown}{more}\nRecord a new baseline (`dprepro check --record-baseline FOLDER`), or "
            "leave these out by --config, --dataset and --method"
        )
    held = [cell for cell in theirs if cell.values]
    gone = [cell for cell in held if id(cell) not in paired or not _has_result(cell, ours)] + lost
    if not found and not unpaired and not gone and not failing:
        raise DpreproError(
            f"no cell is both in the results and in {baseline}: {_held(ours)}; there, "
            f"{_held(theirs)}. A cell is a config, dataset, label and epsilon"
        )
    adjusted = iter(holm([cell.test.p for cell in found if cell.test.p is not None]))
    cells = [c if c.test.p is None else replace(c, p_holm=next(adjusted)) for c in found]
    new = sum(1 for cell in ours if cell.values and not _has_result(cell, theirs))
    versions = dict.fromkeys(_versions(now, before))
    own = {cell.task.cell for cell in ours}
    ledgers = (one for journal in now.held for one in journal.own_ledgers if one[0].cell in own)
    return BaselineReport(
        baseline, cells, failing, gone, unpaired, new, tuple(versions), changed_code(ledgers)
    )


def _unfinished(results: Results) -> Mapping[str, set[int]]:
    """Return the splits that failed or were skipped, by the string of their cell."""
    found: dict[str, set[int]] = defaultdict(set)
    for journal in results.held:
        table = journal.table
        for row in journal.rows[table.status[journal.rows] != _OK].tolist():
            found[table.tasks[int(table.task[row])].cell].add(int(table.split[row]))
    return found


def _finished(cell: ResultCell) -> set[int]:
    return {split for metric in cell.values for split in cell.by_split(metric)}


def _versions(now: Results, before: Results) -> Iterator[str]:
    """Yield in words the versions that differ between the last runs of the same config."""
    earlier = {journal.name: journal for journal in before.held}
    for journal in now.held:
        old = earlier.get(journal.name)
        if old is not None and old.environments and journal.environments:
            yield from version_changes(old.environments[-1], journal.environments[-1])


def place(cell: ResultCell) -> str:
    """Return the coordinates of a cell in words: ``"adult, dp-ebm-gdp, epsilon 1"``."""
    return f"{cell.dataset}, {cell.task.label}, {level_in_words(cell.task.epsilon)}"


def _matches(cell: ResultCell, other: ResultCell) -> bool:
    """Whether two cells have one dataset, label and privacy level, and a config in common.

    The dataset is that of the card: where its rows changed, the difference is to be named.
    """
    one, two = ((c.task.dataset, c.task.label, c.task.epsilon) for c in (cell, other))
    return one == two and bool(set(cell.journals) & set(other.journals))


def _earlier(cell: ResultCell, theirs: Sequence[ResultCell]) -> ResultCell | None:
    """Return the earlier cell; of several the one with the same settings, else the fullest."""
    found = [old for old in theirs if _matches(cell, old)]
    same = [old for old in found if old.task.cell == cell.task.cell]
    return max(same or found, key=lambda old: max(map(len, old.values.values()), default=0),
               default=None)  # fmt: skip


def _has_result(cell: ResultCell, others: Sequence[ResultCell]) -> bool:
    return any(other.values and _matches(cell, other) for other in others)


def _held(cells: Sequence[ResultCell]) -> str:
    if not cells:
        return "none"
    first = cells[0]
    more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
    return f"{place(first)} (config {', '.join(first.journals)}){more}"


def _compared(pair: Pair, margins: Mapping[str, Margin]) -> Compared:
    test = test_of(pair)
    margin = margins[pair.metric.name].at(pair.second.mean(pair.metric.name))
    changed = tuple(_changes(pair.first.task, pair.second.task))
    if test.p is None:
        return Compared(pair, test, margin, None, None, changed)
    from scipy.special import stdtr  # a tenth of a second, and not all commands need it

    nearer = (abs(test.mean) - margin) / test.standard_error
    return Compared(pair, test, margin, float(stdtr(test.freedom, nearer)), None, changed)


def _changes(new: Task, old: Task) -> Iterator[str]:
    """Yield in words the settings in which two tasks of one label differ."""
    for name, ours, theirs in (
        ("method", new.method, old.method),
        ("version of the method", new.method_version, old.method_version),
        ("delta", new.delta, old.delta),
        ("domain", new.domain, old.domain),
        ("unit", new.unit, old.unit),
        ("rows_per_unit", new.rows_per_unit, old.rows_per_unit),
    ):
        if ours != theirs:
            yield f"{name} {theirs} before, {ours} now"
    missing = object()
    for name in sorted({*new.params, *old.params}):
        ours, theirs = new.params.get(name, missing), old.params.get(name, missing)
        if ours != theirs and not _both_nan(ours, theirs):
            said = ("not given" if value is missing else value for value in (theirs, ours))
            yield f"{name} {next(said)} before, {next(said)} now"


def _both_nan(one: object, other: object) -> bool:
    return all(isinstance(value, float) and math.isnan(value) for value in (one, other))
