"""How far targets lie from the predictions of a fit, from the counts that it released anyway.

Every epoch of a regression begins with noisy counts of |residual| by size (`Magnitudes`). The
counts of all epochs together say how the sizes of new rows' residuals are distributed. That is
post-processing of releases: it costs no budget, and sees no row.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from dprepro.additive.model import LEVELS
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.clipping import ENDS, likely_shares, mean_counts

_LEAST = 1e-9
"""Least share of new rows that no interval is to hold."""


def residual_sizes(booster: Booster) -> np.ndarray | None:
    """Return |target - prediction| that the shares `LEVELS` of new rows do not exceed, (L,).

    In units of the target's range. None for labels, and if there was one epoch alone: its counts
    are from before any function moved. The counts are of the rows that were fitted to, whose
    residuals are smaller than those of new rows by what the functions learned of their sampling
    noise: see `_optimism`.

    Parameters
    ----------
    booster
        After the last epoch.
    """
    if len(booster.magnitudes) < 2:
        return None
    # Residuals become smaller from epoch to epoch, and ever less so; before the first, no function
    # has moved.
    counts, noise = mean_counts(booster.magnitudes, np.arange(float(len(booster.magnitudes))))
    # Where rows are few, predictions hardly ever reach an end of the range.
    exact = not booster.has_few_rows
    shares = likely_shares(counts, noise, booster.rows, booster.rows_noise, exact=exact)
    wider = math.sqrt(1 + 2 * _optimism(booster))
    return wider * quantiles(shares, LEVELS)


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


def _optimism(booster: Booster) -> float:
    """Return the degrees of freedom of the functions over the number of rows.

    A new row's squared residual is larger than a fitted one's by the factor 1 + 2 d / n on average
    (Efron 2004, "The Estimation of Prediction Error", eq. 2.8). d adds up, over the rows, by how
    much a row's prediction rises with its own target.
    """
    return sum(booster.freedom(f) for f in booster.functions if f.has_answers)
