"""Where to clip residuals of a regression, from noisy counts of their sizes: post-processing."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf

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

LARGEST_BOUND = 0.5
"""Clipping never lets more than half the target's range through."""

_BINS = 16.0
_UNEVEN = 0.25
"""Squares of the bins that a feature has, and of how uneven residuals are to both sides, about."""


_SMALLEST, _WIDEST = 1e-5, 0.25
"""Variances that targets may have, in units of the square of their range."""

_SPREAD, _OCTAVES = 0.2, 1.5
"""Their deviation a priori: about 0.2, and the standard deviation of its binary logarithm."""

_NOISES, _NODES = 8.0, 401


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


def likely_sizes(
    noisy: np.ndarray, deviation: float, rows: float, typical: float
) -> tuple[np.ndarray, float]:
    """Return rows a cell a posteriori, float64 (20,), and the mean square of residuals.

    A priori residuals are normal with deviation `typical`, and as many lie in a cell as that says,
    give or take as many again: counts that are lost in their noise say little.

    Parameters
    ----------
    noisy : float64 (20,)
        Noisy counts of |residual|.
    deviation
        Of the noise in each.
    """
    upper = np.append(np.inf, EDGES[:-1])
    lower = np.append(EDGES[:-1], 0.0)
    expected = rows * np.maximum(
        within_normal(upper / typical) - within_normal(lower / typical), 1e-9
    )
    trust = expected**2 / (expected**2 + deviation**2)
    sizes = np.maximum(trust * noisy + (1 - trust) * expected, 0.0)
    middles = EDGES * HALF_CELL
    return sizes, float((sizes * middles**2).sum() / max(sizes.sum(), 1e-9))


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
    return min(LARGEST_BOUND, float(EDGES[np.argmin(error)]))
