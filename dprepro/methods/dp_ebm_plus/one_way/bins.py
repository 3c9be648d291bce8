"""Bins from noisy histograms: likely counts of public cells, and neighbours that join.

A histogram is inferred as a function is (`prior`): its counts lie around even ones, each by itself
or smoothly from cell to cell, and the noise is known. Where noise is large the counts are even, and
so are the bins; where it is small they are what was counted. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.additive.bins import FeatureBins, category_bins, largest, numeric_bins
from dprepro.data.domain import CategoricalFeature, Feature, NumericFeature
from dprepro.methods.dp_ebm_plus.grid import grid_edges
from dprepro.methods.dp_ebm_plus.one_way.prior import (
    Priors,
    independent,
    log_normal,
    mixture,
    ornstein_uhlenbeck,
    posteriors,
)
from dprepro.runtime.kernels import kernel

FINEST = 250
"""Codes are uint8, so there are no more bins. None aims at fewer rows than this share of all."""

_COARSEST = 24
"""A numeric bin that holds one in so many of all rows is closed, whatever the noise."""

_SEEN = 0.6
"""Deviations of the noise in its count from which on a numeric bin may be closed."""

_SIZES = np.array([0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
"""How far counts lie from even ones, as a multiple of these; 1 is the likeliest, threefold more or
less is one standard deviation of the logarithm."""

_REACHES = (0.01, 0.1, 1.0)
"""Parts of the range over which counts are alike."""


@dataclass(frozen=True)
class BinnedFeature:
    """A feature's bins, and the rows that they are likely to hold.

    Attributes
    ----------
    bins
        The bins.
    bin_of_cell : int (cells,)
        The bin of each public cell.
    counts : float64 (B,)
        Rows of each bin, positive, all rows in all.
    intervals
        How many bins are intervals of a number in order; 0 for categories. One more may be of
        missing values.
    """

    bins: FeatureBins
    bin_of_cell: np.ndarray
    counts: np.ndarray
    intervals: int


def likely_counts(
    feature: Feature, noisy: np.ndarray, deviation: float, rows: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean of the counts, and the variance of each, float64 (C,) both.

    Parameters
    ----------
    noisy : float64 (C,)
        Rows in each cell and noise; the last cell is of missing values. Where the domain allows
        none, it is known to be empty.
    deviation
        Standard deviation of the noise.
    rows
        About how many rows there are.
    """
    numeric = isinstance(feature, NumericFeature)
    used = noisy.size if feature.missing else noisy.size - 1
    even = rows / max(used, 1)
    alike = noisy.size - 1 if numeric else used
    precisions = [independent(alike)]
    if numeric and alike > 2:
        apart = np.full(alike - 1, 1 / alike)
        precisions = [ornstein_uhlenbeck(apart, reach) for reach in _REACHES]
    priors = Priors.of(precisions, _SIZES)
    known = np.full(alike, deviation**2)
    found = posteriors(
        noisy[:alike] - even, known, np.zeros((2, alike)), np.ones(alike), priors, even
    )
    likely = mixture(found, log_normal(_SIZES, 1.0, 3.0))
    counts, variances = np.zeros(noisy.size), np.zeros(noisy.size)
    counts[:alike], variances[:alike] = even + likely.mean, likely.variance
    if numeric and feature.missing:
        trust = even**2 / (even**2 + deviation**2)
        counts[-1] = max(even + trust * (noisy[-1] - even), 0.0)
        variances[-1] = trust * deviation**2
    return counts, variances


def binned(feature: Feature, noisy: np.ndarray, deviation: float, rows: float) -> BinnedFeature:
    """Return a feature's bins.

    Cells of a number join from left to right until a bin stands out from the noise in its count, or
    holds a 24th of all rows. Categories have a bin each, as far as codes can
    number them. So have missing values, where the domain allows them.

    Parameters
    ----------
    noisy, deviation, rows
        See `likely_counts`.
    """
    cells, variances = likely_counts(feature, noisy, deviation, rows)
    if isinstance(feature, CategoricalFeature):
        weights = cells[: len(feature.categories) + feature.missing]
        bins, bin_of_cell = category_bins(feature, largest(weights, weights == weights, FINEST))
        intervals = 0
    else:
        order = _join(cells[:-1], _SEEN * deviation, rows / FINEST, rows / _COARSEST)
        intervals = int(order[-1]) + 1
        missing_bin = intervals if feature.missing else -1
        bins = numeric_bins(feature, grid_edges(feature)[np.diff(order) > 0], missing_bin)
        bin_of_cell = np.append(order, max(missing_bin, 0))
    counts = np.bincount(bin_of_cell, cells, bins.n_bins)
    uncertainty = np.sqrt(np.bincount(bin_of_cell, variances, bins.n_bins))
    # A count lost in the noise is as likely half a deviation as anything, and never above average.
    counts = np.maximum(counts, np.minimum(uncertainty / 2, rows / bins.n_bins / 4) + 1e-6 * rows)
    return BinnedFeature(bins, bin_of_cell, counts * (rows / counts.sum()), intervals)


@kernel("(float64[::1], float64, float64, float64)")
def _join(counts, seen, least, most):  # type: ignore[no-untyped-def]
    bins = np.zeros(counts.size, np.int64)
    current, total, cells = 0, 0.0, 0
    for i in range(counts.size):
        bins[i] = current
        total += counts[i]
        cells += 1
        if total >= max(min(seen * math.sqrt(cells), most), least):
            current, total, cells = current + 1, 0.0, 0
    if current > 0:
        bins[bins == current] = current - 1
    return bins
