"""Two methods on the same splits: which of their results belong together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dprepro.errors import DpreproError
from dprepro.experiment.naming import nearest_meant
from dprepro.experiment.record import Task
from dprepro.report.levels import level, level_in_words
from dprepro.report.read.metrics import Metric, find_metric, how_to_record
from dprepro.report.read.results import ResultCell, Results

_PREFERRED = ("auc", "rmse", "accuracy")


@dataclass(frozen=True)
class Pair:
    """The results of two methods on the same splits of a dataset.

    Attributes
    ----------
    first, second
        One of the two has the privacy level `epsilon`, the other has the same or none.
    metric
        What is compared.
    splits
        The numbers of the splits that both have finished.
    """

    first: ResultCell
    second: ResultCell
    metric: Metric
    splits: tuple[int, ...]

    @property
    def dataset(self) -> str:
        """The name of the data."""
        return self.first.dataset

    @property
    def epsilon(self) -> float:
        """The privacy level; infinite if neither method is private."""
        return min(self.first.task.epsilon, self.second.task.epsilon)

    @property
    def planned(self) -> int:
        """The number of splits that their configs ask for."""
        return min(self.first.planned, self.second.planned)

    @property
    def values(self) -> list[tuple[float, float]]:
        """The values of both on each of `splits`."""
        ours, theirs = (c.by_split(self.metric.name) for c in (self.first, self.second))
        return [(ours[split], theirs[split]) for split in self.splits]

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number."""
        return "rmse" in self.first.values


@dataclass(frozen=True)
class Paired:
    """All pairs, and what was left out, in words."""

    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...]


def pair_results(
    results: Results,
    first: str,
    second: str,
    metric: str | None = None,
    epsilons: Sequence[float] = (),
) -> Paired:
    """Return what two methods have in common: pairs of results on the same splits.

    Results of one config go together. On a dataset where no config has both methods, results of two
    configs do, if they split the same rows in the same way. Of several results on a dataset those
    with the most splits count; where these are several, it is left out. `left_out` names both.

    Parameters
    ----------
    first, second
        Labels, or names of methods.
    metric
        Name of the metric; default the config's, else AUROC, RMSE or accuracy.
    epsilons
        Only these privacy levels; default all that both have. A method without privacy is paired
        with each level of the other.

    Raises
    ------
    DpreproError
        If a method has no results, or no dataset is left: nothing is in common, splits differ,
        there is a single split in common, or several results are meant. The message says what to
        do.
    """
    if first == second:
        raise DpreproError(f"both methods are {first!r}: name two different ones")
    ours, theirs = (_named(results, name) for name in (first, second))
    unfinished = list(_unfinished(results, (first, second)))
    shared = _shared_datasets(ours, theirs, first, second, unfinished)
    problems: list[str] = []
    unpaired: dict[str, dict[str, list[float]]] = {}
    pairs: list[Pair] = []
    met: set[tuple[str, float]] = set()
    for dataset in shared:
        sides = [[c for c in found if c.dataset == dataset] for found in (ours, theirs)]
        together = _together(*sides)
        if not together:
            problems.append(f"{dataset}: {_differing(*sides)}")
            met |= {(dataset, cell.task.epsilon) for side in sides for cell in side}
        levels = _by_level(together, epsilons)
        both = itertools.chain.from_iterable(levels.values())
        met |= {(dataset, cell.task.epsilon) for pair in both for cell in pair}
        passed_over = _take_most_splits(levels)
        if passed_over:
            problems.append(
                f"{dataset}: results of the configs {', '.join(passed_over)}, which have fewer "
                "splits; choose them by --config"
            )
        several = next(((e, held) for e, held in levels.items() if len(held) > 1), None)
        if several is not None:
            problems.append(_ambiguous(dataset, *several, first, second))
            continue
        for epsilon, ((one, other),) in levels.items():
            found = _pair(one, other, metric)
            if isinstance(found, Pair):
                pairs.append(found)
            else:
                unpaired.setdefault(found, {}).setdefault(dataset, []).append(epsilon)
    for reason, places in unpaired.items():
        named = (f"{dataset} ({_levels(levels)})" for dataset, levels in places.items())
        problems.append(f"{', '.join(named)}: {reason}")
    if not pairs:
        reasons = problems or [_no_level(ours, theirs, first, second, epsilons)]
        raise DpreproError("\n".join([*reasons, *unfinished]))
    if not epsilons:
        for name, cells in ((first, ours), (second, theirs)):
            alone = [c for c in cells if c.dataset in shared]
            problems += _without_partner(name, alone, met)
    return Paired(tuple(pairs), (*problems, *unfinished))


def _named(results: Results, name: str) -> list[ResultCell]:
    """Return the finished results of a label; on datasets that lack it, those of the method."""
    cells = [cell for cell in results.cells if cell.values]
    labelled = {cell.dataset for cell in cells if cell.task.label == name}
    found = [
        cell
        for cell in cells
        if name == (cell.task.label if cell.dataset in labelled else cell.method)
    ]
    if not found:
        refuse_unknown(name, (n for cell in cells for n in (cell.task.label, cell.method)))
    return found


def refuse_unknown(name: str, names: Iterable[str]) -> NoReturn:
    """Raise DpreproError: `name` is none of the labels and methods that there are results of."""
    known = sorted(set(names))
    near = nearest_meant(name, known) or "."
    raise DpreproError(
        f"no finished results of {name!r}{near} Allowed are labels and methods of the journals "
        f"read: {', '.join(known)}"
    )


def _shared_datasets(
    ours: Sequence[ResultCell],
    theirs: Sequence[ResultCell],
    first: str,
    second: str,
    unfinished: Sequence[str],
) -> list[str]:
    names = [list(dict.fromkeys(cell.dataset for cell in found)) for found in (ours, theirs)]
    shared = [name for name in names[0] if name in names[1]]
    if not shared:
        cards = {cell.task.dataset for cell in ours} & {cell.task.dataset for cell in theirs}
        rows = f"The rows of {', '.join(sorted(cards))} differ. " if cards else ""
        raise DpreproError(
            f"{first} and {second} have no dataset in common. {first}: {', '.join(names[0])}. "
            f"{second}: {', '.join(names[1])}. {rows}{''.join(f'{one}. ' for one in unfinished)}"
            "`dprepro run` with both in one config runs them on the same splits"
        )
    return shared


def _unfinished(results: Results, names: Sequence[str]) -> Iterator[str]:
    """Yield the datasets that both methods were run on, and that one has no finished result of."""
    for dataset in dict.fromkeys(c.dataset for c in results.cells):
        of = [c for c in results.cells if c.dataset == dataset]
        held = {name: [c for c in of if name in (c.task.label, c.method)] for name in names}
        for name, cells in held.items():
            if all(held.values()) and not any(c.values for c in cells):
                failed = sum(c.failed for c in cells)
                yield f"{dataset}: no fit of {name} finished ({failed} failed)"


def _together(
    ours: Sequence[ResultCell], theirs: Sequence[ResultCell]
) -> list[tuple[ResultCell, ResultCell]]:
    """Return all pairs on the same splits: of one journal if there are any, else of two."""
    same = [(a, b) for a in ours for b in theirs if not _differences(a.task, b.task)]
    of_one = [(a, b) for a, b in same if set(a.journals) & set(b.journals)]
    return of_one or same


def _differing(ours: Sequence[ResultCell], theirs: Sequence[ResultCell]) -> str:
    closest = min(
        (_differences(a.task, b.task) for a in ours for b in theirs), key=lambda found: len(found)
    )
    return (
        f"the splits are not the same: {'; '.join(closest)}. Run both methods in one config, or in "
        "two that agree in this"
    )


def _differences(one: Task, other: Task) -> list[str]:
    """Return in words what the splits of two tasks do not share."""
    found = []
    of_one, of_other = _splits_of(one), _splits_of(other)
    for name, here in of_one.items():
        there = of_other[name]
        if here != there:
            is_data = name == "data_fingerprint"
            found.append("the rows differ" if is_data else f"{name} differs ({here} and {there})")
    return found


def _splits_of(task: Task) -> dict[str, Any]:
    """Return what tells splits apart. A null seed gives those of seed 0; a test set needs none."""
    return {
        "seed": 0 if task.evaluation == "test-set" else task.seed or 0,
        "test_share": task.test_share,
        "evaluation": task.evaluation,
        "data_fingerprint": task.data_fingerprint,
    }


def _by_level(
    together: Iterable[tuple[ResultCell, ResultCell]], epsilons: Sequence[float]
) -> dict[float, list[tuple[ResultCell, ResultCell]]]:
    """Return the pairs at each privacy level, in order; only those of `epsilons`, if any."""
    levels: dict[float, list[tuple[ResultCell, ResultCell]]] = {}
    for a, b in together:
        levels_of = {cell.task.epsilon for cell in (a, b)}
        epsilon = min(levels_of)
        is_wanted = not epsilons or epsilon in epsilons
        if is_wanted and (len(levels_of) == 1 or math.inf in levels_of):
            levels.setdefault(epsilon, []).append((a, b))
    return dict(sorted(levels.items()))


def _take_most_splits(levels: dict[float, list[tuple[ResultCell, ResultCell]]]) -> list[str]:
    """Keep at each level the pair with the most planned splits, if there is one such pair.

    Returns the configs of the pairs that are dropped.
    """
    dropped: dict[str, None] = {}
    for epsilon, held in levels.items():
        planned = [min(cell.planned for cell in pair) for pair in held]
        best = max(planned)
        if len(held) > 1 and planned.count(best) == 1:
            kept = held[planned.index(best)]
            levels[epsilon] = [kept]
            of_kept = {name for cell in kept for name in cell.journals}
            others = (cell for pair in held if pair is not kept for cell in pair)
            dropped |= dict.fromkeys(n for c in others for n in c.journals if n not in of_kept)
    return list(dropped)


def _ambiguous(
    dataset: str,
    epsilon: float,
    found: Sequence[tuple[ResultCell, ResultCell]],
    first: str,
    second: str,
) -> str:
    for side, name in ((0, first), (1, second)):
        labels = dict.fromkeys(pair[side].task.label for pair in found)
        if len(labels) > 1:
            return (
                f"{name!r} is a method with several labels on {dataset}: {', '.join(labels)}. "
                "Name one of them"
            )
    configs = dict.fromkeys(name for pair in found for cell in pair for name in cell.journals)
    return (
        f"several results with different settings are on {dataset} at {level_in_words(epsilon)}, "
        f"of the configs {', '.join(configs)}. Choose by --config"
    )


def _pair(one: ResultCell, other: ResultCell, metric: str | None) -> Pair | str:
    """Return the pair, or why there is none."""
    wanted = [find_metric(metric).name] if metric else [one.metric, other.metric, *_PREFERRED]
    name = next((n for n in wanted if n in one.values and n in other.values), None)
    if name is None:
        lacking = [cell for cell in (one, other) if wanted[0] not in cell.values]
        labels = " and ".join(cell.task.label for cell in lacking)
        reasons = dict.fromkeys(c.absent[wanted[0]] for c in lacking if wanted[0] in c.absent)
        if metric is None:
            return "the two have no metric in common"
        title = find_metric(wanted[0]).title
        return f"{labels}: no {title}. {'; '.join(reasons) or how_to_record(wanted[0])}".strip()
    splits = sorted(one.by_split(name).keys() & other.by_split(name).keys())
    if len(splits) < 2:
        number = "one split" if splits else "no split"
        return (
            f"{number} in common, and a difference without a spread says nothing: run at least two "
            "splits of both (`dprepro run CONFIG`, with `splits: 10` or more in the config)"
        )
    return Pair(one, other, find_metric(name), tuple(splits))


def _no_level(
    ours: Iterable[ResultCell],
    theirs: Iterable[ResultCell],
    first: str,
    second: str,
    epsilons: Sequence[float],
) -> str:
    asked = f" among those asked for ({_levels(epsilons)})" if epsilons else ""
    has = " ".join(
        f"{name} has results at: {_levels(cell.task.epsilon for cell in cells)}."
        for name, cells in ((first, ours), (second, theirs))
    )
    return f"{first} and {second} have no privacy level in common{asked}. {has}"


def _levels(epsilons: Iterable[float]) -> str:
    """Return privacy levels in words: ``"epsilon 0.5, 1"``, or ``"non-private"``."""
    first, *more = sorted(set(epsilons))
    return ", ".join([level_in_words(first), *map(level, more)])


def _without_partner(
    name: str, cells: Iterable[ResultCell], met: Container[tuple[str, float]]
) -> Iterator[str]:
    """Yield the privacy levels of a dataset that only this method has."""
    places: dict[str, list[float]] = {}
    for cell in cells:
        if (cell.dataset, cell.task.epsilon) not in met:
            places.setdefault(cell.dataset, []).append(cell.task.epsilon)
    for dataset, epsilons in places.items():
        yield f"{dataset}: only {name} has results at {_levels(epsilons)}"
