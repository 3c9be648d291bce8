"""Two methods compared: paired differences over the splits of both, and wins over datasets."""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from dprepro.experiment.method_names import nearest_meant
from dprepro.experiment.record import Task
from dprepro.judge.two_means import LEVEL, ROUNDING, score_difference
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Metric, find_metric, how_to_record, level, level_in_words
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import MOST_NAMED, in_short

PREFERRED = ("auc", "rmse", "accuracy")
"""The metrics to compare by where no config names one."""
_CONFIDENCE = 0.95
# Of the largest difference: spread that is less than this is none.
_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Pair:
    """The results of two methods on the same splits of a dataset.

    One of the two has the privacy level `epsilon`, the other has the same or none. `splits` are the
    numbers of the splits that both have finished.
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

    Raises DpreproError if a method has no results, or no dataset is left; the message says why and
    what to do.

    Parameters
    ----------
    first, second
        Labels, or names of methods.
    metric
        Name of the metric; default the config's, else AUROC, RMSE or accuracy.
    epsilons
        Only these privacy levels; default all that both have. A method without privacy is paired
        with each level of the other.
    """
    if first == second:
        raise DpreproError(f"both methods are {first!r}: name two different ones")
    ours, theirs = (named_results(results, name) for name in (first, second))
    unfinished = list(_unfinished(results, (first, second)))
    shared = _shared_datasets(ours, theirs, first, second, unfinished)
    pairs: list[Pair] = []
    problems: list[str] = []
    unpaired: dict[str, dict[str, list[float]]] = {}
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
            found = pair_cells(one, other, metric)
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


def named_results(results: Results, name: str) -> list[ResultCell]:
    """Return the finished results of a label; on datasets that lack it, those of the method.

    Raises DpreproError if there are none; the message has the nearest name.
    """
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
    from dprepro.methods.registry import refuse_shared

    # Names with a blank are a method with its settings: the methods come first.
    known = sorted(set(names), key=lambda known: (" " in known, known))
    refuse_shared(name, known)
    near = nearest_meant(name, known) or "."
    raise DpreproError(
        f"no finished results of {name!r}{near} Allowed are labels and methods of the journals "
        f"read: {in_short(known, MOST_NAMED)}"
    )


def _shared_datasets(
    ours: Sequence[ResultCell],
    theirs: Sequence[ResultCell],
    first: str,
    second: str,
    unfinished: Sequence[str],
) -> list[str]:
    names = [list(dict.fromkeys(cell.dataset for cell in found)) for found in (ours, theirs)]
    if shared := [name for name in names[0] if name in names[1]]:
        return shared
    cards = {cell.task.dataset for cell in ours} & {cell.task.dataset for cell in theirs}
    rows = f"The rows of {', '.join(sorted(cards))} differ. " if cards else ""
    raise DpreproError(
        f"{first} and {second} have no dataset in common. {first}: {', '.join(names[0])}. "
        f"{second}: {', '.join(names[1])}. {rows}{''.join(f'{one}. ' for one in unfinished)}"
        "`dprepro run` with both in one config runs them on the same splits"
    )


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
    same = [(a, b) for a in ours for b in theirs if not differing_splits(a.task, b.task)]
    of_one = [(a, b) for a, b in same if set(a.journals) & set(b.journals)]
    return of_one or same


def _differing(ours: Sequence[ResultCell], theirs: Sequence[ResultCell]) -> str:
    closest = min((differing_splits(a.task, b.task) for a in ours for b in theirs), key=len)
    return (
        f"the splits are not the same: {'; '.join(closest)}. Run both methods in one config, or in "
        "two that agree in this"
    )


def splitting(task: Task) -> dict[str, object]:
    """Return what decides how rows are split: tasks that agree in all of it have the same splits.

    A null seed gives the splits of seed 0; a test set needs none.
    """
    return {
        "seed": 0 if task.evaluation == "test-set" else task.seed or 0,
        "test_share": task.test_share,
        "evaluation": task.evaluation,
        "rows": task.data_fingerprint,
    }


def differing_splits(one: Task, other: Task) -> list[str]:
    """Return in words what the splits of two tasks do not share; nothing if they are the same."""
    ours, theirs = splitting(one), splitting(other)
    return [
        "the rows differ" if name == "rows" else f"{name} differs ({value} and {theirs[name]})"
        for name, value in ours.items()
        if value != theirs[name]
    ]


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
    """Keep at each level the one pair with most planned splits; return the configs of others."""
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


def pair_cells(one: ResultCell, other: ResultCell, metric: str | None) -> Pair | str:
    """Return what two cells have in common, or in words why there is nothing to compare."""
    wanted = [find_metric(metric).name] if metric else [one.metric, other.metric, *PREFERRED]
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


@dataclass(frozen=True)
class PairedTest:
    """Whether the mean of paired differences is 0.

    `mean` and `sd` (ddof 1) are those of the differences, `standard_error` that of the mean. `low`
    and `high` bound its 95 % confidence interval, by Student's t with `freedom` degrees of freedom.
    `p` is two-sided, and None where all differences are the same, so that there is no spread.
    """

    mean: float
    sd: float
    standard_error: float
    freedom: int
    low: float
    high: float
    p: float | None


@dataclass(frozen=True)
class Row:
    """Two methods on one dataset at one privacy level.

    `test` is of the differences, first minus second, and `p_holm` its p-value adjusted for all rows
    (Holm). The first is better, equal and worse on `won`, `tied` and `lost` splits.
    """

    pair: Pair
    test: PairedTest
    p_holm: float | None
    won: int
    tied: int
    lost: int

    @property
    def means(self) -> tuple[float, float]:
        """The mean of each method over the splits, in units of the metric."""
        ours, theirs = zip(*self.pair.values, strict=True)
        return statistics.fmean(ours), statistics.fmean(theirs)

    @property
    def advantage(self) -> float:
        """How much better the first is in the mean, in margins of the metric."""
        found = _advantage(self.pair, _mean_difference(self))
        return found / self.pair.metric.margin_between(*self.means) if found else 0.0

    @property
    def better(self) -> str:
        """The label that is shown to be better at the 5 % level of all rows, or empty."""
        if self.p_holm is None or self.p_holm >= LEVEL:
            return ""
        is_first = (self.test.mean > 0) == self.pair.metric.higher_is_better
        return (self.pair.first if is_first else self.pair.second).task.label


@dataclass(frozen=True)
class AcrossDatasets:
    """Two methods on several datasets at one privacy level, a mean difference each.

    The first is better, equal and worse in the mean on `won`, `tied` and `lost` datasets. The
    two-sided p-value of the sign test is None if all are tied, that of the signed-rank test where
    differences of two datasets cannot be compared.
    """

    epsilon: float
    won: int
    tied: int
    lost: int
    p_sign: float | None
    p_wilcoxon: float | None

    @property
    def datasets(self) -> int:
        """How many there are."""
        return self.won + self.tied + self.lost


@dataclass(frozen=True)
class MethodComparison:
    """All that is said of two methods.

    `rows` are by dataset, then by privacy level. `across` is by privacy level, where there are
    several datasets, stand-ins apart; its p-values are not adjusted. `left_out` says what only one
    of the methods has.
    """

    first: str
    second: str
    rows: tuple[Row, ...]
    across: tuple[AcrossDatasets, ...]
    left_out: tuple[str, ...]


def compare_methods(
    results: Results,
    first: str,
    second: str,
    metric: str | None = None,
    epsilons: Sequence[float] = (),
) -> MethodComparison:
    """Compare two methods wherever both have results on the same splits.

    See `pair_results` for the parameters and for what is refused.
    """
    paired = pair_results(results, first, second, metric, epsilons)
    rows = [_row(pair) for pair in paired.pairs]
    adjusted = iter(holm([row.test.p for row in rows if row.test.p is not None]))
    rows = [row if row.test.p is None else replace(row, p_holm=next(adjusted)) for row in rows]
    real = [row for row in rows if not row.pair.first.task.is_synthetic]
    levels = sorted({row.pair.epsilon for row in real})
    across = [_across(level, [r for r in real if r.pair.epsilon == level]) for level in levels]
    several = tuple(found for found in across if found.datasets > 1)
    return MethodComparison(first, second, tuple(rows), several, paired.left_out)


def paired_test(differences: Sequence[float], overlap: float, rounding: float = 0.0) -> PairedTest:
    """Test whether the mean of paired differences over J splits is 0.

        t = mean / sqrt((1/J + n_test/n_train) sd^2),  with J - 1 degrees of freedom

    This is the corrected resampled t test of Nadeau and Bengio (2003, Machine Learning 52, section
    3.2): training sets of random splits overlap, so their differences are correlated, and sd^2/J is
    too small a variance for a claim about new rows. Without overlap it is Student's paired test.

    Parameters
    ----------
    differences
        One a split, two or more, in units of the metric.
    overlap
        n_test/n_train; 0 where the splits share their rows and differ in noise alone.
    rounding
        How far differences may lie apart that are the same but for the last bits of scores.
    """
    mean, splits = statistics.fmean(differences), len(differences)
    # Differences that should be the same differ in their last bits: no spread either.
    least = max(rounding, _NO_SPREAD * max(map(abs, differences)))
    if max(differences) - min(differences) <= least:
        same = differences[0]
        return PairedTest(same, 0.0, 0.0, splits - 1, same, same, None)
    sd = statistics.stdev(differences)
    error = math.sqrt((1 / splits + overlap) * sd**2)
    from scipy.special import stdtr, stdtrit  # a tenth of a second; `scipy.stats` takes half

    reach = float(stdtrit(splits - 1, 0.5 + _CONFIDENCE / 2)) * error
    p = 2 * float(stdtr(splits - 1, -abs(mean) / error))
    return PairedTest(mean, sd, error, splits - 1, mean - reach, mean + reach, p)


def overlap_of(pair: Pair) -> float:
    """Return n_test/n_train: 1/(k - 1) for k folds, 0 with a published test set."""
    share = pair.first.task.test_share
    return share / (1 - share)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values (Holm 1979): those below 5 % have 5 % of a false one together."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, (len(p_values) - rank) * p_values[place])
        adjusted[place] = min(largest, 1.0)
    return adjusted


def test_of(pair: Pair) -> PairedTest:
    """Test whether two cells have the same mean: see `paired_test`."""
    largest = max(abs(score) for scores in pair.values for score in scores)
    return paired_test(_differences(pair), overlap_of(pair), ROUNDING * largest)


def _differences(pair: Pair) -> list[float]:
    return [score_difference(ours, theirs) for ours, theirs in pair.values]


def _row(pair: Pair) -> Row:
    advantages = [_advantage(pair, difference) for difference in _differences(pair)]
    return Row(pair, test_of(pair), None, *_counts(advantages))


def _across(epsilon: float, rows: Sequence[Row]) -> AcrossDatasets:
    advantages = [_advantage(row.pair, _mean_difference(row)) for row in rows]
    won, tied, lost = _counts(advantages)
    p_sign = sign_test(won, lost) if won + lost else None
    is_comparable = len({row.pair.metric for row in rows}) == 1 and not any(
        # An error of a regression is in units of its target.
        row.pair.is_regression and not row.pair.metric.higher_is_better
        for row in rows
    )
    p_wilcoxon = None
    if is_comparable and won + lost:
        p_wilcoxon = signed_rank_test([found for found in advantages if found])
    return AcrossDatasets(epsilon, won, tied, lost, p_sign, p_wilcoxon)


# Of `scipy.stats` these two would be all, and it takes half a second to import.
def sign_test(won: int, lost: int) -> float:
    """Return the two-sided p-value of the sign test: wins as tosses of a fair coin."""
    tail = sum(math.comb(won + lost, count) for count in range(min(won, lost) + 1))
    return min(1.0, 2 * tail / 2 ** (won + lost))


def signed_rank_test(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, exactly, also where sizes tie.

    It counts the patterns of signs by the sum of the ranks that they make positive. No difference
    may be 0.
    """
    sizes = sorted(map(abs, differences))
    doubled = [bisect_left(sizes, abs(d)) + bisect_right(sizes, abs(d)) + 1 for d in differences]
    patterns = sign_patterns(doubled)
    positive = sum(rank for rank, d in zip(doubled, differences, strict=True) if d > 0)
    least = min(positive, sum(doubled) - positive)
    tail = sum(count for total, count in patterns.items() if total <= least)
    return min(1.0, 2 * tail / 2 ** len(doubled))


def sign_patterns(ranks: Iterable[int]) -> Counter[int]:
    """Return how many patterns of signs give each sum of the ranks with a positive sign."""
    patterns = Counter({0: 1})
    for rank in ranks:
        patterns += Counter({total + rank: count for total, count in patterns.items()})
    return patterns


def _mean_difference(row: Row) -> float:
    """Return the mean difference of a row, 0 where differences that cancel leave last bits."""
    return row.test.mean if score_difference(*row.means) else 0.0


def _advantage(pair: Pair, difference: float) -> float:
    return difference if pair.metric.higher_is_better else -difference


def _counts(advantages: Sequence[float]) -> tuple[int, int, int]:
    """Return how many are above, at and below 0."""
    won, lost = sum(a > 0 for a in advantages), sum(a < 0 for a in advantages)
    return won, len(advantages) - won - lost, lost
