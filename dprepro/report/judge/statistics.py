"""Differences between means over random splits: interval and equivalence test."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats

# Of the equivalence test.
_LEVEL = 0.05


@dataclass(frozen=True)
class Sample:
    """Mean and standard deviation (ddof 1) over `splits` random splits of one dataset.

    `half_unit` is half a unit of the last digit to which both are rounded; 0 for our own.
    """

    mean: float
    sd: float
    splits: int
    test_share: float
    half_unit: float = 0.0

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, corrected for overlapping splits and for rounding.

        The training sets of random splits overlap, so the split means are not independent and
        sd / sqrt(J) is too small. Nadeau and Bengio (2003, Machine Learning 52, section 3.2):
        variance of the mean = (1/J + n_test/n_train) * sd^2.

        A printed number stands for anything within h = `half_unit` of it. Taken as uniform there,
        rounding adds h^2/3 to the variance of the mean, and E[sd^2] = printed sd^2 + h^2/3. So a
        printed sd of 0.000 does not pass for no spread at all.
        """
        ratio = self.test_share / (1.0 - self.test_share)
        rounding = self.half_unit**2 / 3
        return math.sqrt((self.sd**2 + rounding) * (1.0 / self.splits + ratio) + rounding)


@dataclass(frozen=True)
class Comparison:
    """A difference of two means (measured minus published).

    Attributes
    ----------
    difference, standard_error
        In units of the metric.
    low, high
        The confidence interval of the difference.
    p_equivalence
        P-value of two one-sided tests of |difference| >= margin; small means equivalent.
    """

    difference: float
    standard_error: float
    low: float
    high: float
    p_equivalence: float

    @property
    def is_equivalent(self) -> bool:
        """Whether the means are equivalent at the 5 % level."""
        return self.p_equivalence < _LEVEL


def compare(
    measured: Sample, published: Sample, margin: float, confidence: float = 0.95
) -> Comparison:
    """Compare two means; both standard errors are corrected, and taken as independent.

    Both experiments use the same rows, which makes their means agree more than independent ones
    would: interval and test err on the careful side. Of a published cell only mean and standard
    deviation over its splits are known, so the splits cannot be paired with ours; the two enter
    as summaries, with Welch and Satterthwaite's degrees of freedom. A `published` with one split
    and sd 0 stands for a figure printed without a standard deviation: exact but for rounding.

    Parameters
    ----------
    margin
        Largest difference, in units of the metric, that counts as equivalent; positive.

    Raises
    ------
    ValueError
        If `measured` has fewer than two splits, or margin or confidence are out of range.
    """
    if measured.splits < 2:
        raise ValueError(f"a comparison needs at least 2 splits, got {measured.splits}")
    if not (margin > 0 and 0 < confidence < 1):
        raise ValueError(f"need margin > 0 and 0 < confidence < 1, got {margin}, {confidence}")
    difference = measured.mean - published.mean
    error = math.hypot(measured.standard_error, published.standard_error)
    if error == 0.0:
        p_value = 0.0 if abs(difference) < margin else 1.0
        return Comparison(difference, 0.0, difference, difference, p_value)
    freedom = _degrees_of_freedom(measured, published)
    reach = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * error
    # Of the two one-sided tests, the one at the nearer edge of the margin decides.
    p_value = float(stats.t.sf((margin - abs(difference)) / error, freedom))
    return Comparison(difference, error, difference - reach, difference + reach, p_value)


def _degrees_of_freedom(*samples: Sample) -> float:
    """Return Welch and Satterthwaite's degrees of freedom; a single split has no share in them."""
    variances = [
        (s.standard_error**2, s.splits - 1)
        for s in samples
        if s.standard_error > 0 and s.splits > 1
    ]
    if not variances:
        return math.inf
    total = sum(variance for variance, _ in variances)
    return total**2 / sum(variance**2 / freedom for variance, freedom in variances)
