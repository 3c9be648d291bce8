"""How residuals of a regression are distributed by size, and where to clip them, from noisy counts.

All of it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
from scipy.special import erf, gamma, gammainc, ndtri

from dprepro.privacy.query import NoisyAnswer

MAGNITUDES = 20
"""Cells for |residual|: half octaves of the target's range, down to a thousandth."""

_WHOLE, _HALF = np.divmod(np.arange(1, MAGNITUDES + 1), 2)
EDGES = np.ldexp(np.where(_HALF, math.sqrt(0.5), 1.0), -_WHOLE)
"""Lower edges of the cells; the first also counts what is larger, the last what is smaller."""

ENDS = np.concatenate([[0.0], EDGES[-2::-1], [1.0]])
"""Where cells end: the smallest begins at 0, the largest ends at 1."""

_QUARTILE = 0.6745
"""Half of all standard normal numbers lie within so much of 0."""

HALF_CELL = math.sqrt(math.sqrt(2))
"""The middle of a cell over its lower edge."""

_BINS = 16.0
_UNEVEN = 0.25
"""Squares of the bins that a feature has, and of how uneven residuals are to both sides, about."""


_SMALLEST, _WIDEST = 1e-5, 0.25
"""Variances that targets may have, in units of the square of their range."""

_SPREAD, _OCTAVES = 0.2, 1.5
"""Their deviation a priori: about 0.2, and the standard deviation of its binary logarithm."""

_NOISES, _NODES = 8.0, 401

_MIXTURES = tuple(product((0.0, 0.1, 0.3, 0.5), (2.0, 4.0, 10.0)))
"""Shares of residuals whose deviation is so many times that of the others; all are normal."""

_FLAT = 6.0
"""Exponent b of one more density, exp(-|r / s|^b): nearly alike within s, and hardly any beyond."""

_EXACT = (0.25, 0.5, 0.75)
"""Shares of rows without a residual, if there may be such rows: targets that lie at an end of their
range, and are predicted to lie there or beyond."""

_DEVIATIONS = np.geomspace(0.001, 0.5, 40)
"""Standard deviations that residuals may have, in units of the target's range."""

_MISFITS = (0.05, 0.2, 0.6)
"""By what part of it the true share of a cell may differ from what such a density says."""

_LEAST = 1e-9
"""Least share of a cell a priori."""

_OCTAVES_OF_SIZES = 1.5
"""Standard deviation of the deviation's binary logarithm a priori, if anything is known of it."""


def typical_deviation(variance: float, noise: float) -> float:
    """Return the deviation of targets given their noisy variance and the noise in it.

    The root of the mean variance a posteriori, which is positive however far below 0 noise has
    taken `variance`.
    """
    ends = np.array([variance - _NOISES * noise, variance + _NOISES * noise])
    lower, upper = np.clip(ends, _SMALLEST, _WIDEST).tolist()
    squares = np.linspace(lower, upper, _NODES)
    prior = -0.5 * (np.log2(np.sqrt(squares) / _SPREAD) / _OCTAVES) ** 2 - np.log(squares)
    fit = prior - 0.5 * ((squares - variance) / max(noise, 1e-12)) ** 2
    weights = np.exp(fit - fit.max())
    return math.sqrt(float((weights * squares).sum() / weights.sum()))


def within_normal(z: np.ndarray) -> np.ndarray:
    """Return the probability that a standard normal number is at most z from 0."""
    return np.asarray(erf(z / np.sqrt(2)))


def share_within(sizes: np.ndarray, size: float) -> float:
    """Return the share of rows whose |residual| is at most `size`, spread evenly over a cell.

    `sizes`, float64 (20,), are rows by |residual|: see `EDGES`.
    """
    return float(np.interp(size, ENDS, _below(sizes)))


def median_deviation(sizes: np.ndarray) -> float:
    """Return the standard deviation of normal residuals with the same median |residual|.

    Large residuals, of which noisy counts say little, hardly matter to it. `sizes` as in
    `share_within`.
    """
    return float(np.interp(0.5, _below(sizes), ENDS)) / _QUARTILE


def _below(sizes: np.ndarray) -> np.ndarray:
    """Return the share of rows up to each of `ENDS`, float64 (21,), rising."""
    return np.append(0.0, np.cumsum(sizes[::-1]) / sizes.sum())


def best_bound(sizes: np.ndarray, noise: float, bins: float = _BINS) -> float:
    """Return the edge at which noise and what clipping takes away are least together.

    Clipping at c moves a sum of residuals by at most that of (|r| - c)+, and by less the more even
    the two sides are.

    Parameters
    ----------
    sizes : float64 (20,)
        Rows by |residual|.
    noise
        Deviation of the noise in the sum over a bin, for c = 1, from all features and epochs.
    bins
        What the square of the noise counts for: the more bins, the more noise there is in all.
    """
    above = np.clip(EDGES[:, None] * HALF_CELL - EDGES, 0.0, None)
    bias = (sizes[:, None] * above).sum(axis=0)
    error = _UNEVEN * bias**2 + bins * (noise * EDGES) ** 2
    return float(EDGES[np.argmin(error)])


def mean_counts(counts: Sequence[NoisyAnswer], weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weighted mean of noisy counts, float64 (20,), and the deviation of its noise.

    `weights` has a number for each of the `counts`; their sum does not matter.
    """
    parts = weights / weights.sum()
    # No matrix product: its last digit is not the same on every machine.
    mean = (parts[:, None] * np.stack([answer.value for answer in counts])).sum(axis=0)
    scales = np.array([answer.scale for answer in counts])
    return mean, math.sqrt(((parts * scales) ** 2).sum())


def likely_shares(
    noisy: np.ndarray,
    noise: float,
    rows: float,
    rows_noise: float,
    typical: float | None = None,
    exact: bool = False,
) -> np.ndarray:
    r"""Return the shares of rows by |residual|, float64 (20,), a posteriori: they add up to 1.

    A priori residuals have a symmetric density of some shape (one of `_MIXTURES`, or `_FLAT`) and
    deviation (`_DEVIATIONS`, alike in their logarithm, or about `typical`). It says the share q_j
    of cell j. The true share is q_j (1 + t Z_j), with standard normal Z_j and t one of `_MISFITS`.
    So few numbers decide where noise is large, and the counts alone where it is small. The shares
    returned are the mean over all of this: what a new row's residual is drawn from, given the
    counts.

    Parameters
    ----------
    noisy : float64 (20,)
        Noisy counts of the cells of `EDGES`.
    noise
        Standard deviation of the noise in each.
    rows, rows_noise
        The released number of rows, and the standard deviation of its noise.
    typical
        About what deviation is expected, give or take `_OCTAVES`; None: all are equally likely.
    exact
        Whether some rows (`_EXACT`) may have no residual a priori.
    """
    densities = _densities(exact)
    before = np.zeros(_DEVIATIONS.size)
    if typical is not None:
        before = -0.5 * (np.log2(_DEVIATIONS / typical) / _OCTAVES_OF_SIZES) ** 2
    before = np.tile(before, len(densities) // _DEVIATIONS.size)
    evidence, shares = [], []
    for misfit in _MISFITS:
        expected = rows * densities
        # Of what the counts were without noise: rows are drawn, and the density is not quite right.
        own = expected + (misfit * expected) ** 2
        variances = own + noise**2
        gaps = noisy - expected
        # The number of rows is known up to its noise: it adds a variance that all cells share.
        towards = (densities * gaps / variances).sum(axis=1)
        known = (densities**2 / variances).sum(axis=1)
        shared = rows_noise**2 / (1 + rows_noise**2 * known)
        misses = (gaps**2 / variances).sum(axis=1) - shared * towards**2
        evidence.append(
            before
            - 0.5 * (misses + np.log(variances).sum(axis=1) + np.log1p(rows_noise**2 * known))
        )
        n = np.maximum(rows + shared * towards, rows / 4)[:, None]
        likely = n * densities + own / variances * (noisy - n * densities)
        likely = np.maximum(likely, 0.0)
        shares.append(likely / likely.sum(axis=1, keepdims=True))
    weights = np.concatenate(evidence)
    weights = np.exp(weights - weights.max())
    # Not a matrix product, whose last digit depends on the processor: queries follow from this.
    return np.asarray((weights[:, None] * np.concatenate(shares)).sum(axis=0) / weights.sum())


@cache
def _densities(exact: bool = False) -> np.ndarray:
    """Return the share of each cell under each density, float64 (shapes * deviations, 20).

    Those with rows without a residual are the last ones.
    """
    if exact:
        others, none = _densities(), np.arange(EDGES.size) == EDGES.size - 1
        return np.concatenate([others, *(s * none + (1 - s) * others for s in _EXACT)])
    deviations = _DEVIATIONS[:, None]
    scales = deviations * math.sqrt(gamma(1 / _FLAT) / gamma(3 / _FLAT))
    found = [gammainc(1 / _FLAT, (EDGES / scales) ** _FLAT)]
    for share, ratio in _MIXTURES:
        narrow = EDGES / (deviations / math.sqrt(1 + share * (ratio**2 - 1)))
        found.append((1 - share) * within_normal(narrow) + share * within_normal(narrow / ratio))
    within = np.concatenate(found)
    within = np.hstack([np.ones((len(within), 1)), within[:, :-1], np.zeros((len(within), 1))])
    return np.maximum(-np.diff(within, axis=1), _LEAST)


def quantiles(shares: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the sizes that the shares `levels` of rows do not exceed, float64 (L,), rising.

    Between two edges the size is a linear function of the standard normal quantile of
    (1 + level) / 2, which is exact for normal residuals.

    Parameters
    ----------
    shares : float64 (20,)
        Of the cells of `EDGES`, at least 0, adding up to 1.
    levels : float64 (L,)
        Between 0 and 1.
    """
    within = np.clip(1 - np.cumsum(shares)[:-1], 0.0, 1.0)
    known = np.concatenate([[0.0], within[::-1], [1.0]])
    scores = ndtri((1 + np.minimum(known, 1 - _LEAST)) / 2)  # infinite at 1
    return np.asarray(np.interp(ndtri((1 + levels) / 2), scores, ENDS))
