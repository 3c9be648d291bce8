"""The representation that the fair models share."""

from __future__ import annotations

import numpy as np


def scaled(
    X: np.ndarray, y: np.ndarray, bounds: tuple[float, float], limit: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return X (n, columns) and y (n,), y in units of half its range from its middle, clipped.

    Parameters
    ----------
    bounds
        Of the target, which they take to -1 and 1.
    limit
        Both lie in [-limit, limit] afterwards.
    """
    lower, upper = bounds
    targets = (2 * y - lower - upper) / (upper - lower)
    return np.clip(X, -limit, limit), np.clip(targets, -limit, limit)
