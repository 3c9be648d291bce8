"""How far one row more or less can move what DPBoost releases, for bounded gradients.

What is released is computed in whole numbers; what rounding them adds is charged here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dprepro.methods.dpboost.kernel import GAIN_UNIT, UNIT

GAIN = 3.0
"""Of the gain of any split (Li et al. 2020, Lemma 1, as corrected by the authors in 2020).

A row with |g| <= 1 moves S^2 / (n + lambda), |S| <= n, by
(2 S g (n + lambda) + g^2 (n + lambda) - S^2) / ((n + lambda) (n + 1 + lambda)),
which lies above -3 (S = n, g = -1, n to infinity) and below 1 (g = 1).
"""

MAX_ROWS = 2**28
"""Rows of a fit, at most: the bound on rounding errors in `gain_sensitivity` needs one."""


def first_gain(ridge: float) -> float:
    """Return what the authors' code took for GAIN until November 2020: too small, see `GAIN`.

    (3 lambda + 2) / ((2 + lambda) (1 + lambda)), 0.9957 for lambda = 0.1.
    """
    return (3 * ridge + 2) / ((2 + ridge) * (1 + ridge))


def gain_sensitivity(bound: float, gain: float = GAIN) -> float:
    """Return by how much a row moves a gain in whole units, for gradients of at most `bound` = b.

    Real numbers: GAIN b^2, or another multiple `gain` that was once believed. `kernel.gains_of`
    computes S_L^2 / (n_L + lambda) + S_R^2 / (n_R + lambda), which is at most n b^2, from exact S
    and n. Up to 6 correctly rounded operations follow one another (S enters twice), each off by a
    factor within 1 +- 2^-53; so the result is off by less than 7 2^-53 n b^2, and with n <= 2^28 by
    less than 2^-22 b^2. Neighbours have such an error each: 2^-21 b^2 together. Rounding down moves
    two numbers apart by less than one unit. This charges GAIN b^2 + (1 + b^2) 2^-20.
    """
    return gain * bound**2 + GAIN_UNIT * (1 + bound**2)


def leaf_clip(learning_rate: float, position: ArrayLike) -> np.ndarray:
    """Return the bound on leaf values of tree `position` = 0, 1, ... of an ensemble.

    (1 - eta)^k, geometric leaf clipping (Li et al. 2020, section 4.1), by repeated products: a
    power differs between processors in its last bits.
    """
    positions = np.asarray(position)
    factors = np.full(int(positions.max(initial=0)) + 1, 1 - learning_rate)
    factors[0] = 1.0
    return np.multiply.accumulate(factors)[positions]


def leaf_sensitivity(learning_rate: float, ridge: float, position: ArrayLike) -> np.ndarray:
    """Return the sensitivity of a clipped leaf value on the grid, for gradients of at most 1.

    dV_k = min(1 / (1 + lambda), 2 (1 - eta)^k) (Li et al. 2020, section 4.3) for real numbers: a
    row moves -S / (n + lambda), |S| <= n, by |g (n + lambda) - S| / ((n + lambda) (n + 1 + lambda))
    <= (2 n + lambda) / ((n + lambda) (n + 1 + lambda)), which is largest at n = 0 and n = 1. The
    quotient is exact and rounded down, which moves two numbers apart by less than one unit of the
    grid: the first term grows by a unit. Clipping to [-c, c], c rounded down, leaves at most 2 c.
    """
    return np.minimum(1 / (1 + ridge) + UNIT, 2 * leaf_clip(learning_rate, position))
