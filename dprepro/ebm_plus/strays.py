"""Strays: rows of two labels that lie anywhere within the public bounds, far from most others."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dprepro.ebm_plus.function import Function
from dprepro.ebm_plus.losses import weighted_mean

_ASTRAY = 0.1
"""Strays of the rarer label, as a share of all rows with that label."""


def odds_of_strays(function: Function, rows: float, intercept: float) -> np.ndarray:
    """Return a second guess of the function, float64 (B,): some of its rows are strays.

    Half of the strays have either label. In a bin with hardly any other row, both labels are then
    equally likely, which is far from the mean where one label is rare. There are 2 `_ASTRAY` n
    min(p, 1 - p) strays among n rows with the share p of positive labels. The evidence decides
    between this guess and no effect.

    Parameters
    ----------
    rows
        n, about.
    intercept
        The log odds of p.
    """
    p = min(max(float(expit(intercept)), 1e-6), 1 - 1e-6)
    astray = 2 * _ASTRAY * min(p, 1 - p) * rows * function.extents
    rates = (function.counts * p + astray / 2) / (function.counts + astray)
    odds = np.log(rates / (1 - rates))
    return np.asarray(odds - weighted_mean(odds, function.counts))
