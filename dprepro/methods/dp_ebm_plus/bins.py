"""Bins from noisy histograms: likely counts of public cells, and neighbours that join.

A histogram is asked for and inferred as a function is (`strategy`, `prior`): its counts lie around
even ones, each by itself or smoothly from cell to cell, and the noise is known. Where noise is
large the counts are even, and so are the bins; where it is small they are what was counted. All of
it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.additive.bins import FeatureBins, category_bins, largest, numeric_bins
from dprepro.data.domain import CategoricalFeature, Feature, NumericFeature
from dprepro.methods.dp_ebm_plus.grid import grid_edges
from dprepro.methods.dp_ebm_plus.prior import (
    Priors,
    independent,
    log_normal,
    mixture,
    ornstein_uhlenbeck,
    posteriors,
    with_missing,
)
from dprepro.methods.dp_ebm_plus.strategy import Strategy
from dprepro.privacy.query import NoisyAnswer
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

_LEAST_OWN = 1e-3
"""Variance of a count that is its own alone, in that of the noise in a number: noise is shared."""

_PART_OF_A_ROW = 2.0**-10
"""Counts are whole numbers of it."""

_ASKED_REACH = 0.3
"""Part of the range over which the strategy for histograms takes counts to be alike. With a longer
one, cells that stand out are lost in noise; with a shorter one, counts of ranges are."""

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


def histogram(k: int, feature: Feature, noise: float, rows: float) -> Strategy:
    """Return how rows in the cells of feature k are asked for; the last cell is of missing values.

    `noise` is the standard deviation of that in a number, and `rows` about how many there are.
    """
    if isinstance(feature, NumericFeature):
        precision = with_missing(_alike(len(grid_edges(feature)) + 1, _ASKED_REACH))
    else:
        precision = independent(len(feature.categories) + 1)
    return Strategy.of_cells(k, precision, noise / rows)


def _alike(cells: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    return ornstein_uhlenbeck(np.full(cells - 1, 1 / cells), reach)


def likely_counts(
    feature: Feature, strategy: Strategy, answer: NoisyAnswer, rows: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean of the counts, and the variance of each, float64 (C,) both.

    Parameters
    ----------
    strategy, answer
        What was asked, and the answer, float64 (C,). The last cell is of missing values: where the
        domain allows none, it is known to be empty.
    rows
        About how many rows there are.
    """
    numeric = isinstance(feature, NumericFeature)
    noisy = strategy.mix.sums(answer.value / strategy.code.weights)
    shared = strategy.noise(answer.scale)
    used = noisy.size if feature.missing else noisy.size - 1
    even = rows / max(used, 1)
    alike = noisy.size - 1 if numeric else used
    precisions = [independent(alike)]
    if numeric:
        precisions = [_alike(alike, reach) for reach in _REACHES]
    priors = Priors.of(precisions, _SIZES)
    own = np.full(alike, _LEAST_OWN * answer.scale**2)
    tied = np.ascontiguousarray(shared[:, :alike])
    found = posteriors(noisy[:alike] - even, own, tied, np.ones(alike), priors, even)
    likely = mixture(found, log_normal(_SIZES, 1.0, 3.0))
    counts, variances = np.zeros(noisy.size), np.zeros(noisy.size)
    counts[:alike], variances[:alike] = even + likely.mean, likely.variance
    if numeric and feature.missing:
        square = float(shared[0, -1]) ** 2
        trust = even**2 / (even**2 + square)
        counts[-1] = max(even + trust * (noisy[-1] - even), 0.0)
        variances[-1] = trust * square
    return counts, variances


def binned(feature: Feature, strategy: Strategy, answer: NoisyAnswer, rows: float) -> BinnedFeature:
    """Return a feature's bins.

    Cells of a number join from left to right until a bin stands out from the noise in its count, or
    holds a 24th of all rows. Categories have a bin each, as far as codes can number them. So have
    missing values, where the domain allows them.

    Parameters
    ----------
    strategy, answer, rows
        See `likely_counts`.
    """
    cells, variances = likely_counts(feature, strategy, answer, rows)
    if isinstance(feature, CategoricalFeature):
        weights = cells[: len(feature.categories) + feature.missing]
        bins, bin_of_cell = category_bins(feature, largest(weights, weights == weights, FINEST))
        intervals = 0
    else:
        seen = _SEEN * answer.scale / float(strategy.code.weights.max())
        order = _join(cells[:-1], seen, rows / FINEST, rows / _COARSEST)
        intervals = int(order[-1]) + 1
        missing_bin = intervals if feature.missing else -1
        bins = numeric_bins(feature, grid_edges(feature)[np.diff(order) > 0], missing_bin)
        bin_of_cell = np.append(order, max(missing_bin, 0))
    counts = np.bincount(bin_of_cell, cells, bins.n_bins)
    uncertainty = np.sqrt(np.bincount(bin_of_cell, variances, bins.n_bins))
    # A count lost in the noise is as likely half a deviation as anything, and never above average.
    counts = np.maximum(counts, np.minimum(uncertainty / 2, rows / bins.n_bins / 4) + 1e-6 * rows)
    # Queries follow from counts, and an exponential's last digit depends on the machine.
    counts = (
        np.maximum(np.rint(counts * (rows / counts.sum()) / _PART_OF_A_ROW), 1) * _PART_OF_A_ROW
    )
    return BinnedFeature(bins, bin_of_cell, counts, intervals)


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
