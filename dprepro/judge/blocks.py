"""Blocks of the tests of many methods: what these have on the same splits of one dataset.

A block is one dataset at one privacy level. A test over blocks needs a result of each method in
each of them, so that methods or datasets have to be left out where some are missing.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dprepro.experiment.record import Task
from dprepro.judge.comparing import PREFERRED, named_results, splitting
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Metric, find_metric, how_to_record

FEWEST_METHODS = 3
"""Two are compared by `dprepro.judge.comparing`."""
# Sets of methods that are looked at: all there are, but in folders of hundreds of datasets.
_MOST_SETS = 5000

_Candidates = Mapping[str, Sequence[ResultCell]]


class _Problems:
    """What fits into no block: names by dataset and reason, said once for all levels."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)

    def add(self, dataset: str, reason: str, names: Iterable[str] = ()) -> None:
        """Note names, which stand in the reason for ``{}``."""
        self._names[reason, dataset] |= dict.fromkeys(names)

    def lines(self) -> list[str]:
        """Return a line for each reason and names, with all datasets that it is about."""
        datasets: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
        for (reason, dataset), names in self._names.items():
            datasets[reason, tuple(names)].append(dataset)
        return [
            f"{', '.join(there)}: {reason.replace('{}', ', '.join(names))}"
            for (reason, names), there in datasets.items()
        ]


@dataclass(frozen=True)
class Block:
    """Several methods on one dataset at one privacy level.

    `cells` are by the name of the method; a method without privacy has the same at each level. All
    split the same rows in the same way, and have two finished splits or more in common.
    """

    dataset: str
    epsilon: float
    metric: Metric
    cells: Mapping[str, ResultCell]

    def splits(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the numbers of the splits that all these methods have finished."""
        held = [set(self.cells[name].by_split(self.metric.name)) for name in names]
        return tuple(sorted(set.intersection(*held)))

    def values(self, name: str, splits: Sequence[int]) -> list[float]:
        """Return the values of a method on these splits."""
        found = self.cells[name].by_split(self.metric.name)
        return [found[split] for split in splits]

    @property
    def task(self) -> Task:
        """The task of any one method: they agree in how rows are split."""
        return next(iter(self.cells.values())).task


def collect_blocks(
    results: Results,
    names: Sequence[str],
    metric: str | None = None,
    epsilons: Sequence[float] = (),
    is_all: bool = False,
) -> tuple[list[Block], list[str]]:
    """Return the blocks that hold two methods or more, and in words what fits into none.

    Of methods with different splits the most stand together. Of several results of a method those
    of the config with the most of the methods are taken, and of these the ones with most splits.

    Raises DpreproError if a name has no finished result.

    Parameters
    ----------
    names
        Labels, or names of methods.
    metric
        Name of the metric; default the config's, else AUROC, RMSE or accuracy.
    epsilons
        Only these privacy levels.
    is_all
        Whether the names are all that there are, so that a method without privacy is compared with
        others without privacy only, and not at each level.
    """
    named = {name: named_results(results, name) for name in names}
    blocks: list[Block] = []
    problems = _Problems()
    at_level: set[str] = set()
    for dataset in dict.fromkeys(cell.dataset for cells in named.values() for cell in cells):
        held = {
            name: found
            for name, cells in named.items()
            if (found := [cell for cell in cells if cell.dataset == dataset])
        }
        for epsilon in _levels(held, epsilons, is_all):
            candidates = _at(held, epsilon, is_all)
            at_level |= candidates.keys()
            block = _block(dataset, epsilon, candidates, metric, problems)
            if block is not None:
                blocks.append(block)
    placed = {name for block in blocks for name in block.cells}
    for name in names:
        if name not in at_level:
            problems.add(name, "no results at the privacy levels compared")
        elif name not in placed:
            problems.add(name, "in no block with another method")
    real = [block for block in blocks if not block.task.is_synthetic]
    if real and len(real) < len(blocks):
        for block in blocks:
            if block.task.is_synthetic:
                problems.add(block.dataset, "SYNTHETIC data, a random stand-in")
    return real or blocks, problems.lines()


def _levels(held: _Candidates, epsilons: Sequence[float], is_all: bool) -> list[float]:
    found = {cell.task.epsilon for cells in held.values() for cell in cells}
    private = {epsilon for epsilon in found if math.isfinite(epsilon)}
    wanted = found if is_all else private or found
    return sorted(epsilon for epsilon in wanted if not epsilons or epsilon in epsilons)


def _at(held: _Candidates, epsilon: float, is_all: bool) -> dict[str, list[ResultCell]]:
    """Return the results at a level; those of a method without privacy belong to each."""
    found = {}
    for name, cells in held.items():
        is_public = not is_all and all(math.isinf(cell.task.epsilon) for cell in cells)
        if there := [cell for cell in cells if is_public or cell.task.epsilon == epsilon]:
            found[name] = there
    return found


def _block(
    dataset: str,
    epsilon: float,
    candidates: _Candidates,
    metric: str | None,
    problems: _Problems,
) -> Block | None:
    chosen, candidates = _with_metric(dataset, candidates, metric, problems)
    rules: dict[tuple[object, ...], dict[str, list[ResultCell]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for name, cells in candidates.items():
        for cell in cells:
            rules[tuple(splitting(cell.task).values())][name].append(cell)
    if not rules:
        return None
    # The first of those with the most methods, then with the most splits.
    together = max(rules.values(), key=lambda r: (len(r), sum(_planned(c) for c in r.values())))
    if apart := [name for name in candidates if name not in together]:
        problems.add(dataset, "the splits of {} are not those of the others", apart)
    held = _chosen(dataset, together, problems)
    block = Block(dataset, epsilon, chosen, held)
    names = list(held)
    while len(names) > 1 and len(block.splits(names)) < 2:
        fewest = min(names, key=lambda name: len(block.splits([name])))
        names.remove(fewest)
        problems.add(
            dataset, "{}: not two finished splits in common with the others, for a spread", [fewest]
        )
    kept = Block(dataset, epsilon, chosen, {name: held[name] for name in names})
    return kept if len(names) > 1 else None


def _planned(cells: Sequence[ResultCell]) -> int:
    return max(cell.planned for cell in cells)


def _with_metric(
    dataset: str, candidates: _Candidates, metric: str | None, problems: _Problems
) -> tuple[Metric, _Candidates]:
    """Return the metric that most methods have, and the methods that have it."""
    cells = [cell for held in candidates.values() for cell in held]
    wanted = [find_metric(metric).name] if metric else [*(c.metric for c in cells), *PREFERRED]
    wanted = [name for name in dict.fromkeys(wanted) if name]
    having = {
        name: {n: found for n, held in candidates.items() if (found := _recorded(held, name))}
        for name in wanted
    }
    name = max(wanted, key=lambda name: len(having[name]))
    chosen = find_metric(name)
    lacking = [method for method in candidates if method not in having[name]]
    if lacking and not having[name]:
        problems.add(dataset, f"no {chosen.title}. {how_to_record(name)}".strip(" ."))
    elif lacking:
        reasons = dict.fromkeys(
            cell.absent[name] for m in lacking for cell in candidates[m] if name in cell.absent
        )
        why = "; ".join(reasons) or how_to_record(name)
        problems.add(dataset, f"no {chosen.title} of {{}}. {why}".strip(" ."), lacking)
    return chosen, having[name]


def _recorded(cells: Sequence[ResultCell], metric: str) -> list[ResultCell]:
    return [cell for cell in cells if cell.by_split(metric)]


def _chosen(dataset: str, candidates: _Candidates, problems: _Problems) -> dict[str, ResultCell]:
    """Return one result of each method of which there is one to choose."""
    holders = Counter(
        journal
        for cells in candidates.values()
        for journal in {name for cell in cells for name in cell.journals}
    )

    def weight(cell: ResultCell) -> tuple[int, int]:
        return max(holders[journal] for journal in cell.journals), cell.planned

    chosen: dict[str, ResultCell] = {}
    others: list[str] = []
    for name, cells in candidates.items():
        best = max(map(weight, cells))
        found = [cell for cell in cells if weight(cell) == best]
        if len(found) == 1:
            chosen[name] = found[0]
            others += [journal for cell in cells for journal in cell.journals]
            continue
        labels = dict.fromkeys(cell.task.label for cell in found)
        if len(labels) > 1:
            reason = f"{name!r} is a method with several labels: {{}}. Name one of them"
            problems.add(dataset, reason, labels)
        else:
            configs = (journal for cell in found for journal in cell.journals)
            reason = f"several results of {name} with different settings, of the configs {{}}"
            problems.add(dataset, f"{reason}. Choose by --config", configs)
    used = {journal for cell in chosen.values() for journal in cell.journals}
    if passed_over := [journal for journal in others if journal not in used]:
        problems.add(
            dataset,
            "results of the configs {}, which have fewer of the methods or splits; choose them by "
            "--config",
            passed_over,
        )
    return chosen


def largest_complete(blocks: Sequence[Block]) -> tuple[tuple[str, ...], list[Block]]:
    """Return methods, three or more, and the blocks that have a result of each of them.

    Of all such choices it is the one with the most degrees of freedom (methods - 1)(datasets - 1),
    then with the most methods, then with the most results. Both are empty if no
    block has three methods.
    """
    held: set[frozenset[str]] = set()
    for block in blocks:
        found = frozenset(block.cells)
        held |= {found} | {found & other for other in held}
        held = {names for names in held if len(names) >= FEWEST_METHODS}
        if len(held) > _MOST_SETS:
            held = set(sorted(held, key=lambda names: (-len(names), sorted(names)))[:_MOST_SETS])

    def worth(names: frozenset[str]) -> tuple[int, int, int]:
        kept = [block for block in blocks if names <= block.cells.keys()]
        datasets = {block.dataset for block in kept}
        return (len(names) - 1) * (len(datasets) - 1), len(names), len(kept)

    if not held:
        return (), []
    best = max(sorted(held, key=sorted), key=worth)
    order = dict.fromkeys(name for block in blocks for name in block.cells)
    kept = [block for block in blocks if best <= block.cells.keys()]
    return tuple(name for name in order if name in best), kept


def lacking(names: Sequence[str], kept: Sequence[Block], blocks: Sequence[Block]) -> Iterator[str]:
    """Yield in words which methods and datasets `largest_complete` left out, and why."""
    methods: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    for name in dict.fromkeys(name for block in blocks for name in block.cells):
        if name not in names:
            without = dict.fromkeys(b.dataset for b in kept if name not in b.cells)
            methods[tuple(without)][name] = None
    datasets: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    there = {block.dataset for block in kept}
    for dataset in dict.fromkeys(block.dataset for block in blocks):
        if dataset not in there:
            held = [b.cells.keys() for b in blocks if b.dataset == dataset]
            missing = (name for name in names if any(name not in one for one in held))
            datasets[tuple(missing)][dataset] = None
    for places, left_out in methods.items():
        yield f"{', '.join(left_out)}, without results on {', '.join(places)}"
    for methods_, left_out in datasets.items():
        yield f"{', '.join(left_out)}, without results of {', '.join(methods_)}"
