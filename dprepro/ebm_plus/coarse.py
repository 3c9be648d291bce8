"""What is done where noise exceeds most of what rows say: public bins, and small noisy steps.

Where histograms would be lost in their noise, so would be bins merged by them, and the evidence for
how rough a single function is. Then every function has the same few public bins and the same
roughness, and follows its noisy gradients: what noise adds in one step the other steps average, and
what features have in common adds up in the sum of the functions, though no one of them stands out.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dprepro.additive.bins import FeatureBins, category_bins, largest, numeric_bins
from dprepro.data.domain import Feature, NumericFeature
from dprepro.ebm_plus.booster import LARGEST_RESIDUAL, Booster, Shares
from dprepro.ebm_plus.function import Answer, Function
from dprepro.ebm_plus.grid import FINEST, grid_edges
from dprepro.ebm_plus.paths import Path
from dprepro.ebm_plus.smoothing import lookup

COARSE_SHARE = 0.02
"""Part of mu^2 for the histograms. They weigh bins where a function is centred and shown."""

LEAST = 0.4
"""Log loss: where residuals are clipped if all is noise. The bound rises with the signal, up to
`LARGEST_RESIDUAL` where rows are no longer few: the more noise, the more a smaller bound saves."""

_INTERVALS = 10
"""Bins of a numeric feature: alike in cells of the public grid, not in width."""

_REACH = 0.5
"""Bins over which a gradient is spread: exp(-d / `_REACH`) of it goes to the d-th neighbour."""

_NOISE = 1.2
"""What the noise of all steps may come to in the sum of all functions before they are shrunk, in
units of the bound that queries are charged for; for labels, of what it would be without `LEAST`."""


def is_coarse(rows: float, n_features: int, mu: float, signal: float) -> bool:
    """Say whether there are fewer rows than `signal` deviations of the noise in a feature's sums.

    Parameters
    ----------
    rows
        About how many rows there are: released.
    n_features, mu
        Noise in a sum over the rows in a bin is about sqrt(n_features) / mu.
    """
    return rows * mu < signal * math.sqrt(n_features)


def public_bins(feature: Feature) -> tuple[FeatureBins, np.ndarray]:
    """Return bins that depend on the domain alone, and the bin of each cell, int (cells,).

    Numeric: so many neighbouring cells of the public grid each, and one for missing values where
    the domain allows them. Categorical: one for each category, as far as codes can number them.
    """
    if not isinstance(feature, NumericFeature):
        weights = np.ones(len(feature.categories) + feature.missing)
        return category_bins(feature, largest(weights, weights > 0, FINEST))
    edges = grid_edges(feature)
    cells = edges.size + 1
    n_bins = min(_INTERVALS, cells)
    bin_of_cell = np.arange(cells) * n_bins // cells
    missing_bin = n_bins if feature.missing else -1
    bins = numeric_bins(feature, edges[np.diff(bin_of_cell) > 0], missing_bin)
    return bins, np.append(bin_of_cell, max(missing_bin, 0))


def likely_counts(noisy: np.ndarray, deviations: np.ndarray, rows: float) -> np.ndarray:
    """Return rows a bin a posteriori, float64 (B,), positive, `rows` in all.

    A priori bins have as many rows each, give or take as many again.

    Parameters
    ----------
    noisy, deviations : float64 (B,)
        Noisy counts, and the standard deviation of the noise in each.
    """
    even = rows / noisy.size
    trust = even**2 / (even**2 + deviations**2)
    counts = np.maximum(trust * noisy + (1 - trust) * even, even / 20)
    return np.asarray(counts * (rows / counts.sum()))


class CoarseBooster(Booster):
    """A `Booster` whose functions follow their noisy gradients; the intercept is learned as there.

    A step adds gain S g to a path: g are the sums of residuals in the bins, and S spreads them over
    neighbours, so that functions which change little from bin to bin are learned first. The gain is
    proportional to the share of mu^2 that the query got, so that what is asked precisely counts
    more, and all steps together add noise of `_NOISE` to the sum of all paths in a row. It is at
    most Newton's for one function alone with all rows in one bin.

    Bins are asked about alike: which of them are rare is lost in noise.

    The function is its path times E / (E + V): the mean square of the path over the rows, and what
    noise is expected to contribute to it. E holds V, so a path of noise alone is halved.
    """

    rare: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss.at_once:
            way = min(self.signal / self.loss.coarse_signal, 1.0)
            self.bound = LEAST + way * (LARGEST_RESIDUAL - LEAST)
        self.shares = self._shares()
        self._paths = [Path(f.counts, _spreading(f)) for f in self.functions]

    def _shares(self) -> Shares:
        """Return the shares of an epoch: the intercept gets more for regression."""
        features, intercept, magnitudes = self.shares
        more = max(self.loss.coarse_intercept, intercept)
        rest = (1 - more) / (1 - intercept)
        return Shares(features * rest, more, magnitudes * rest)

    def learn(self, function: Function, answer: Answer, share: float, number: int) -> np.ndarray:
        """See `Booster.learn`."""
        if function is self.intercept:
            return super().learn(function, answer, share, number)
        path = self.path(function)
        gain = self.gain(share)
        steepest = self.rows * self.loss.largest_curvature * path.spreading.sum(axis=1).max()
        slopes = lookup(self.table(function), function.values)[1]
        # All bins of a feature have the same noise, as all have the same weight.
        path.go(min(gain, 1 / steepest), answer.sums, float(np.max(answer.deviation)), slopes)
        trust = path.trust()
        function.deviations = trust * np.sqrt(path.variances)
        return trust * path.values

    def gain(self, share: float) -> float:
        """Return what a step adds to a path for each unit of a sum that got this share of mu^2."""
        gain = _NOISE * share / (math.sqrt(self.n_epochs) * self.deviation)
        # A bound that falls shortens no step.
        return gain * LARGEST_RESIDUAL / self.bound if self.loss.at_once else gain

    def path(self, function: Function) -> Path:
        """Return the path of one of `functions`."""
        return self._paths[self.functions.index(function)]


def _spreading(function: Function) -> np.ndarray:
    """Return S, float64 (B, B): neighbours share gradients, except for missing values."""
    spreading = np.eye(function.counts.size)
    if function.ordered:
        intervals = np.flatnonzero(function.extents > 0)
        apart = np.abs(np.subtract.outer(intervals, intervals))
        spreading[np.ix_(intervals, intervals)] = np.exp(-apart / _REACH)
    return spreading
