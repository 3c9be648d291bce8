"""How residuals are distributed by size, from noisy counts: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
from scipy.special import gamma, gammainc

from dprepro.ebm_plus.clipping import EDGES, within_normal
from dprepro.privacy.query import Release

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

_OCTAVES = 1.5
"""Standard deviation of the deviation's binary logarithm a priori, if anything is known of it."""


def mean_counts(counts: Sequence[Release], weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weighted mean of noisy counts, float64 (20,), and the deviation of its noise.

    `weights` has a number for each of the `counts`; their sum does not matter.
    """
    parts = weights / weights.sum()
    # No matrix product: its last digit is not the same on every machine.
    mean = (parts[:, None] * np.stack([release.value for release in counts])).sum(axis=0)
    scales = np.array([release.scale for release in counts])
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
        before = -0.5 * (np.log2(_DEVIATIONS / typical) / _OCTAVES) ** 2
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
