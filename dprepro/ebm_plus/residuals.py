"""How far targets lie from the predictions of a fit, from the counts that it released anyway.

Every epoch of a regression begins with noisy counts of |residual| by size (`Magnitudes`). The
counts of all epochs together say how the sizes of new rows' residuals are distributed. That is
post-processing of releases: it costs no budget, and sees no row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
from scipy.special import gamma, gammainc, ndtri

from dprepro.additive.intervals import LEVELS
from dprepro.ebm_plus.booster import Booster
from dprepro.ebm_plus.clipping import EDGES, HALF_CELL, within_normal
from dprepro.ebm_plus.function import Function
from dprepro.ebm_plus.losses import weighted_mean
from dprepro.privacy.query import Release

_MIXTURES = tuple(product((0.0, 0.1, 0.3, 0.5), (2.0, 4.0, 10.0)))
"""Shares of residuals whose deviation is so many times that of the others; all are normal."""

_FLAT = 6.0
"""Exponent b of one more density, exp(-|r / s|^b): nearly alike within s, and hardly any beyond."""

_DEVIATIONS = np.geomspace(0.001, 0.5, 40)
"""Standard deviations that residuals may have, in units of the target's range."""

_MISFITS = (0.05, 0.2, 0.6)
"""By what part of it the true share of a cell may differ from what such a density says."""

_LEAST = 1e-9
"""Least share of a cell a priori."""


def residual_sizes(booster: Booster, rows_noise: float) -> np.ndarray | None:
    """Return |target - prediction| that the shares `LEVELS` of new rows do not exceed, (L,).

    In units of the target's range; None if there was one epoch alone: its counts are from before
    any function moved. The counts are of the rows that were fitted to, whose residuals are smaller
    than those of new rows by what the functions learned of their sampling noise: see `_optimism`.

    Parameters
    ----------
    booster
        After the last epoch of a regression.
    rows_noise
        Standard deviation of the noise in `booster.rows`.
    """
    if len(booster.magnitudes) < 2:
        return None
    counts, noise = _together(booster.magnitudes)
    shares = likely_shares(counts, noise, booster.rows, rows_noise)
    mean_square = float((shares * (EDGES * HALF_CELL) ** 2).sum())
    wider = math.sqrt(1 + 2 * _optimism(booster.functions, mean_square))
    return wider * quantiles(shares, LEVELS)


def _together(magnitudes: Sequence[Release]) -> tuple[np.ndarray, float]:
    """Return the epochs' mean counts, float64 (20,), and the standard deviation of their noise.

    An epoch has the weight of its number, from 0, as in the averages of residuals: residuals become
    smaller from epoch to epoch, and ever less so.
    """
    weights = np.arange(len(magnitudes)) / math.comb(len(magnitudes), 2)
    counts = weights @ np.stack([release.value for release in magnitudes])
    scales = np.array([release.scale for release in magnitudes])
    return counts, float(np.sqrt(((weights * scales) ** 2).sum()))


def likely_shares(noisy: np.ndarray, noise: float, rows: float, rows_noise: float) -> np.ndarray:
    r"""Return the shares of rows by |residual|, float64 (20,), a posteriori: they add up to 1.

    A priori residuals have a symmetric density of some shape (one of `_MIXTURES`, or `_FLAT`) and
    deviation (`_DEVIATIONS`, alike in their logarithm), which says the share q_j of cell j. The
    true share is q_j (1 + t Z_j), with standard normal Z_j and t one of `_MISFITS`. So few numbers
    decide where noise is large, and the counts alone where it is small. The shares returned are the
    mean over all of this: what a new row's residual is drawn from, given the counts.

    Parameters
    ----------
    noisy : float64 (20,)
        Noisy counts of the cells of `EDGES`.
    noise
        Standard deviation of the noise in each.
    rows, rows_noise
        The released number of rows, and the standard deviation of its noise.
    """
    evidence, shares = [], []
    for misfit in _MISFITS:
        expected = rows * _densities()
        # Of what the counts were without noise: rows are drawn, and the density is not quite right.
        own = expected + (misfit * expected) ** 2
        variances = own + noise**2
        gaps = noisy - expected
        # The number of rows is known up to its noise: it adds a variance that all cells share.
        towards = (_densities() * gaps / variances).sum(axis=1)
        known = (_densities() ** 2 / variances).sum(axis=1)
        shared = rows_noise**2 / (1 + rows_noise**2 * known)
        misses = (gaps**2 / variances).sum(axis=1) - shared * towards**2
        evidence.append(
            -0.5 * (misses + np.log(variances).sum(axis=1) + np.log1p(rows_noise**2 * known))
        )
        n = np.maximum(rows + shared * towards, rows / 4)[:, None]
        likely = n * _densities() + own / variances * (noisy - n * _densities())
        likely = np.maximum(likely, 0.0)
        shares.append(likely / likely.sum(axis=1, keepdims=True))
    weights = np.concatenate(evidence)
    weights = np.exp(weights - weights.max())
    return np.asarray(weights @ np.concatenate(shares) / weights.sum())


@cache
def _densities() -> np.ndarray:
    """Return the share of each cell under each density, float64 (shapes * deviations, 20)."""
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
    sizes = np.concatenate([[0.0], EDGES[-2::-1], [1.0]])
    known = np.concatenate([[0.0], within[::-1], [1.0]])
    scores = ndtri((1 + np.minimum(known, 1 - _LEAST)) / 2)  # infinite at 1
    return np.asarray(np.interp(ndtri((1 + levels) / 2), scores, sizes))


def _optimism(functions: Sequence[Function], mean_square: float) -> float:
    """Return the degrees of freedom of the functions over the number of rows.

    A new row's squared residual is larger than a fitted one's by the factor 1 + 2 d / n on average
    (Efron 2004, "The Estimation of Prediction Error", eq. 2.8). d adds up, over the bins, the share
    of a bin's value that its own sum of targets decides: n_b s_b m / v_b a row, for a posterior
    variance s_b, a mean square m of residuals, and a variance v_b = n_b m + noise of the sum.
    """
    freedom = 0.0
    for function in functions:
        if function.has_answers:
            _, noise = function.averages()
            sampling = function.counts * mean_square
            part = function.deviations**2 * function.counts / (sampling + noise)
            freedom += weighted_mean(part, function.counts)
    return freedom
