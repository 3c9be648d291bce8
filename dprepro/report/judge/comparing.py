"""Two methods compared: paired differences over splits, and wins over datasets."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dprepro.report.judge.pairing import Pair, pair_results
from dprepro.report.judge.statistics import LEVEL, ROUNDING, score_difference
from dprepro.report.read.results import Results

_CONFIDENCE = 0.95
# Of the largest difference: spread that is less than this is none.
_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class PairedTest:
    """Whether the mean of paired differences is 0.

    Attributes
    ----------
    mean, sd
        Of the differences; `sd` with ddof 1.
    standard_error
        Of the mean.
    freedom
        Degrees of freedom of Student's t distribution.
    low, high
        The 95 % confidence interval of the mean.
    p
        P-value, two-sided; None where all differences are the same, so that there is no spread.
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

    Attributes
    ----------
    test
        Of the differences, first minus second.
    p_holm
        P-value adjusted for all rows (Holm); None where the test has none.
    won, tied, lost
        Number of splits on which the first is better, equal, worse.
    """

    pair: Pair
    test: PairedTest
    p_holm: float | None
    won: int
    tied: int
    lost: int

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

    Attributes
    ----------
    won, tied, lost
        Number of datasets on which the first is better, equal, worse in the mean.
    p_sign
        P-value of the sign test, two-sided; None if all are tied.
    p_wilcoxon
        That of the signed-rank test; None where differences of two datasets cannot be compared.
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

    Attributes
    ----------
    rows
        By dataset, then by privacy level.
    across
        By privacy level, where there are several datasets, stand-ins apart. The p-values are not
        adjusted.
    left_out
        What only one of the methods has, in words.
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
    """Return n_test/n_train of a pair's splits; 0 with a published test set.

    It is 1/(k - 1) for k folds, whose test share is 1/k.
    """
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


def _row(pair: Pair) -> Row:
    differences = [score_difference(ours, theirs) for ours, theirs in pair.values]
    largest = max(abs(score) for scores in pair.values for score in scores)
    test = paired_test(differences, overlap_of(pair), ROUNDING * largest)
    return Row(pair, test, None, *_counts([_advantage(pair, d) for d in differences]))


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

    It counts the patterns of signs by the sum of the ranks that they make positive.

    Parameters
    ----------
    differences
        One or more, none of them 0.
    """
    sizes = sorted(map(abs, differences))
    doubled = [bisect_left(sizes, abs(d)) + bisect_right(sizes, abs(d)) + 1 for d in differences]
    patterns = Counter({0: 1})
    for rank in doubled:
        patterns += Counter({total + rank: count for total, count in patterns.items()})
    positive = sum(rank for rank, d in zip(doubled, differences, strict=True) if d > 0)
    least = min(positive, sum(doubled) - positive)
    tail = sum(count for total, count in patterns.items() if total <= least)
    return min(1.0, 2 * tail / 2 ** len(doubled))


def _mean_difference(row: Row) -> float:
    """Return the mean difference of a row, 0 where differences that cancel leave last bits."""
    ours, theirs = (statistics.fmean(scores) for scores in zip(*row.pair.values, strict=True))
    return row.test.mean if score_difference(ours, theirs) else 0.0


def _advantage(pair: Pair, difference: float) -> float:
    return difference if pair.metric.higher_is_better else -difference


def _counts(advantages: Sequence[float]) -> tuple[int, int, int]:
    """Return how many are above, at and below 0."""
    won, lost = sum(a > 0 for a in advantages), sum(a < 0 for a in advantages)
    return won, len(advantages) - won - lost, lost
