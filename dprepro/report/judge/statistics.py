"""The difference of two means over splits: z, interval, and tests of difference and equivalence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy import stats

# Of the equivalence test, and of all tests of one document together.
LEVEL = 0.05
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Sample:
    """A mean over `splits` splits of one dataset.

    Attributes
    ----------
    sd
        The standard deviation over splits (ddof 1); None where it is not known, as of one split.
    half_unit
        Half a unit of the last digit to which both are rounded; 0 for our own.
    overlap
        Test rows by training rows where the rows themselves are a sample, too, else 0: the term
        of Nadeau and Bengio (2003, Machine Learning 52, section 3.2), see `variance`.
    """

    mean: float
    sd: float | None
    splits: int
    half_unit: float = 0.0
    overlap: float = 0.0

    @property
    def variance(self) -> float:
        """The variance of the mean that splits and rows cause: sd^2 (1/J + n_test/n_train).

        Random splits of given rows are independent draws, so the second term is 0 as long as
        both sides split the same rows. Other rows share no split, and training sets overlap:
        then it is Nadeau and Bengio's. A printed sd is rounded, and E[sd^2] = printed^2 + h^2/3.
        """
        if self.sd is None:
            raise ValueError("no standard deviation is known")
        return (self.sd**2 + self.rounding) * (1 / self.splits + self.overlap)

    @property
    def rounding(self) -> float:
        """The variance of a number that is rounded to within h = `half_unit`: h^2/3."""
        return self.half_unit**2 / 3


@dataclass(frozen=True)
class Comparison:
    """A difference of two means (measured minus published).

    Attributes
    ----------
    difference, standard_error
        In units of the metric.
    z
        Their quotient.
    freedom
        Degrees of freedom of the t distribution that `z` follows if there is no difference.
    low, high
        The 95 % confidence interval of the difference.
    p_difference
        P-value of the two-sided test of no difference; small means different.
    p_equivalence
        P-value of two one-sided tests of |difference| >= margin; small means equivalent.
    """

    difference: float
    standard_error: float
    z: float
    freedom: float
    low: float
    high: float
    p_difference: float
    p_equivalence: float

    @property
    def is_equivalent(self) -> bool:
        """Whether the means are shown to lie within the margin, at the 5 % level."""
        return self.p_equivalence < LEVEL


def compare(measured: Sample, published: Sample, margin: float) -> Comparison | None:
    """Compare two means; None where neither side has a standard deviation.

    Only the means and standard deviations of a document are known, so its splits cannot be paired
    with ours: they enter as independent summaries, z = difference / standard error with

        standard error^2 = sd_1^2/n_1 + sd_2^2/n_2 + unit^2/12

    (see `Sample.variance`), and Welch and Satterthwaite's degrees of freedom. The side without a
    standard deviation of its own has that of the other.

    Parameters
    ----------
    margin
        Largest difference, in units of the metric, that counts as equivalent; positive.
    """
    known = [sample for sample in (measured, published) if sample.sd is not None]
    if not known:
        return None
    difference = measured.mean - published.mean
    sides = [s if s.sd is not None else replace(s, sd=known[0].sd) for s in (measured, published)]
    rounding = measured.rounding + published.rounding
    error = math.sqrt(sum(side.variance for side in sides) + rounding)
    if error == 0.0:
        return _certain(difference, margin)
    freedom = _degrees_of_freedom(known, sides, error)
    reach = float(stats.t.ppf(0.5 + _CONFIDENCE / 2, freedom)) * error
    # Of the two one-sided tests, the one at the nearer edge of the margin decides.
    p_equivalence = float(stats.t.sf((margin - abs(difference)) / error, freedom))
    p_difference = 2 * float(stats.t.sf(abs(difference) / error, freedom))
    return Comparison(
        difference, error, difference / error, freedom,
        difference - reach, difference + reach, p_difference, p_equivalence,
    )  # fmt: skip


def _certain(difference: float, margin: float) -> Comparison:
    """Return the comparison of two numbers without any spread."""
    z = math.copysign(math.inf, difference) if difference else 0.0
    p_equivalence = 0.0 if abs(difference) < margin else 1.0
    p_difference = 0.0 if difference else 1.0
    return Comparison(
        difference, 0.0, z, math.inf, difference, difference, p_difference, p_equivalence
    )


def _degrees_of_freedom(known: list[Sample], sides: list[Sample], error: float) -> float:
    """Return Welch and Satterthwaite's degrees of freedom; rounding has a known variance.

    A standard deviation that stands for both sides is one estimate, so their variances add up.
    """
    variances = [side.variance for side in sides]
    if len(known) == 1:
        variances = [sum(variances)]
    estimates = [(v, s.splits - 1) for v, s in zip(variances, known, strict=True) if v > 0]
    if not estimates:
        return math.inf
    return error**4 / sum(variance**2 / freedom for variance, freedom in estimates)
