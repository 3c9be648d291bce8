"""What DP-EBM+ minimises: log loss of labels, squared error of numbers, likelihood of counts.

Targets are 0 and 1; or offsets from the middle of their public range in units of its width, from
-1/2 to 1/2; or parts of the largest count. A function is in log odds, in the unit of the targets,
or in the logarithm of a rate. A loss has what a curator has to know, too: how targets become whole
numbers of `kernel.UNIT`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import expit

from dprepro.methods.dp_ebm_plus.clipping import typical_deviation
from dprepro.methods.dp_ebm_plus.kernel import BITS, COUNTS, LABELS, NUMBERS, rounded, to_units

if TYPE_CHECKING:
    from dprepro.data.domain import Domain

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)

WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Gauss-Hermite quadrature: E h(Z) is about sum_j `WEIGHTS`_j h(`NODES`_j) for Z ~ N(0, 1)."""

_NEWTON, _SETTLED = 12, 1e-9
"""Most steps of Newton's method for a level, and how short the last is: the next is rounding."""

_LONGEST = 3.0
"""Longest step of a level, in log odds."""

Response = tuple[np.ndarray, np.ndarray]
"""What is expected of the rows of each bin, float64 (B,), and its slopes: see `Loss.response`."""


@dataclass(frozen=True)
class Start:
    """What the totals say.

    Attributes
    ----------
    rows, noise
        About how many rows there are, and the standard deviation of the noise in their number.
    level
        The first intercept.
    rate
        The mean target.
    slope
        phi: by how much the mean target rises with the intercept.
    residual
        Of labels, where residuals are clipped in a row whose code is of typical length; of numbers,
        about how large residuals are that are not clipped.
    unit
        Of the sizes that effects have a priori: see `prior.SIZES`.
    """

    rows: float
    noise: float
    level: float
    rate: float
    slope: float
    residual: float
    unit: float


class Loss(ABC):
    """A loss; its only objects are `LOGISTIC`, `SQUARED`, `POISSON` and `classes.SOFTMAX`.

    Attributes
    ----------
    kind
        What kernels are told.
    released
        What an epoch releases, for the ledger.
    powers
        Highest power of the targets whose sum is released at the start.
    totals_share
        Share of mu^2 that goes to the totals.
    counts_sizes
        Whether each epoch counts rows by the size of their residuals, and asks about the intercept
        apart from the features: where targets have no bound but their range.
    prior
        Standard deviation of the intercept before any answer.
    """

    kind: ClassVar[int]
    released: ClassVar[str]
    powers: ClassVar[int]
    totals_share: ClassVar[float]
    counts_sizes: ClassVar[bool]
    prior: ClassVar[float]

    @abstractmethod
    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return targets, int32 (n,) in units, from what the reader gives; all are in range."""

    @abstractmethod
    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return targets, int64 (n,) in units, within [-1/2, 1/2]."""

    @abstractmethod
    def start(self, rows: float, noise: float, sums: np.ndarray, noises: np.ndarray) -> Start:
        """Return what noisy sums of the powers of centred targets say, and the noise in each."""

    @abstractmethod
    def bound(self, start: Start, noise_to_signal: float) -> float:
        """Return where residuals are clipped at first in a row whose code is of typical length.

        `noise_to_signal` is the variance of the noise in the averages of all bins together, over
        the square of what a usual effect moves all rows by, if residuals are not clipped.
        """

    @abstractmethod
    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> Response:
        """Return the target to expect of a row in each bin, and its slope, float64 (B,) each.

        Parameters
        ----------
        values, shares : float64 (B,)
            The function, and the shares of rows in the bins.
        level
            The intercept.
        others
            The variance of the sum of all other functions over the rows.
        """

    @abstractmethod
    def of_level(self, level: float, spread: float, start: Start) -> tuple[float, float]:
        """Return the means of `response` over all rows, whose scores have the variance `spread`."""

    def unit(self, start: Start, usual: float) -> float:
        """Return what functions are measured in; `usual` is the deviation of the residuals."""
        return start.unit

    @abstractmethod
    def sampling(self, mean_square: float, start: Start) -> float:
        """Return the variance of a residual over its slope; `mean_square` is of residuals."""


class LogisticLoss(Loss):
    """Log loss: residual y - sigmoid(F)."""

    kind = LABELS
    released = (
        "for all rows, the sum of the label (0 or 1) less its predicted probability; for each "
        "feature, sums of this difference times numbers that depend on a row's category or interval"
    )
    powers = 1
    totals_share = 0.01
    counts_sizes = False
    prior = 3.0

    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return labels 0 and 1."""
        return to_units(np.clip(y, 0, 1))

    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return labels less 1/2."""
        return targets.astype(np.int64) - 2 ** (BITS - 1)

    def start(self, rows: float, noise: float, sums: np.ndarray, noises: np.ndarray) -> Start:
        """See `Loss.start`; noise keeps the share of positive labels off 0 and 1."""
        least = max(min(0.5, noises[0] / rows), 1e-4)
        rate = min(max(float(sums[0]) / rows + 0.5, least), 1 - least)
        level, slope = math.log(rate / (1 - rate)), rate * (1 - rate)
        return Start(rows, noise, level, rate, slope, 1.0, 1.0)

    def bound(self, start: Start, noise_to_signal: float) -> float:
        """Return from 1, where no noise is, down to 1/2, where all is.

        At 1/2 no residual is clipped of labels that are as rare as each other, as long as nothing
        is known. A lower bound would save no noise: what is left of the signal falls as much.
        """
        return float(rounded(1 - noise_to_signal / (1 + noise_to_signal) / 2))

    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> Response:
        """Return E G(p) - o(p) and E k(p) p (1 - p), for the `chances` p.

        A row with label 1 has the clipped residual min(c, 1 - p), one with label 0 has -min(c, p).
        So k(p) = min(c, 1 - p) + min(c, p) is what a label counts, o(p) = p min(c, 1 - p) -
        (1 - p) min(c, p) what is expected of a row with the chance p, and G' = k. Without clipping
        k = 1, o = 0 and G = p.
        """
        return _clipped(chances(values, shares, start, level, others), start.residual)

    def of_level(self, level: float, spread: float, start: Start) -> tuple[float, float]:
        """See `Loss.of_level`."""
        each = expit(level + math.sqrt(spread) * NODES[:, None])
        expected, slopes = _clipped(each, start.residual)
        return float(expected[0]), float(slopes[0])

    def sampling(self, mean_square: float, start: Start) -> float:
        """Return 1: the variance of a label is p (1 - p), its slope."""
        return 1.0


def chances(
    values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
) -> np.ndarray:
    """Return p = sigmoid(a + f + Z) for Z ~ N(0, v) at the nodes of a quadrature, (nodes, B).

    v is the variance of the `others`. a is not the intercept, but what makes the rates of the bins
    add up to the released one. See `Loss.response`; `mean_of` takes the mean over Z.
    """
    scores = values + math.sqrt(others) * NODES[:, None]
    for _ in range(_NEWTON):
        each = expit(level + scores)
        gap = float((shares * mean_of(each)).sum()) - start.rate
        step = gap / max(float((shares * mean_of(each * (1 - each))).sum()), 1e-12)
        level -= min(max(step, -_LONGEST), _LONGEST)
        if abs(step) < _SETTLED:
            break
    return np.asarray(expit(level + scores))


def mean_of(each: np.ndarray) -> np.ndarray:
    """Return the mean over the nodes, float64 (B,), of what is given at them, (nodes, B)."""
    # No matrix product: its last digit is not the same on every machine.
    return np.asarray((WEIGHTS[:, None] * each).sum(axis=0))


def _clipped(p: np.ndarray, c: float) -> Response:
    """Return the means over the nodes that `LogisticLoss.response` describes."""
    up, down = np.minimum(c, 1 - p), np.minimum(c, p)
    gained = c - c * c / 2 + _area(p, c) - _area(1 - p, c)
    return mean_of(gained - p * up + (1 - p) * down), mean_of((up + down) * p * (1 - p))


def _area(p: np.ndarray, c: float) -> np.ndarray:
    """Return the integral of min(c, q) over q from 0 to p."""
    return np.asarray(np.where(p <= c, p * p / 2, c * (p - c / 2)))


class SquaredLoss(Loss):
    """Squared error: residual y - F, F clipped to the range of the targets."""

    kind = NUMBERS
    released = (
        "for all rows, the sum of the target less what is predicted so far; for each feature, sums "
        "of this difference times numbers that depend on a row's category or interval, where the "
        "prediction has another constant, and one such sum over all rows; also the number of rows "
        "by the size of that difference"
    )
    powers = 2
    totals_share = 0.02
    counts_sizes = True
    prior = 0.25

    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return (y - middle) / width of the public range, y clipped to it, rounded."""
        lower, upper = (float(bound) for bound in domain.target)
        width, middle = upper - lower, (lower + upper) / 2
        # Clipped again: the division rounds, and a target beyond 1/2 would exceed its sensitivity.
        return to_units(np.clip((np.clip(y, lower, upper) - middle) / width, -0.5, 0.5))

    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return the targets, which are offsets from the middle already."""
        return targets.astype(np.int64)

    def start(self, rows: float, noise: float, sums: np.ndarray, noises: np.ndarray) -> Start:
        """See `Loss.start`; the mean is shrunk by its noise. Effects are as large as residuals."""
        mean = float(sums[0]) / rows / (1 + (noises[0] / rows / self.prior) ** 2)
        typical = typical_deviation(float(sums[1]) / rows - mean**2, noises[1] / rows)
        return Start(rows, noise, mean, mean, 1.0, typical, typical)

    def bound(self, start: Start, noise_to_signal: float) -> float:
        """Return how large residuals are; each epoch chooses anew."""
        return start.residual

    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> Response:
        """Return the function itself."""
        return values, np.ones(values.size)

    def of_level(self, level: float, spread: float, start: Start) -> tuple[float, float]:
        """Return the level itself."""
        return level, 1.0

    def unit(self, start: Start, usual: float) -> float:
        """Return `usual`: of how large effects are, residuals say most."""
        return usual

    def sampling(self, mean_square: float, start: Start) -> float:
        """Return the mean square of residuals."""
        return mean_square


class PoissonLoss(SquaredLoss):
    """Log likelihood of Poisson counts: targets from 0 to a public largest count M, and a log link.

    A row has the score F and the rate M exp(F), F at most 0. Its target is y / M, and its residual
    y / M - exp(F), between -1 and 1: whole numbers of `kernel.UNIT`, of which the exponential is
    the same on any machine. Sums of counts are as private as those of numbers: residuals are
    limited by the same code, whatever the scores are.
    """

    kind = COUNTS
    released = (
        "for all rows, the sum of the target less what is predicted so far, as part of the largest "
        "target; for each feature, sums of this difference times numbers that depend on a row's "
        "category or interval, where the prediction has another constant factor; also the number "
        "of rows by the size of that difference"
    )
    prior = 3.0

    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return y over the largest count, int32 (n,) in units; y is clipped to its range."""
        largest = float(domain.target[1])
        return to_units(np.clip(np.clip(y, 0.0, largest) / largest, 0.0, 1.0))

    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return targets less 1/2, int64 (n,) in units."""
        return targets.astype(np.int64) - 2 ** (BITS - 1)

    def start(self, rows: float, noise: float, sums: np.ndarray, noises: np.ndarray) -> Start:
        """See `Loss.start`; noise keeps the mean count off 0."""
        centred = min(max(float(sums[0]) / rows, -0.5), 0.5)
        typical = typical_deviation(float(sums[1]) / rows - centred**2, noises[1] / rows)
        rate = max(centred + 0.5, min(0.5, noises[0] / rows), 1e-4)
        return Start(rows, noise, math.log(rate), rate, rate, typical, 1.0)

    def unit(self, start: Start, usual: float) -> float:
        """Return that of the start: residuals are of rates, and functions of their logarithms."""
        return start.unit

    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> Response:
        """Return the rates of the bins, which add up to the released one; they are the slopes.

        Whatever the other functions are, if they are independent: E exp(f + Z) is exp(f) E exp(Z).
        """
        odds = np.exp(values)
        rates = odds * (start.rate / float((shares * odds).sum()))
        return rates, rates

    def sampling(self, mean_square: float, start: Start) -> float:
        """Return the mean square of residuals over the mean rate: variances rise with rates."""
        return mean_square / start.rate


@dataclass(frozen=True)
class Softmax:
    """The loss of S classes, as the curator knows it; `classes.SOFTMAX` is what is inferred by.

    Attributes
    ----------
    n_classes
        S, at least 3. Classes are numbered in the order of their labels.
    """

    n_classes: int

    released: ClassVar[str] = (
        "for each class, over all rows, the sum of 1 (rows of the class) or 0 less the predicted "
        "probability of the class; for each feature, sums of this difference times numbers that "
        "depend on a row's category or interval"
    )

    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return the numbers of the classes, int32 (n,), from what the reader gives."""
        return np.clip(y, 0, self.n_classes - 1).astype(np.int32)


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Do what ``np.average`` does, in a tenth of its time on a few dozen values."""
    return float((values * weights).sum() / weights.sum())


LOGISTIC, SQUARED, POISSON = LogisticLoss(), SquaredLoss(), PoissonLoss()
