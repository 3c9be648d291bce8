"""What DP-EBM+ minimises: log loss for two labels, squared error for regression.

Targets are 0 and 1 (classification), or lie in [-1/2, 1/2]: offsets from the middle of the public
range, in units of its width (regression). A function is in log odds, or in the unit of the targets.
Rows hold both in whole numbers of `kernel.UNIT`.

A loss owns what differs between the two: how targets are centred, what an epoch asks for and with
which bound, and what is expected of a function before its answers are seen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import expit

from dprepro.methods.dp_ebm_plus.clipping import typical_deviation
from dprepro.methods.dp_ebm_plus.kernel import BITS, LABELS, NUMBERS, to_units
from dprepro.methods.dp_ebm_plus.smoothing import LINEAR, believable, expected_responses

if TYPE_CHECKING:
    from dprepro.data.domain import Domain

FEW = 150.0
"""Below how many deviations of the noise in a feature's sums rows are few; see `Loss.few`."""

SIZES_WEIGHT = 0.2
"""mu^2 of an epoch's histogram of |residual|, where that of the mean feature's query is 1."""

_EXPECTED, _STANDING_OUT = 1.0, 0.25
"""Rows of the rarer label that a numeric bin is to hold: at least one, and at least a quarter of
the standard deviation of the noise in its sum of labels."""

_LARGEST_SHIFT = 3.0
"""Largest change of a function's level in one step, in log odds."""

_EFFECT = 0.36
"""Standard deviation of an effect a priori where rows are few, in that of the residuals."""

_FEW_IF_APART, _APART = 40.0, 0.3
"""With a larger standard deviation than `_APART` of their range, targets lie at both of its ends.
Clipped far below their size, residuals say too little of their means then, so rows are few only
below `_FEW_IF_APART`. The deviation is a noisy answer: it may be on the wrong side."""

_MEAN_PRIOR = 0.25
"""Standard deviation of the mean target, before it is known, in units of the range."""


class Loss(ABC):
    """A loss; its only objects are `LOGISTIC` and `SQUARED`.

    Attributes
    ----------
    is_logistic
        Whether targets are labels.
    kind
        What the kernels are told: see `kernel.residual_sums`.
    released
        What an epoch releases, for the ledger.
    powers
        Highest power of the targets whose sum is released at the start.
    totals_share, binning_share
        Shares of mu^2 that go to the totals and to the histograms.
    low_signal_intercept, low_signal_noise, low_signal_reach, longest_step
        How functions of few rows are learned: see `dprepro.methods.dp_ebm_plus.low_signal`.
    largest_curvature
        Of a row.
    epochs, low_signal_epochs
        How many, unless another number is asked for; the second where rows are few.
    at_once
        Whether an epoch asks about the intercept and all features in one query, however many rows
        there are; else about one after another, unless rows are few.
    rare
        How much more precisely rare bins are asked about than others; see `strategy.code`.
    bin_deviations
        Standard deviations of noise that a bin of a numeric feature has to hold.
    intercept_prior
        Standard deviation of the intercept before any answer; for regression of few rows, of the
        middle.
    strides
        Unless `at_once`: how much of the way to its inferred values a function goes, after the
        first epoch, where noise is large, and where it is small. More than 1 gains on features that
        depend on each other. See `Damping` for what is asked at once.
    hurries
        Whether later epochs count all the more where noise is small; see the booster.
    sizes_weight
        mu^2 of the histogram of |residual|; 0 if none is asked.
    expects_strays
        Whether rows far from all others may have another mean; see the booster.
    """

    is_logistic: ClassVar[bool]
    kind: ClassVar[int]
    released: ClassVar[str]
    powers: ClassVar[int]
    totals_share: ClassVar[float]
    binning_share: ClassVar[float]
    low_signal_noise: ClassVar[float]
    low_signal_reach: ClassVar[float]
    longest_step: ClassVar[float]
    largest_curvature: ClassVar[float]
    low_signal_intercept: ClassVar[float]
    epochs: ClassVar[int]
    low_signal_epochs: ClassVar[int]
    at_once: ClassVar[bool]
    rare: ClassVar[float]
    bin_deviations: ClassVar[float]
    intercept_prior: ClassVar[float]
    strides: ClassVar[tuple[float, float]]
    hurries: ClassVar[bool]
    sizes_weight: ClassVar[float]
    expects_strays: ClassVar[bool]

    @abstractmethod
    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return targets, int32 (n,) in units, from what the reader gives; all are in range."""

    @abstractmethod
    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return targets, int64 (n,) in units, within [-1/2, 1/2]."""

    @abstractmethod
    def part_norm(self, bound: float) -> float:
        """Return the largest L2 norm of a row's part in one cell, if |residual| <= bound."""

    @abstractmethod
    def start(self, sums: np.ndarray, rows: float, noises: np.ndarray) -> tuple[float, float]:
        """Return the first intercept, and about what standard deviation targets have.

        `sums` and `noises`, float64 (`powers`,), are of the powers of centred targets, and the
        standard deviation of the noise in each.
        """

    @abstractmethod
    def fewest_rows(self, deviation: float, start: float) -> float:
        """Return how many rows a numeric bin is to hold at least.

        `deviation` is that of the noise in a feature's sums of labels, from all epochs together;
        `start` is the first intercept.
        """

    @abstractmethod
    def few(self, typical: float) -> float:
        """Return below how many deviations of the noise in a feature's sums rows are few.

        `typical` is about the standard deviation of the targets.
        """

    def intercept_bound(self, bound: float, usual: float, unclipped: float) -> float:
        """Return where the intercept's residuals are clipped, unless it is asked `at_once`.

        It is clipped less than features, at `unclipped` times their `usual` deviation or more:
        clipped residuals lead to a median, which can be far from the mean.
        """
        return min(1.0, max(bound, unclipped * usual))

    @abstractmethod
    def scales(self, bound: float) -> float:
        """Return the unit of the sizes that a function may have."""

    @abstractmethod
    def likely_effect(self, deviation: float) -> float:
        """Return how large effects are likely to be if rows are few: root mean square over bins.

        `deviation` is about that of the residuals.
        """

    def believed(self, level: float, variance: float, start: float) -> float:
        """Return the part of the functions' variance that tables are to have: all of it.

        Parameters
        ----------
        level, variance
            Of the predictions; the variance is as if features were independent.
        start
            The level before any function is learned.
        """
        return 1.0

    @abstractmethod
    def table(self, intercept: float, variance: float) -> np.ndarray:
        """Return what is expected of a row's target given a function's value; see `lookup`.

        `variance` is that of the sum of all other functions over the rows.
        """

    @abstractmethod
    def sampling_variance(self, mean_square: float) -> float:
        """Return the variance of a residual over its curvature; `mean_square` is of residuals."""

    @abstractmethod
    def level(
        self, totals: np.ndarray, expected: np.ndarray, curvature: np.ndarray, variances: np.ndarray
    ) -> float:
        """Return the part of `totals` that all bins share, in the unit of the function."""


class LogisticLoss(Loss):
    """Log loss: residual y - sigmoid(F), curvature p (1 - p)."""

    is_logistic = True
    kind = LABELS
    released = (
        "for all rows, the sum of the label (0 or 1) less its predicted probability; for each "
        "feature, sums of this difference times numbers that depend on a row's category or interval"
    )
    powers = 1
    totals_share = 0.01
    binning_share = 0.12
    largest_curvature = 0.25
    low_signal_intercept = 0.0
    low_signal_noise = 1.2
    low_signal_reach = 4.0
    longest_step = math.inf
    epochs = low_signal_epochs = 32
    at_once = True
    rare = 0.5
    bin_deviations = 0.75
    intercept_prior = 3.0
    hurries = False
    sizes_weight = 0.0
    expects_strays = True

    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return labels 0 and 1."""
        return to_units(np.clip(y, 0, 1))

    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return labels less 1/2."""
        return targets.astype(np.int64) - 2 ** (BITS - 1)

    def part_norm(self, bound: float) -> float:
        """Return c sqrt(1 + (1 - c)^2), the norm of (r, |r| (1 - |r|)) at r = c.

        The second number is the curvature, which is asked for the cells of pairs.
        """
        return bound * math.sqrt(1 + (1 - bound) ** 2)

    def few(self, typical: float) -> float:
        """Return `FEW` if both labels are equally frequent, more if one is rare.

        A sum of residuals is proportional to the deviation of the labels, its noise is not.
        """
        return FEW * 0.5 / typical

    def start(self, sums: np.ndarray, rows: float, noises: np.ndarray) -> tuple[float, float]:
        """Return the log odds of the share of positive labels, which noise keeps off 0 and 1."""
        least = max(min(0.5, noises[0] / rows), 1e-4)
        share = min(max(sums[0] / rows + 0.5, least), 1 - least)
        return math.log(share / (1 - share)), math.sqrt(share * (1 - share))

    def fewest_rows(self, deviation: float, start: float) -> float:
        """Return max(1, deviation / 4) over the share of the rarer label.

        So a bin can expect that many rows of the rarer label: see `_EXPECTED`.
        """
        return max(_EXPECTED, _STANDING_OUT * deviation) / float(expit(-abs(start)))

    def scales(self, bound: float) -> float:
        """Return 1: log odds."""
        return 1.0

    def likely_effect(self, deviation: float) -> float:
        """Return 0.75: log odds."""
        return 0.75

    def believed(self, level: float, variance: float, start: float) -> float:
        """Return what leads to no incredible share of the rarer label: see `believable`."""
        if variance <= 0:
            return 1.0
        deviation = math.sqrt(variance)
        return float((believable(level, deviation, start) / deviation) ** 2)

    def table(self, intercept: float, variance: float) -> np.ndarray:
        """Return E sigmoid(intercept + f + Z), Z ~ N(0, variance), for a grid of f."""
        return expected_responses(intercept, math.sqrt(variance))

    def sampling_variance(self, mean_square: float) -> float:
        """Return 1: the variance of a label is p (1 - p), its curvature."""
        return 1.0

    def level(
        self, totals: np.ndarray, expected: np.ndarray, curvature: np.ndarray, variances: np.ndarray
    ) -> float:
        """Return the mean of Newton's steps, by precision, within +-`_LARGEST_SHIFT`."""
        level = weighted_mean((totals - expected) / curvature, curvature**2 / variances)
        return min(max(level, -_LARGEST_SHIFT), _LARGEST_SHIFT)


class SquaredLoss(Loss):
    """Squared error: residual y - F, curvature 1."""

    is_logistic = False
    kind = NUMBERS
    released = (
        "for all rows, the sum of the target less what is predicted so far; for each feature, sums "
        "of this difference times numbers that depend on a row's category or interval; where rows "
        "are few, the prediction has another constant in these sums, and one sum over all rows is "
        "added; also the "
        "number of rows by the size of that difference"
    )
    powers = 2
    totals_share = 0.02
    binning_share = 0.2
    largest_curvature = 1.0
    low_signal_intercept = 0.2
    low_signal_noise = 1.5
    low_signal_reach = 1.8
    longest_step = 3.0
    epochs, low_signal_epochs = 32, 64
    at_once = False
    rare = 0.0
    bin_deviations = 0.5
    intercept_prior = 0.25
    strides = (1.0, 1.8)
    hurries = True
    sizes_weight = SIZES_WEIGHT
    expects_strays = False

    def targets(self, y: np.ndarray, domain: Domain) -> np.ndarray:
        """Return (y - middle) / width of the public range, y clipped to it, rounded."""
        lower, upper = (float(bound) for bound in domain.target)
        width, middle = upper - lower, (lower + upper) / 2
        # Clipped again: the division rounds, and a target beyond 1/2 would exceed its sensitivity.
        return to_units(np.clip((np.clip(y, lower, upper) - middle) / width, -0.5, 0.5))

    def centred(self, targets: np.ndarray) -> np.ndarray:
        """Return the targets, which are offsets from the middle already."""
        return targets.astype(np.int64)

    def part_norm(self, bound: float) -> float:
        """Return c: the part of a residual is the residual."""
        return bound

    def few(self, typical: float) -> float:
        """Return `FEW`, or less for targets at both ends of their range."""
        return FEW if typical <= _APART else _FEW_IF_APART

    def start(self, sums: np.ndarray, rows: float, noises: np.ndarray) -> tuple[float, float]:
        """Return the mean target and its standard deviation, both shrunk by their noise."""
        average = float(sums[0] / rows / (1 + (noises[0] / rows / _MEAN_PRIOR) ** 2))
        return average, typical_deviation(sums[1] / rows - average**2, noises[1] / rows)

    def fewest_rows(self, deviation: float, start: float) -> float:
        """Return 0: there are no labels."""
        return 0.0

    def scales(self, bound: float) -> float:
        """Return twice the bound of the residuals."""
        return 2 * bound

    def likely_effect(self, deviation: float) -> float:
        """Return `_EFFECT` of that of the residuals."""
        return _EFFECT * deviation

    def table(self, intercept: float, variance: float) -> np.ndarray:
        """Return `LINEAR`: the target moves as the function does."""
        return LINEAR

    def sampling_variance(self, mean_square: float) -> float:
        """Return the mean square of the residuals."""
        return mean_square

    def level(
        self, totals: np.ndarray, expected: np.ndarray, curvature: np.ndarray, variances: np.ndarray
    ) -> float:
        """Return the mean of the residuals by precision."""
        return weighted_mean(totals / curvature, curvature**2 / variances)


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Do what ``np.average`` does, in a tenth of its time on a few dozen values."""
    return float((values * weights).sum() / weights.sum())


LOGISTIC, SQUARED = LogisticLoss(), SquaredLoss()
