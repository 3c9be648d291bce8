"""Many methods ranked over datasets: Friedman's test, tests of all pairs, groups of methods.

Follows Demsar (2006, Journal of Machine Learning Research 7), but for the tests of pairs. There he
compares mean ranks (Nemenyi), and whether two methods differ then depends on which others are
ranked with them. Benavoli, Corani and Mangili (2016, JMLR 17) therefore advise signed-rank tests of
each pair, adjusted for their number (Holm), as here.

Datasets are what is independent, so they are the blocks. A dataset at several privacy levels is one
block: its scores are means over the levels. On a single dataset, splits are ranked, and pairs have
the corrected resampled t test of `dprepro.judge.comparing`.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dprepro.judge.blocks import Block, collect_blocks, lacking, largest_complete
from dprepro.judge.comparing import (
    PairedTest,
    holm,
    paired_test,
    sign_patterns,
    signed_rank_test,
)
from dprepro.judge.two_means import LEVEL, ROUNDING, score_difference
from dprepro.results.folder import ResultCell, Results
from dprepro.results.margins import Metric, level_in_words
from dprepro.runtime.errors import DpreproError

FEWEST_DATASETS = 5
"""Of fewer there is no test over datasets: it could hardly reject whatever the methods do."""
# More groups than letters tell a reader nothing.
_MOST_GROUPS = 26


@dataclass(frozen=True)
class Scores:
    """The scores of several methods on one dataset, the same splits for all.

    `values` are by method, one a split, means over the privacy levels `epsilons`. `overlap` is test
    rows by training rows, see `paired_test`. `cells` are the results that they come from.
    """

    dataset: str
    metric: Metric
    epsilons: tuple[float, ...]
    splits: tuple[int, ...]
    overlap: float
    evaluation: str
    values: Mapping[str, tuple[float, ...]]
    cells: tuple[ResultCell, ...]

    def mean(self, method: str) -> float:
        """Return the mean over splits."""
        return statistics.fmean(self.values[method])

    def advantage(self, first: str, second: str) -> float:
        """Return how much better the first is in the mean, in units of the metric; 0 if equal."""
        return self._signed(self.mean(first), self.mean(second))

    def advantages(self, first: str, second: str) -> list[float]:
        """Return how much better the first is on each split."""
        pairs = zip(self.values[first], self.values[second], strict=True)
        return [self._signed(one, other) for one, other in pairs]

    def margin(self, first: str, second: str) -> float:
        """Return the difference that a reader would not mind, in units of the metric."""
        return self.metric.margin_between(self.mean(first), self.mean(second))

    def by_split(self) -> list[Scores]:
        """Return the scores on each split by itself."""
        return [
            replace(self, splits=(split,), values={m: (v[k],) for m, v in self.values.items()})
            for k, split in enumerate(self.splits)
        ]

    def _signed(self, one: float, other: float) -> float:
        found = score_difference(one, other)
        return found if self.metric.higher_is_better or not found else -found


@dataclass(frozen=True)
class OnDataset:
    """Two methods on one dataset.

    `test` is of the differences over splits, first minus second in units of the metric, and
    `p_holm` its p-value adjusted for all pairs of methods on this dataset. `advantage` is how much
    better the first is in the mean, in margins of the metric. The first is better, equal and worse
    on `won`, `tied` and `lost` splits.
    """

    scores: Scores
    test: PairedTest
    p_holm: float | None
    advantage: float
    won: int
    tied: int
    lost: int

    @property
    def is_different(self) -> bool:
        """Whether the methods are shown to differ on this dataset."""
        return self.p_holm is not None and self.p_holm < LEVEL


@dataclass(frozen=True)
class RankedPair:
    """Two methods over all datasets of a ranking, the first with the better mean rank.

    `on` is by dataset. `typical` is the Hodges-Lehmann estimate of the first's advantage in
    margins, and `low` and `high` bound its 95 % interval by the signed-rank test; they are None
    of fewer than six datasets, for which there is no such interval. `p` is of the signed-rank test,
    or on a single dataset of the test there, and None where nothing is tested.
    """

    first: str
    second: str
    on: tuple[OnDataset, ...]
    typical: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None = None

    @property
    def counts(self) -> tuple[int, int, int]:
        """On how many datasets the first is better, equal and worse in the mean."""
        signs = [found.advantage for found in self.on]
        won, lost = sum(s > 0 for s in signs), sum(s < 0 for s in signs)
        return won, len(signs) - won - lost, lost

    @property
    def shown(self) -> tuple[int, int]:
        """On how many datasets the first is shown to be better there, and the second."""
        signs = [found.advantage for found in self.on if found.is_different]
        return sum(s > 0 for s in signs), sum(s < 0 for s in signs)

    @property
    def better(self) -> str:
        """The method that is shown to be better at the 5 % level of all pairs, or empty."""
        if self.p_holm is None or self.p_holm >= LEVEL:
            return ""
        direction = self.on[0].advantage if len(self.on) == 1 else self.typical
        return self.first if direction > 0 else self.second


@dataclass(frozen=True)
class Friedman:
    """Whether all methods have the same mean rank.

    `chi_squared` is corrected for ties and has `freedom` degrees of freedom. `f` is Iman and
    Davenport's statistic, with `freedom` and `freedom_below`; `p` is its p-value, `p_chi_squared`
    that of the other. Where all datasets have the same ranking, `f` is infinite.
    """

    chi_squared: float
    freedom: int
    p_chi_squared: float
    f: float
    freedom_below: int
    p: float


@dataclass(frozen=True)
class Ranking:
    """Methods ranked at one privacy level, or over several.

    Attributes
    ----------
    epsilons
        The levels; several where scores are means over them.
    mean_ranks
        By method, best first: 1 for a method that is best everywhere. The mean is over datasets, or
        over the splits of a single one.
    win_rates
        By pair of methods: on which share of the datasets, or splits, the first is better; ties
        count half.
    friedman
        None of fewer datasets than `FEWEST_DATASETS`.
    pairs
        All pairs of methods.
    groups
        The largest sets of methods of which no two are shown to differ; single ones, too. None if
        no pair is tested, or there are more sets than letters.
    left_out
        Methods and datasets without results of all, in words.
    """

    epsilons: tuple[float, ...]
    scores: tuple[Scores, ...]
    mean_ranks: Mapping[str, float]
    win_rates: Mapping[tuple[str, str], float]
    friedman: Friedman | None
    pairs: tuple[RankedPair, ...]
    groups: tuple[tuple[str, ...], ...] | None
    left_out: tuple[str, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, best first."""
        return tuple(self.mean_ranks)

    @property
    def at(self) -> str:
        """The privacy levels in words."""
        if len(self.epsilons) > 1:
            return f"epsilons {', '.join(f'{epsilon:g}' for epsilon in self.epsilons)}"
        return level_in_words(self.epsilons[0])

    @property
    def title(self) -> str:
        """The privacy levels, and what is ranked, in words."""
        if len(self.scores) > 1:
            return f"{self.at}, {len(self.scores)} datasets"
        (one,) = self.scores
        return f"{self.at}, {len(one.splits)} splits of {one.dataset}"

    @property
    def is_tested(self) -> bool:
        """Whether pairs are tested: not if no difference could be large enough."""
        return any(pair.p_holm is not None for pair in self.pairs)

    @property
    def datasets_needed(self) -> int:
        """Of how many datasets signed-rank tests of all pairs could show a difference."""
        return next(n for n in itertools.count(1) if len(self.pairs) * 2 ** (1 - n) < LEVEL)


@dataclass(frozen=True)
class MethodRankings:
    """All that is said of many methods.

    `rankings` has one at each privacy level, then, if they are several, one over the levels.
    `left_out` says what fits into no ranking.
    """

    rankings: tuple[Ranking, ...]
    left_out: tuple[str, ...]

    @cached_property
    def main(self) -> Ranking:
        """The ranking over all levels, or of the first level with the most datasets."""
        return max(self.rankings, key=lambda r: (len(r.epsilons) > 1, len(r.scores)))


def rank_methods(
    results: Results,
    names: Sequence[str],
    metric: str | None = None,
    epsilons: Sequence[float] = (),
    is_all: bool = False,
) -> MethodRankings:
    """Rank three methods or more at each privacy level, and over all levels.

    Raises DpreproError if a name has no results, or no three methods share a dataset; the message
    says why. See `collect_blocks` for the parameters and for which results belong together.
    """
    blocks, problems = collect_blocks(results, names, metric, epsilons, is_all)
    levels = sorted({block.epsilon for block in blocks})
    rankings = []
    for epsilon in levels:
        found = _ranking([block for block in blocks if block.epsilon == epsilon])
        if found is None:
            problems.append(
                f"{level_in_words(epsilon)}: fewer than three methods have results on the same "
                "splits of a dataset"
            )
        else:
            rankings.append(found)
    over = _ranking([block for block in blocks if math.isfinite(block.epsilon)])
    if over is not None and len(over.epsilons) > 1:
        rankings.append(over)
    if not rankings:
        met = {name for block in blocks for name in block.cells}
        raise DpreproError("\n".join([*problems, *_what_to_do(names, met, is_all)]))
    return MethodRankings(tuple(rankings), tuple(problems))


def _what_to_do(names: Sequence[str], met: Collection[str], is_all: bool) -> Iterator[str]:
    yield "A ranking needs three methods or more with results on the same splits of a dataset."
    if is_all:
        yield (
            "Where all methods are compared, those without privacy are compared with each other "
            "alone; where you name them, with others at each level, too."
        )
    pair = [name for name in names if name in met][:2]
    if len(pair) == 2:
        yield f"`dprepro compare {' '.join(pair)}` compares two."
    yield "`dprepro run` with all methods in one config runs them on the same splits"


def _ranking(blocks: Sequence[Block]) -> Ranking | None:
    names, kept = largest_complete(blocks)
    scores = [
        found
        for dataset in dict.fromkeys(block.dataset for block in kept)
        if (found := _scores(names, [block for block in kept if block.dataset == dataset]))
    ]
    if not scores:
        return None
    several = len(scores) > 1
    wins = _win_rates(names, scores if several else scores[0].by_split())
    ranks = _ranks(names, wins)
    methods = sorted(names, key=ranks.__getitem__)
    is_enough = len(scores) >= FEWEST_DATASETS
    pairs = _pairs(methods, scores)
    if is_enough and len(pairs) * 2 ** (1 - len(scores)) < LEVEL:
        pairs = [replace(pair, p=_signed_rank(pair)) for pair in pairs]
    pairs = _adjusted(pairs)
    epsilons = tuple(sorted({epsilon for found in scores for epsilon in found.epsilons}))
    ranking = Ranking(
        epsilons,
        tuple(scores),
        {name: ranks[name] for name in methods},
        wins,
        friedman([list(_ranks_on(names, one).values()) for one in scores]) if is_enough else None,
        tuple(pairs),
        None,
        tuple(lacking(names, kept, blocks)),
    )
    return replace(ranking, groups=_groups(methods, pairs)) if ranking.is_tested else ranking


def _scores(names: Sequence[str], blocks: Sequence[Block]) -> Scores | None:
    """Return the scores on one dataset, means over its levels; None without two common splits."""
    common = set.intersection(*(set(block.splits(names)) for block in blocks))
    splits = tuple(sorted(common))
    # A metric of its own at one level alone is left to that level.
    blocks = [block for block in blocks if block.metric == blocks[0].metric]
    if len(splits) < 2:
        return None
    task = blocks[0].task
    values = {
        name: tuple(
            map(statistics.fmean, zip(*(b.values(name, splits) for b in blocks), strict=True))
        )
        for name in names
    }
    return Scores(
        blocks[0].dataset,
        blocks[0].metric,
        tuple(block.epsilon for block in blocks),
        splits,
        task.test_share / (1 - task.test_share),
        task.evaluation,
        values,
        tuple(block.cells[name] for block in blocks for name in names),
    )


def _win_rates(names: Sequence[str], blocks: Sequence[Scores]) -> dict[tuple[str, str], float]:
    """Return by pair on which share of the blocks the first has the better mean."""
    found = {}
    for first, second in itertools.permutations(names, 2):
        advantages = [one.advantage(first, second) for one in blocks]
        points = sum(1.0 if a > 0 else 0.5 if a == 0 else 0.0 for a in advantages)
        found[first, second] = points / len(advantages)
    return found


def _ranks(names: Sequence[str], wins: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return the mean rank of each method, 1 for the best; equal ones share a rank."""
    return {
        name: 1 + math.fsum(wins[other, name] for other in names if other != name) for name in names
    }


def _ranks_on(names: Sequence[str], scores: Scores) -> dict[str, float]:
    return _ranks(names, _win_rates(names, [scores]))


def ranks_on(ranking: Ranking, scores: Scores) -> dict[str, float]:
    """Return the rank of each method on one dataset of a ranking."""
    return _ranks_on(ranking.methods, scores)


def friedman(ranks: Sequence[Sequence[float]]) -> Friedman:
    """Test whether all methods have the same mean rank (Friedman 1937, Iman and Davenport 1980).

    With mean ranks R over n datasets, of k methods,

        chi² = (k - 1) n² sum (R - (k + 1)/2)² / (sum of squared ranks - n k (k + 1)²/4)
        F = (n - 1) chi² / (n (k - 1) - chi²),  with k - 1 and (k - 1)(n - 1) degrees of freedom

    The denominator of chi² corrects for ties. Where F is infinite, p is the probability that n
    rankings at random are the same, 1/k!^(n - 1).

    Parameters
    ----------
    ranks
        One row a dataset, two or more, and one column a method.
    """
    n, k = len(ranks), len(ranks[0])
    sums = [math.fsum(column) for column in zip(*ranks, strict=True)]
    spread = math.fsum(r * r for row in ranks for r in row) - n * k * (k + 1) ** 2 / 4
    freedom, below = k - 1, (k - 1) * (n - 1)
    if spread <= ROUNDING:  # all methods tie everywhere
        return Friedman(0.0, freedom, 1.0, 0.0, below, 1.0)
    chi_squared = freedom * math.fsum((s - n * (k + 1) / 2) ** 2 for s in sums) / spread
    from scipy.special import chdtrc, fdtrc  # `scipy.stats` takes half a second to import

    p_chi_squared = float(chdtrc(freedom, chi_squared))
    rest = n * freedom - chi_squared
    if rest <= ROUNDING * n * freedom:
        same = 1 / math.factorial(k) ** (n - 1)
        return Friedman(chi_squared, freedom, p_chi_squared, math.inf, below, same)
    f = (n - 1) * chi_squared / rest
    return Friedman(chi_squared, freedom, p_chi_squared, f, below, float(fdtrc(freedom, below, f)))


def _pairs(methods: Sequence[str], scores: Sequence[Scores]) -> list[RankedPair]:
    """Return all pairs, without a test over datasets; of a single one with the test there."""
    names = list(itertools.combinations(methods, 2))
    columns = []
    for one in scores:
        found = [_on(one, *pair) for pair in names]
        adjusted = iter(holm([o.test.p for o in found if o.test.p is not None]))
        columns.append(
            [o if o.test.p is None else replace(o, p_holm=next(adjusted)) for o in found]
        )
    pairs = []
    for (first, second), on in zip(names, zip(*columns, strict=True), strict=True):
        typical, low, high = hodges_lehmann([found.advantage for found in on])
        p = on[0].test.p if len(on) == 1 else None
        pairs.append(RankedPair(first, second, on, typical, low, high, p))
    return pairs


def _on(scores: Scores, first: str, second: str) -> OnDataset:
    ours, theirs = scores.values[first], scores.values[second]
    differences = list(map(score_difference, ours, theirs))
    rounding = ROUNDING * max(map(abs, (*ours, *theirs)))
    advantages = scores.advantages(first, second)
    won, lost = sum(a > 0 for a in advantages), sum(a < 0 for a in advantages)
    advantage = scores.advantage(first, second)
    return OnDataset(
        scores,
        paired_test(differences, scores.overlap, rounding),
        None,
        advantage / scores.margin(first, second) if advantage else 0.0,
        won,
        len(advantages) - won - lost,
        lost,
    )


def _signed_rank(pair: RankedPair) -> float:
    found = [on.advantage for on in pair.on if on.advantage]
    return signed_rank_test(found) if found else 1.0


def _adjusted(pairs: Sequence[RankedPair]) -> list[RankedPair]:
    adjusted = iter(holm([pair.p for pair in pairs if pair.p is not None]))
    return [pair if pair.p is None else replace(pair, p_holm=next(adjusted)) for pair in pairs]


def hodges_lehmann(
    advantages: Sequence[float], confidence: float = 0.95
) -> tuple[float, float | None, float | None]:
    """Return the median of the means of all pairs of advantages, and its interval.

    The interval holds the shifts that the signed-rank test does not reject at 1 - `confidence`; its
    ends are None where there are too few advantages for one: fewer than six for 95 %.
    """
    means = sorted(
        (one + other) / 2 for one, other in itertools.combinations_with_replacement(advantages, 2)
    )
    typical = statistics.median(means)
    number = len(advantages)
    patterns = sign_patterns(range(1, number + 1))
    room = (1 - confidence) / 2 * 2**number
    cut, tail = 0, 0
    while tail + patterns[cut] <= room:
        tail += patterns[cut]
        cut += 1
    return (typical, means[cut - 1], means[-cut]) if cut else (typical, None, None)


def _groups(
    methods: Sequence[str], pairs: Sequence[RankedPair]
) -> tuple[tuple[str, ...], ...] | None:
    alike: dict[str, set[str]] = {name: set() for name in methods}
    for pair in pairs:
        if not pair.better:
            alike[pair.first].add(pair.second)
            alike[pair.second].add(pair.first)
    found = list(itertools.islice(_cliques(alike, set(), set(methods), set()), _MOST_GROUPS + 1))
    if len(found) > _MOST_GROUPS:
        return None
    places = [sorted(methods.index(name) for name in group) for group in found]
    return tuple(tuple(methods[place] for place in group) for group in sorted(places))


def _cliques(
    alike: Mapping[str, set[str]], held: set[str], open_: set[str], done: set[str]
) -> Iterator[set[str]]:
    """Yield the largest sets of which any two are alike (Bron and Kerbosch 1973, with a pivot)."""
    if not open_ and not done:
        yield held
        return
    pivot = max(sorted(open_ | done), key=lambda name: len(alike[name] & open_))
    for name in sorted(open_ - alike[pivot]):
        yield from _cliques(alike, held | {name}, open_ & alike[name], done & alike[name])
        open_, done = open_ - {name}, done | {name}
