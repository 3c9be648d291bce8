"""The difference of two means over splits: z, interval, and tests of difference and equivalence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

# Of the equivalence test, and of all tests of one document together.
LEVEL = 0.05
_CONFIDENCE = 0.95
ROUNDING = 1e-12
"""Scores that differ by no more than this part of the larger one are equal. Sums over rows are off
by less, and one row that is predicted otherwise moves a score by more."""


def score_difference(one: float, other: float) -> float:
    """Return one score minus another, 0.0 where they differ by rounding alone."""
    found = one - other
    return 0.0 if abs(found) <= ROUNDING * max(abs(one), abs(other)) else found


@dataclass(frozen=True)
class Sample:
    """A mean over `splits` splits of one dataset.

    Attributes
    ----------
    sd
        The standard deviation over splits (ddof 1); None where it is not known, as of one split.
    half_unit, sd_half_unit
        Half a unit of the last digit to which the mean and the sd are rounded; 0 for our own.
    overlap
        Test rows by training rows where the rows themselves are a sample, too, else 0: the term
        of Nadeau and Bengio (2003, Machine Learning 52, section 3.2), see `weight`.
    least_sd
        What the standard deviation over splits is at least, where `sd` is not known.
    """

    mean: float
    sd: float | None
    splits: int
    half_unit: float = 0.0
    overlap: float = 0.0
    least_sd: float = 0.0
    sd_half_unit: float = 0.0

    @property
    def weight(self) -> float:
        """What a variance over splits times makes the variance of the mean: 1/J + n_test/n_train.

        Random splits of given rows are independent draws, so the second term is 0 as long as
        both sides split the same rows. Other rows share no split, and training sets overlap:
        then it is Nadeau and Bengio's.
        """
        return 1 / self.splits + self.overlap

    @property
    def rounding(self) -> float:
        """The variance of a mean that is rounded to within h = `half_unit`: h^2/3."""
        return self.half_unit**2 / 3

    @property
    def variance(self) -> float | None:
        """The variance over splits: of an sd that is rounded to within h, sd^2 + h^2/3."""
        return None if self.sd is None else self.sd**2 + self.sd_half_unit**2 / 3


@dataclass(frozen=True)
class Comparison:
    """A difference of two means (measured minus published).

    Attributes
    ----------
    difference, standard_error, z
        The first two in units of the metric; z is their quotient.
    freedom
        Degrees of freedom of the t distribution that `z` follows if there is no difference.
    low, high
        The 95 % confidence interval of the difference.
    p_difference, p_equivalence
        P-values of the two-sided test of no difference (small means different), and of two
        one-sided tests of |difference| >= margin (small means equivalent).
    share
        Share of each test's level that this comparison has, where others look at the same cell
        after more or fewer splits (`shares`).
    """

    difference: float
    standard_error: float
    z: float
    freedom: int
    low: float
    high: float
    p_difference: float
    p_equivalence: float
    share: float = 1.0

    @property
    def is_equivalent(self) -> bool:
        """Whether the means are shown to lie within the margin, at the 5 % level."""
        return self.p_equivalence < LEVEL * self.share

    def is_different(self, level: float) -> bool:
        """Whether the test of no difference rejects, at `level` for all looks together."""
        return self.p_difference < level * self.share


def shares(looks: Sequence[int]) -> list[float]:
    """Return the share of a test's level that each look at a cell has.

    After n of N splits a share (n/N)^2 of the level is spent, the power family of spending
    functions of Kim and DeMets (1987, Biometrika 74) with exponent 2. The errors of all looks add
    up to the level at most (Bonferroni: their correlation is not used), so a cell may be left alone
    as soon as it is decided. `looks` are numbers of splits, ascending, chosen before the first.

    Examples
    --------
    >>> shares([25, 100])
    [0.0625, 0.9375]
    """
    spent = [(look / looks[-1]) ** 2 for look in looks]
    return [after - before for before, after in itertools.pairwise([0.0, *spent])]


def compare(
    measured: Sample, published: Sample, margin: float, share: float = 1.0
) -> Comparison | None:
    """Compare two means; None where neither side has a standard deviation.

    Only the means and standard deviations of a document are known, so its splits cannot be paired
    with ours: they enter as independent summaries. Two runs of one experiment have one variance
    over splits, so it is estimated from both (Student's test for two samples):

        s^2 = ((n_1 - 1) sd_1^2 + (n_2 - 1) sd_2^2) / (n_1 + n_2 - 2)
        standard error^2 = s^2 (1/n_1 + 1/n_2) + unit^2/12

    With as many splits on both sides that is sd_1^2/n + sd_2^2/n + unit^2/12. Where only one side
    has a standard deviation, it is s. `Sample.weight` has the term for other rows. A printed sd is
    rounded as well: E[sd^2] = printed^2 + h^2/3, with its own h. The positive `margin` is the
    largest difference, in units of the metric, that counts as equivalent.
    """
    known = [(s.variance, s.splits - 1) for s in (measured, published) if s.variance is not None]
    freedom = sum(own for _, own in known)
    if not freedom:
        return None
    difference = score_difference(measured.mean, published.mean)
    pooled = sum(variance * own for variance, own in known) / freedom
    pooled = max(pooled, measured.least_sd**2, published.least_sd**2)
    rounding = measured.rounding + published.rounding
    error = math.sqrt(pooled * (measured.weight + published.weight) + rounding)
    if error == 0.0:
        return replace(_certain(difference, margin, freedom), share=share)
    from scipy.special import stdtr, stdtrit  # a tenth of a second, and not all tables compare

    reach = float(stdtrit(freedom, 0.5 + _CONFIDENCE / 2)) * error
    # Of the two one-sided tests, the one at the nearer edge of the margin decides.
    p_equivalence = float(stdtr(freedom, (abs(difference) - margin) / error))
    p_difference = 2 * float(stdtr(freedom, -abs(difference) / error))
    return Comparison(
        difference, error, difference / error, freedom,
        difference - reach, difference + reach, p_difference, p_equivalence, share,
    )  # fmt: skip


def _certain(difference: float, margin: float, freedom: int) -> Comparison:
    """Return the comparison of two numbers without any spread."""
    z = math.copysign(math.inf, difference) if difference else 0.0
    p_equivalence = 0.0 if abs(difference) < margin else 1.0
    p_difference = 0.0 if difference else 1.0
    return Comparison(
        difference, 0.0, z, freedom, difference, difference, p_difference, p_equivalence
    )
