"""How good a model is on rows that did not train it: noisy counts, and what follows from them.

The counts are released with the model, in its file. All here is computed from them alone, without
a random number, so whoever has the file gets the same figures.

An interval has 95%, by itself. It is the set of values that a test does not refuse: where the
distance of counts from what a value implies is at most 1.96 of its standard deviations, of which
the variance is that of the noise, which is known, and of drawing the rows (Fieller 1954 for ratios;
DeLong et al. 1988 for the area under the ROC curve, with counts of bins in the place of rows).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator
from scipy.special import expit

if TYPE_CHECKING:
    from dprepro.additive.model import AdditiveModel
    from dprepro.data.domain import TaskKind

ABOUT = (
    "Noisy counts of rows that were held out from the fit. scores: rows by class and by the sum s, "
    "counts[class][number of edges <= s]. sums: for each group of rows, the number of rows, then "
    "for two classes the sums of y - 1/2, p - 1/2 and e - 1/2 (y: 1 for the second class, p: its "
    "predicted probability, e: 1 where the likelier class is wrong), for several classes of e - "
    "1/2 alone (e: 1 where the likeliest class is wrong), for regression of r / (2 C) "
    "and (r / C)^2 - 1/2 (r: target minus prediction, clipped to C, the bound), all in whole "
    "numbers of 2 to the power of power. noise: the standard deviation of what was added to each "
    "number, in rows."
)
"""How to use the numbers without this package; it is part of a model file."""

POWER = -16
"""The whole numbers of sums count in 2^-16 of a row."""

Z = 1.959964
"""Of a normal distribution, 95% lie within so many standard deviations."""

HIDDEN = 0.25
"""Nothing is said of a group where the noise alone moves a share by more than this at 95%."""

_BINS, _REACH = 20, 3.0
"""About so many bins of scores, up to so many standard deviations to each side of the mean."""
_MOST_BINS, _MOST_GROUPS = 64, 256
_SHARES = np.linspace(0.0, 1.0, 4001)
_DIFFERENCES = np.linspace(-1.0, 1.0, 8001)

_Count = Annotated[int, Field(ge=-(2**62), le=2**62)]
_Text = Annotated[str, Field(max_length=10_000)]
_Noise = Annotated[float, Field(gt=0, le=1e15)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class ScoreCounts(_Record):
    """Rows by class and score: `counts` has two lists, of one number more than there are edges."""

    edges: Annotated[list[float], Field(min_length=1, max_length=_MOST_BINS)]
    counts: Annotated[list[list[_Count]], Field(min_length=2, max_length=2)]
    noise: _Noise

    @model_validator(mode="after")
    def _fits_together(self) -> ScoreCounts:
        if any(a >= b for a, b in pairwise(self.edges)):
            raise ValueError("edges of scores must ascend")
        if any(len(row) != len(self.edges) + 1 for row in self.counts):
            raise ValueError("every class needs one count more than there are edges of scores")
        return self


class GroupSums(_Record):
    """Sums over groups of rows: all rows, without a `feature`, or rows by the value of a feature.

    `sums` has for each of the `groups` the number of rows, and the sums that `ABOUT` lists.
    """

    feature: _Text | None
    groups: Annotated[list[_Text], Field(min_length=1, max_length=_MOST_GROUPS)]
    sums: Annotated[list[list[_Count]], Field(min_length=1, max_length=_MOST_GROUPS)]
    noise: _Noise

    @model_validator(mode="after")
    def _fits_together(self) -> GroupSums:
        if len(self.sums) != len(self.groups):
            raise ValueError(f"{len(self.groups)} groups, but {len(self.sums)} have sums")
        return self


class Measurement(_Record):
    """What was released of rows that were held out.

    Attributes
    ----------
    about
        How to use it.
    held_out
        The share of rows or units, in (0, 1), that were held out; which ones chance decided.
    scores
        For two classes.
    bound
        For regression: residuals are clipped to it, in the target's unit. For several classes there
        is neither this nor `scores`.
    power
        Of two, that sums count in.
    """

    about: _Text
    held_out: Annotated[float, Field(gt=0, lt=1)]
    scores: ScoreCounts | None = None
    bound: Annotated[float, Field(gt=0)] | None = None
    power: Annotated[int, Field(ge=-30, le=0)]
    sums: Annotated[list[GroupSums], Field(min_length=1, max_length=64)]

    @property
    def task(self) -> TaskKind:
        """What the measured model predicts."""
        if self.scores is not None:
            return "binary"
        return "multiclass" if self.bound is None else "regression"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, without what it does not have."""
        return {key: value for key, value in self.model_dump().items() if value is not None}

    @model_validator(mode="after")
    def _fits_together(self) -> Measurement:
        if self.scores is not None and self.bound is not None:
            raise ValueError("a measurement has scores for two classes, or a bound for regression")
        wanted = {"binary": 4, "multiclass": 2, "regression": 3}[self.task]
        if any(len(row) != wanted for group in self.sums for row in group.sums):
            raise ValueError(f"every group needs {wanted} sums")
        return self


class Estimate(NamedTuple):
    """A value and its interval. Without a value the noise is too large to say any."""

    value: float | None
    lower: float
    upper: float

    @property
    def says_nothing(self) -> bool:
        """Whether there is no value."""
        return self.value is None


def score_edges(model: AdditiveModel) -> list[float]:
    """Return edges of bins of the log odds of a model, by what it discloses already.

    The bins are of equal width and cover three standard deviations to each side of the mean, as the
    noisy counts in the model give both, if features are taken as independent. 0 is an edge, at
    which the predicted class changes.
    """
    reach = min(max(_REACH * _deviation(model), 0.5), 1e3)
    middle = min(max(model.intercept_, -1e3), 1e3)
    width = math.ceil(2 * reach / _BINS * 2**10) / 2**10
    first, last = math.ceil((middle - reach) / width), math.floor((middle + reach) / width)
    return sorted({0.0, *(width * k for k in range(first, last + 1))})


def _deviation(model: AdditiveModel) -> float:
    """Return the standard deviation of the sums of a model, by its noisy counts."""
    of_singles = zip(model.shape_functions_, model.bin_counts_, strict=True)
    of_pairs = ((term.values.ravel(), term.counts.ravel()) for term in model.pairs_)
    terms = (*of_singles, *of_pairs)
    return math.sqrt(sum(_variance(values, counts) for values, counts in terms))


def _variance(values: np.ndarray, counts: np.ndarray) -> float:
    weights = np.maximum(counts, 0.0)
    if weights.sum() <= 0:
        return 0.0
    mean = np.average(values, weights=weights)
    return float(np.average((values - mean) ** 2, weights=weights))


def residual_bound(model: AdditiveModel, target: tuple[float, float]) -> float:
    """Return at what residuals of a regression are clipped: by what the model discloses already.

    Twice the size that 95% of residuals do not exceed, if the model knows it, and at most the width
    of the target's range. Of counts no size is known: it is what few counts exceed where few
    predictions are higher, if they vary as Poisson's do, and no count is further from its
    prediction than the largest one.
    """
    width = target[1] - target[0]
    if model.has_log_link:
        logarithm = model.intercept_ + 2 * _deviation(model)
        high = math.exp(min(logarithm, math.log(width)))
        return min(high + 2 * math.sqrt(high) + 2, width)
    known = model.residual_sizes_
    if known is None or not known.percents[0] <= 95 <= known.percents[-1]:
        return width
    size = 2 * known.half_width(0.95)
    return min(size, width) if size > 0 else width


# --- ratios of sums -------------------------------------------------------------------------------


class Sums(NamedTuple):
    """The noisy sums of one group, in rows, and the standard deviation of the noise in each."""

    rows: float
    parts: np.ndarray
    noise: float

    @property
    def smallest(self) -> float:
        """The number of held-out rows below which the noise alone hides any share."""
        return Z * self.noise / HIDDEN

    @property
    def is_hidden(self) -> bool:
        """Whether the group has so few rows, by its noisy number of rows."""
        return self.rows < self.smallest

    def share(self, part: int) -> Estimate:
        """Return the mean of a part that is counted from 1/2: a share, or a mean square.

        Its variance between rows is taken as that of a share, m (1 - m), which is the largest of
        any values in [0, 1] with the mean m.
        """
        if self.is_hidden:
            return Estimate(None, 0.0, 1.0)
        value = float(self.parts[part]) / self.rows + 0.5
        noise = self.noise**2 * (1 + (0.5 - _SHARES) ** 2)
        deviation = np.sqrt(noise + self.rows * _SHARES * (1 - _SHARES))
        return _accepted(value, _SHARES, deviation / self.rows)

    def difference(self) -> Estimate:
        """Return the share of the second class less the mean predicted probability.

        The variance between rows is taken as that of the class alone, at its largest within the
        interval of its share: it is less for every model that is better than a constant.
        """
        if self.is_hidden:
            return Estimate(None, -1.0, 1.0)
        found = self.share(0)
        nearest = min(max(0.5, found.lower), found.upper)
        value = float(self.parts[0] - self.parts[1]) / self.rows
        spread = self.noise**2 * (2 + _DIFFERENCES**2) + self.rows * nearest * (1 - nearest)
        return _accepted(value, _DIFFERENCES, np.sqrt(spread) / self.rows)

    def mean_residual(self) -> Estimate:
        """Return the mean residual of a regression, in units of the bound."""
        if self.is_hidden:
            return Estimate(None, -1.0, 1.0)
        value, square = 2 * float(self.parts[0]) / self.rows, self.share(1).upper
        spread = self.noise**2 * (4 + _DIFFERENCES**2) + self.rows * square
        return _accepted(value, _DIFFERENCES, np.sqrt(spread) / self.rows)

    def root_mean_square(self) -> Estimate:
        """Return the root of the mean squared residual, in units of the bound."""
        return _mapped(self.share(1), math.sqrt)


def sums_of(measurement: Measurement, group: GroupSums) -> list[Sums]:
    """Return the sums of each group, in rows."""
    unit = 2.0**measurement.power
    return [Sums(unit * row[0], unit * np.array(row[1:]), group.noise) for row in group.sums]


def _mapped(found: Estimate, rising: Callable[[float], float]) -> Estimate:
    value = None if found.value is None else rising(found.value)
    return Estimate(value, rising(found.lower), rising(found.upper))


def _accepted(value: float, candidates: np.ndarray, deviation: np.ndarray) -> Estimate:
    """Return the estimate, moved into the range, and the values that a test does not refuse.

    `deviation` is that of the estimate where a candidate is true. Where noise led out of the range,
    the test is about the end of it. That refuses less, so the interval holds what is true no less
    often, and is as wide as the noise is (Mandelkern, Schultz 2000).
    """
    inside = float(np.clip(value, candidates[0], candidates[-1]))
    kept = candidates[np.abs(inside - candidates) <= Z * deviation]
    if not kept.size:
        return Estimate(inside, inside, inside)
    return Estimate(inside, min(float(kept[0]), inside), max(float(kept[-1]), inside))


# --- scores ---------------------------------------------------------------------------------------


def area_under_curve(scores: ScoreCounts) -> Estimate:
    """Return the area under the ROC curve.

    It is the probability that of two rows of different classes the one of the second class has the
    larger score. Rows in one bin count half, so the area is a little too small. With counts a of
    the first class, b of the second, and c_ij = 1, 1/2 or 0 where bin j is above, at or below i, a
    value t makes U(t) = sum_ij a_i b_j (c_ij - t) zero on average. Its variance is
    sum_i (a_i + s^2) (sum_j b_j (c_ij - t))^2, and the same with a and b exchanged, for noise of
    standard deviation s; what noise adds to these squares is subtracted once.
    """
    a, b = (np.array(row, dtype=float) for row in scores.counts)
    variance = scores.noise**2
    wins = np.triu(np.ones((a.size, b.size)), 1) + np.eye(a.size) / 2
    both = a.sum() * b.sum()
    least = Z * scores.noise * math.sqrt(a.size)
    if a.sum() < least or b.sum() < least:
        return Estimate(None, 0.0, 1.0)
    of_a = (wins @ b)[:, None] - _SHARES * b.sum()
    of_b = (a @ wins)[:, None] - _SHARES * a.sum()
    squares = (wins**2).sum() - 2 * _SHARES * wins.sum() + _SHARES**2 * wins.size
    cells = squares * variance**2
    spread = (np.maximum(a, 0) + variance) @ of_a**2 + (np.maximum(b, 0) + variance) @ of_b**2
    spread = np.maximum(spread - cells, cells)
    return _accepted(float(a @ wins @ b / both), _SHARES, np.sqrt(spread) / both)


class Bin(NamedTuple):
    """A bin of predicted probabilities, and the share of rows of the second class in it."""

    lower: float
    upper: float
    observed: Estimate

    @property
    def agrees(self) -> bool:
        """Whether the interval of the share meets what was predicted."""
        return self.observed.lower <= self.upper and self.observed.upper >= self.lower


def calibration(scores: ScoreCounts) -> list[Bin]:
    """Return each bin of predicted probabilities with the share of the second class in it."""
    ends = expit(np.array([-math.inf, *scores.edges, math.inf]))
    a, b = (np.array(row, dtype=float) for row in scores.counts)
    noise = scores.noise**2 * ((1 - _SHARES) ** 2 + _SHARES**2)
    found = []
    for k in range(a.size):
        rows = a[k] + b[k]
        if rows < Z * scores.noise / HIDDEN:
            observed = Estimate(None, 0.0, 1.0)
        else:
            deviation = np.sqrt(noise + rows * _SHARES * (1 - _SHARES))
            observed = _accepted(b[k] / rows, _SHARES, deviation / rows)
        found.append(Bin(float(ends[k]), float(ends[k + 1]), observed))
    return found
