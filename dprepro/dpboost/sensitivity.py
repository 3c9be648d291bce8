"""How far one row more or less can move what DPBoost releases, for gradients of at most 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

GAIN = 3.0
"""Of the gain of any split (Li et al. 2020, Lemma 1, as corrected by the authors in 2020).

A row with |g| <= 1 moves S^2 / (n + lambda), |S| <= n, by
(2 S g (n + lambda) + g^2 (n + lambda) - S^2) / ((n + lambda) (n + 1 + lambda)),
which lies above -3 (S = n, g = -1, n to infinity) and below 1 (g = 1).
"""


def leaf_clip(learning_rate: float, position: ArrayLike) -> np.ndarray:
    """Return the bound on leaf values of tree `position` = 0, 1, ... of an ensemble.

    (1 - eta)^k, geometric leaf clipping (Li et al. 2020, section 4.1).
    """
    return np.power(1 - learning_rate, position)


def leaf_sensitivity(learning_rate: float, ridge: float, position: ArrayLike) -> np.ndarray:
    """Return the sensitivity of a clipped leaf value, dV_k = min(1 / (1 + lambda), 2 (1 - eta)^k).

    A row moves -S / (n + lambda), |S| <= n, by |g (n + lambda) - S| / ((n + lambda)
    (n + 1 + lambda)) <= (2 n + lambda) / ((n + lambda) (n + 1 + lambda)), which is largest at
    n = 0 and n = 1; clipping to [-c, c] leaves at most 2 c.
    """
    return np.minimum(1 / (1 + ridge), 2 * leaf_clip(learning_rate, position))
