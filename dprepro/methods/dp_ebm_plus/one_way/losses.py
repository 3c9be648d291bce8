"""What DP-EBM+ minimises: log loss for two labels, squared error for regression.

Targets are 0 and 1, or offsets from the middle of their public range in units of its width, from
-1/2 to 1/2. A function is in log odds, or in the unit of the targets.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from dprepro.methods.dp_ebm_plus import losses as curated
from dprepro.methods.dp_ebm_plus.clipping import typical_deviation
from dprepro.methods.dp_ebm_plus.smoothing import _NODES, _WEIGHTS

LARGEST_RESIDUAL = 0.8
"""Log loss: where residuals are clipped in a row whose code is of typical length. The few rows with
a larger one say less of all than the noise that a larger bound would cost."""

_NEWTON = 12
"""Steps of Newton's method for a level, which has settled long before."""

_LONGEST = 3.0
"""Longest step of a level, in log odds."""


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
        About how large residuals are that are not clipped.
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
    """A loss; its only objects are `LOGISTIC` and `SQUARED`.

    Attributes
    ----------
    of_curator
        What the curator knows the loss by.
    totals_share
        Share of mu^2 that goes to the totals.
    counts_sizes
        Whether each epoch counts rows by the size of their residuals, and asks about the intercept
        apart from the features: where targets have no bound but their range.
    prior
        Standard deviation of the intercept before any answer.
    """

    of_curator: ClassVar[curated.Loss]
    totals_share: ClassVar[float]
    counts_sizes: ClassVar[bool]
    prior: ClassVar[float]

    @abstractmethod
    def start(self, rows: float, noise: float, sums: np.ndarray, noises: np.ndarray) -> Start:
        """Return what noisy sums of the powers of centred targets say, and the noise in each."""

    @abstractmethod
    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> tuple[np.ndarray, np.ndarray]:
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
    def sampling(self, mean_square: float) -> float:
        """Return the variance of a residual over its slope; `mean_square` is of residuals."""


class LogisticLoss(Loss):
    """Log loss: residual y - sigmoid(F)."""

    of_curator = curated.LOGISTIC
    totals_share = 0.01
    counts_sizes = False
    prior = 3.0

    def start(self, rows: float, noise: float, sums: np.ndarray, noises: np.ndarray) -> Start:
        """See `Loss.start`; noise keeps the share of positive labels off 0 and 1."""
        least = max(min(0.5, noises[0] / rows), 1e-4)
        rate = min(max(float(sums[0]) / rows + 0.5, least), 1 - least)
        level, slope = math.log(rate / (1 - rate)), rate * (1 - rate)
        return Start(rows, noise, level, rate, slope, LARGEST_RESIDUAL, 1.0)

    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return E sigmoid(a + f + Z), Z ~ N(0, v), where all rows together have the released rate.

        v is the variance of the `others`. a is not the intercept, but what makes the rates of the
        bins add up.
        """
        scores = values + math.sqrt(others) * _NODES[:, None]
        for _ in range(_NEWTON + 1):
            each = expit(level + scores)
            # No matrix product: its last digit is not the same on every machine.
            rates = (_WEIGHTS[:, None] * each).sum(axis=0)
            slopes = (_WEIGHTS[:, None] * each * (1 - each)).sum(axis=0)
            gap = float((shares * rates).sum()) - start.rate
            step = gap / max(float((shares * slopes).sum()), 1e-12)
            level -= min(max(step, -_LONGEST), _LONGEST)
        return rates, slopes

    def sampling(self, mean_square: float) -> float:
        """Return 1: the variance of a label is p (1 - p), its slope."""
        return 1.0


class SquaredLoss(Loss):
    """Squared error: residual y - F, F clipped to the range of the targets."""

    of_curator = curated.SQUARED
    totals_share = 0.02
    counts_sizes = True
    prior = 0.25

    def start(self, rows: float, noise: float, sums: np.ndarray, noises: np.ndarray) -> Start:
        """See `Loss.start`; the mean is shrunk by its noise. Effects are as large as residuals."""
        mean = float(sums[0]) / rows / (1 + (noises[0] / rows / self.prior) ** 2)
        typical = typical_deviation(float(sums[1]) / rows - mean**2, noises[1] / rows)
        return Start(rows, noise, mean, mean, 1.0, typical, typical)

    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the function itself."""
        return values, np.ones(values.size)

    def sampling(self, mean_square: float) -> float:
        """Return the mean square of residuals."""
        return mean_square


LOGISTIC, SQUARED = LogisticLoss(), SquaredLoss()
