"""What would decide an inconclusive cell: so many splits of ours, or nothing that we can run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from dprepro.judge.statistics import Sample, compare

# As many of ours as one likes: what they add to an error is far below any printed digit.
_ALL = 10**7


class LimitedBy(str, Enum):
    """What keeps a cell from a verdict.

    OUR_SPLITS: more splits of ours would decide it. DIFFERENCE: not at the present difference,
    which lies too near the margin; with more splits it may move away. PRINTED_SPREAD,
    NO_PRINTED_SD: the printed mean itself is not known well enough to be shown equivalent; without
    a printed standard deviation it counts as a single run.
    """

    OUR_SPLITS = "our splits"
    DIFFERENCE = "difference near the margin"
    PRINTED_SPREAD = "printed spread"
    NO_PRINTED_SD = "no printed sd"


@dataclass(frozen=True)
class Undecided:
    """What limits an inconclusive cell; `splits` of ours in all would decide it (None: none)."""

    limited_by: LimitedBy
    splits: int | None = None

    def __str__(self) -> str:
        if self.splits is not None:
            return f"{self.splits:,} splits of ours would decide it"
        return _WORDS[self.limited_by]


_WORDS = {
    LimitedBy.DIFFERENCE: "difference too near the margin for more splits of ours to decide",
    LimitedBy.PRINTED_SPREAD: "limited by the printed spread: more splits of ours do not decide it",
    LimitedBy.NO_PRINTED_SD: "no printed sd: more splits of ours do not decide it",
}


def splits_needed(
    ours: Sample, published: Sample, margin: float, level: float, share: float = 1.0
) -> Undecided:
    """Return the least number n of our splits that would decide an inconclusive cell.

    With n splits of ours the standard error of the difference d is (see `compare`)

        e(n)^2 = s(n)^2 (1/n + 1/J) + unit^2/12,
        s(n)^2 = ((n - 1) sd^2 + (J - 1) sd_printed^2) / (n + J - 2)

    for J printed splits. d, both standard deviations, J and the unit stay as they are now. A cell
    is decided if |d| + t e(n) < margin, t being the 95 % quantile of Student's t (equivalent), or
    if the test of d = 0 rejects at `level` (different). For large n, e(n)^2 falls to
    sd^2/J + unit^2/12 and no further. If 1.645 times this exceeds the margin, not even d = 0 could
    be shown equivalent: the printed side limits the cell. d changes as splits are added, so n is an
    estimate, no promise.

    Parameters
    ----------
    ours
        With a standard deviation, or one split.
    margin
        Largest difference that counts as equivalent, in units of the metric.
    level
        Of the test of no difference, between 0 and 1.
    share
        Of both levels that the last look at the cell has; see `statistics.shares`.
    """

    def decides(splits: int, mean: float = ours.mean) -> bool:
        found = compare(replace(ours, splits=splits, mean=mean), published, margin, share)
        return found is not None and (found.is_equivalent or found.is_different(level))

    if not decides(_ALL):
        if decides(_ALL, published.mean):
            return Undecided(LimitedBy.DIFFERENCE)
        has_spread = published.sd is not None or published.least_sd > 0
        return Undecided(LimitedBy.PRINTED_SPREAD if has_spread else LimitedBy.NO_PRINTED_SD)
    low, high = ours.splits, _ALL
    while high - low > 1:  # `low` does not decide, `high` does
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return Undecided(LimitedBy.OUR_SPLITS, high)
