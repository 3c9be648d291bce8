"""The curator of the toy DP-EBM: codes and residuals stay here; mean residuals come out noisy.

Three things leave it without noise, as published: the ledger lists them as not covered by epsilon.
One of them are the bins, quantiles of a numeric feature. Residuals and means are whole numbers of
`UNIT`, so sums are exact, and so is the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain, Feature, category_codes, numbers_of
from dprepro.estimators.inputs import Rows
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NumberedGaussianMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import Instruction, NoisyAnswer, Query
from dprepro.privacy.sensitivity import ZERO_OUT, Sensitivity

UNIT = 2.0**-24
"""Of residuals, means and steps, in the target's unit."""

_LARGEST_SUM = 2**62

QUANTILES = "quantiles of the numeric features, which are the bin edges"

CATEGORIES = "categories that occur"

COUNTS = "number of rows in every bin, by which its sum of residuals is divided"

UNPAID = (QUANTILES, CATEGORIES, COUNTS)
"""What a fit reads without noise, in the words of the ledger."""

OVERSPENT = (
    "the noise is that of a single release, and is used anew for every bin, feature and epoch: "
    "the budget is spent many times over"
)

UNBOUNDED = (
    "sensitivity 1 is assumed for the mean residual of a bin, which moves by far less in a large "
    "bin and by a whole residual, which nothing bounds, in a bin of one row"
)

GAPS = (
    OVERSPENT,
    UNBOUNDED,
    "sqrt(2 ln(1.25 / delta)) / epsilon is enough noise only for epsilon below 1",
)


@dataclass(frozen=True)
class ToyBins:
    """The bins of one feature: `edges`, ascending, of a numeric one, or `categories`.

    A numeric bin holds edge <= x < next edge; values beyond the ends go to the outer bins. Bin 0
    of a categorical feature is for missing and unseen categories.
    """

    edges: np.ndarray | None
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, column: pd.Series, feature: Feature, max_bins: int) -> ToyBins:
        """Return one bin a category, or quantile bins, at most `max_bins`, read from the rows."""
        if isinstance(feature, CategoricalFeature):
            return cls(None, feature.categories)
        return cls(np.unique(np.quantile(_numbers(column), np.linspace(0, 1, max_bins + 1))))

    @property
    def count(self) -> int:
        """The number of bins."""
        return len(self.categories) + 1 if self.edges is None else max(1, len(self.edges) - 1)

    def encode(self, column: pd.Series) -> np.ndarray:
        """Return the bin of each row, int64 (n,)."""
        if self.edges is None:
            return category_codes(column, self.categories) + 1
        return np.searchsorted(self.edges[1:-1], _numbers(column), side="right")


def _numbers(column: pd.Series) -> np.ndarray:
    values = numbers_of(column)
    if np.isnan(values).any():
        raise ValueError(
            f"feature {column.name!r} has missing values (NaN), which the toy DP-EBM cannot take: "
            "fill them in, or choose another method"
        )
    return values


@dataclass(frozen=True)
class MeanResiduals(Query):
    """The mean residual of each bin of a feature in an epoch; 0 where a bin has no rows."""

    feature: int
    epoch: int

    @property
    def enforced(self) -> float:
        """Infinity: a bin may hold one row, and nothing bounds its residual."""
        return math.inf


@dataclass(frozen=True, eq=False)
class Step(Instruction):
    """Subtract a change of a feature's function from the residuals.

    Attributes
    ----------
    change : float64 (bins,)
        Whole numbers of `UNIT`.
    """

    feature: int
    change: np.ndarray


class ExactMeans:
    """Codes and residuals of the rows, and the mean residuals without noise.

    Residuals are cut off where their sum could leave int64: at 2^38 over the number of rows.

    Attributes
    ----------
    bins : list of ToyBins
        One a feature, at most `max_bins` of a numeric one.
    counts : list of int64 (bins,)
        Rows in each bin.

    Raises
    ------
    ValueError
        If a numeric feature has missing values.
    """

    def __init__(self, rows: Rows, max_bins: int) -> None:
        frame = rows.frame
        features = Domain.observe(frame, rows.targets, "regression").features
        self.bins = [
            ToyBins.of(frame[name], feature, max_bins)
            for name, feature in zip(frame.columns, features, strict=True)
        ]
        self._codes = [
            bins.encode(frame[name]) for bins, name in zip(self.bins, frame.columns, strict=True)
        ]
        self.counts = [
            np.bincount(codes, minlength=bins.count)
            for codes, bins in zip(self._codes, self.bins, strict=True)
        ]
        self._orders = [np.argsort(codes, kind="stable") for codes in self._codes]
        self._largest = _LARGEST_SUM // max(len(frame), 1)
        cut = np.clip(rows.targets.astype(np.float64) / UNIT, -_LARGEST_SUM, _LARGEST_SUM)
        self._residuals = np.clip(cut.astype(np.int64), -self._largest, self._largest)

    def means(self, feature: int) -> np.ndarray:
        """Return the mean residual of each bin of a feature, rounded down, int64 (bins,)."""
        counts = self.counts[feature]
        filled = counts > 0
        starts = (np.cumsum(counts) - counts)[filled]
        means = np.zeros(len(counts), np.int64)
        sums = np.add.reduceat(self._residuals[self._orders[feature]], starts)
        means[filled] = sums // counts[filled]
        return means

    def subtract(self, step: Step) -> None:
        """Subtract a change from the residuals of the rows in each bin."""
        change = np.rint(step.change / UNIT).astype(np.int64)
        left = self._residuals - change[self._codes[step.feature]]
        self._residuals = np.clip(left, -self._largest, self._largest)


class ToyCurator(Curator):
    """Answers for one epoch after the other, feature after feature.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    max_bins
        Bins of a numeric feature.
    n_epochs
        How often each feature will be asked for.
    ledger, seed
        See `Curator`; the ledger has to list `UNPAID` and `GAPS`.

    Raises
    ------
    ValueError
        If a numeric feature has missing values.
    SensitivityError
        If the ledger does not list the gap `OVERSPENT`.
    """

    relations = frozenset({ZERO_OUT})

    def __init__(
        self, rows: Private[Rows], max_bins: int, n_epochs: int, ledger: Ledger, seed: int | None
    ) -> None:
        super().__init__(ledger, seed, ())
        opened = rows.open()
        self._exact = Private(ExactMeans(opened, max_bins))
        self._uses = [
            self._enter(ledger, str(name), n_epochs, bins.count)
            for name, bins in zip(opened.frame.columns, self.bins(), strict=True)
        ]
        self._require_budget(OVERSPENT)

    def _enter(
        self, ledger: Ledger, name: str, n_epochs: int, n_bins: int
    ) -> NumberedGaussianMechanism:
        """Enter the noise of a feature, by the formula of the slides."""
        return NumberedGaussianMechanism(
            self._source,
            (n_epochs, n_bins),
            releases=f"mean residual in each bin of {name}, every epoch",
            noise_multiplier=math.sqrt(2 * math.log(1.25 / ledger.delta)) / ledger.epsilon,
            sensitivity=Sensitivity(1.0, math.sqrt(2)),
            uses=n_epochs,
            budget=ledger.budget,
        )

    def bins(self) -> list[ToyBins]:
        """Return the bins of each feature, read from the rows; the ledger lists them."""
        self._read_exactly(QUANTILES)
        self._read_exactly(CATEGORIES)
        return self._exact.open().bins

    def occupied(self) -> list[np.ndarray]:
        """Return which bins of each feature have rows, bool (bins,); the ledger lists it."""
        self._read_exactly(COUNTS)
        return [counts > 0 for counts in self._exact.open().counts]

    def mean_residuals(self, query: MeanResiduals) -> NoisyAnswer:
        """Return the noisy mean residual of each bin of a feature, float64 (bins,).

        It is a whole number of `UNIT`.

        Raises
        ------
        BudgetError
            If the feature was answered in this epoch before, or there is no such epoch.
        SensitivityError
            If the query names a gap that the ledger does not list.
        """
        self._read_exactly(COUNTS)  # the sums are divided by them, however few they are
        exact = self._exact.open().means(query.feature)
        answer = self._uses[query.feature].answer(query.epoch, exact, query, UNIT)
        return self._announce(query, answer)

    def _follow(self, instruction: Any) -> None:
        self._exact.open().subtract(instruction)
