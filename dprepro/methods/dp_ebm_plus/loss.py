"""What DP-EBM+ has to know of a loss; `dprepro.methods.dp_ebm_plus.losses` has both.

A loss owns what differs between labels and numbers: how targets are centred, what an epoch asks for
and with which bound, and what is expected of a function before its answers are seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from dprepro.data.domain import Domain


class Loss(ABC):
    """A loss; its only objects are `LOGISTIC` and `SQUARED`.

    Attributes
    ----------
    is_logistic
        What the kernels are told.
    released
        What an epoch releases, for the ledger.
    powers
        Highest power of the targets whose sum is released at the start.
    totals_share, binning_share
        Shares of mu^2 that go to the totals and to the histograms.
    coarse_intercept, coarse_noise, coarse_reach, longest_step
        How functions of few rows are learned: see `dprepro.methods.dp_ebm_plus.low_signal`.
    largest_curvature
        Of a row.
    epochs, coarse_epochs
        How many, unless another number is asked for; the second where rows are few.
    at_once
        Whether an epoch asks about the intercept and all features in one query, however many rows
        there are; else about one after another, unless rows are few.
    rare
        How much more precisely rare bins are asked about than others; see `coding.code`.
    bin_deviations
        Standard deviations of noise that a bin of a numeric feature has to hold.
    intercept_prior
        Standard deviation of the intercept before any answer; for regression of few rows, of the
        middle.
    strides
        Unless `at_once`: how much of the way to its inferred values a function goes, after the
        first epoch, where noise is large, and where it is small. More than 1 gains on features that
        depend on each other. See `Pace` for what is asked at once.
    hurries
        Whether later epochs count all the more where noise is small; see the booster.
    sizes_weight
        mu^2 of the histogram of |residual|; 0 if none is asked.
    expects_strays
        Whether rows far from all others may have another mean; see the booster.
    """

    is_logistic: ClassVar[bool]
    released: ClassVar[str]
    powers: ClassVar[int]
    totals_share: ClassVar[float]
    binning_share: ClassVar[float]
    coarse_noise: ClassVar[float]
    coarse_reach: ClassVar[float]
    longest_step: ClassVar[float]
    largest_curvature: ClassVar[float]
    coarse_intercept: ClassVar[float]
    epochs: ClassVar[int]
    coarse_epochs: ClassVar[int]
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
        self,
        totals: np.ndarray,
        expected: np.ndarray,
        curvature: np.ndarray,
        variances: np.ndarray,
    ) -> float:
        """Return the part of `totals` that all bins share, in the unit of the function."""
