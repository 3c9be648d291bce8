"""The public grid on which targets, scores and leaf values lie: whole numbers of one unit.

Sums over rows are then sums of integers: exact, in any order.
"""

from __future__ import annotations

import numpy as np

from dprepro.dpboost.kernel import UNIT

LARGEST = 2**52
"""Released values are clipped to so many units: a score of 2,000 trees still fits an int64."""


def truncated(targets: np.ndarray) -> np.ndarray:
    """Return scaled targets in whole units, int64 (n,), rounded towards zero: none grows."""
    return np.trunc(targets / UNIT).astype(np.int64)


def whole(released: np.ndarray) -> np.ndarray:
    """Return released values in whole units, int64, rounded to the nearest."""
    return np.clip(np.rint(released / UNIT), -LARGEST, LARGEST).astype(np.int64)


def on_grid(released: np.ndarray) -> np.ndarray:
    """Return released values as float64 multiples of the unit: exact."""
    return whole(released) * UNIT
