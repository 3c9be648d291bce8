"""What DP-EBM+ minimises: log loss for two labels, squared error for regression.

Targets are 0 and 1 (classification), or lie in [-1/2, 1/2]: offsets from the middle of the public
range, in units of its width (regression). A function is in log odds, or in the unit of the targets.
Rows hold both in whole numbers of `kernel.UNIT`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from dprepro.methods.dp_ebm_plus.clipping import typical_deviation
from dprepro.methods.dp_ebm_plus.expected_response import LINEAR, believable, expected_rates
from dprepro.methods.dp_ebm_plus.kernel import BITS, to_units
from dprepro.methods.dp_ebm_plus.loss import Loss

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
below `_FEW_IF_APART`. The deviation is a noisy release: it may be on the wrong side."""

_MEAN_PRIOR = 0.25
"""Standard deviation of the mean target, before it is known, in units of the range."""


class LogisticLoss(Loss):
    """Log loss: residual y - sigmoid(F), curvature p (1 - p)."""

    is_logistic = True
    released = (
        "for all rows, the sum of the label (0 or 1) less its predicted probability; for each "
        "feature, sums of this difference times numbers that depend on a row's category or interval"
    )
    powers = 1
    totals_share = 0.01
    binning_share = 0.12
    largest_curvature = 0.25
    coarse_intercept = 0.0
    coarse_noise = 1.2
    coarse_reach = 4.0
    longest_step = math.inf
    epochs = coarse_epochs = 32
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
        return expected_rates(intercept, math.sqrt(variance))

    def sampling_variance(self, mean_square: float) -> float:
        """Return 1: the variance of a label is p (1 - p), its curvature."""
        return 1.0

    def level(
        self,
        totals: np.ndarray,
        expected: np.ndarray,
        curvature: np.ndarray,
        variances: np.ndarray,
    ) -> float:
        """Return the mean of Newton's steps, by precision, within +-`_LARGEST_SHIFT`."""
        level = weighted_mean((totals - expected) / curvature, curvature**2 / variances)
        return min(max(level, -_LARGEST_SHIFT), _LARGEST_SHIFT)


class SquaredLoss(Loss):
    """Squared error: residual y - F, curvature 1."""

    is_logistic = False
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
    coarse_intercept = 0.2
    coarse_noise = 1.5
    coarse_reach = 1.8
    longest_step = 3.0
    epochs, coarse_epochs = 32, 64
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
        self,
        totals: np.ndarray,
        expected: np.ndarray,
        curvature: np.ndarray,
        variances: np.ndarray,
    ) -> float:
        """Return the mean of the residuals by precision."""
        return weighted_mean(totals / curvature, curvature**2 / variances)


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Do what ``np.average`` does, in a tenth of its time on a few dozen values."""
    return float((values * weights).sum() / weights.sum())


LOGISTIC, SQUARED = LogisticLoss(), SquaredLoss()
