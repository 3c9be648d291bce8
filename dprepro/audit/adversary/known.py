"""What the adversary knows of the rows: which there are for certain, and what the last one is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Known:
    """Rows in public cells, with the canary apart from all others.

    Attributes
    ----------
    cells : int64 (groups, features)
        The cell of each feature that the rows of a group lie in.
    targets : float64 (groups,)
        Labels 0 and 1, or targets from -1/2 to 1/2 in units of their public range.
    counts : int64 (groups,)
        How many rows are in each group.
    canary : int64 (features,)
        The canary's cells.
    target
        The canary's.
    """

    cells: np.ndarray
    targets: np.ndarray
    counts: np.ndarray
    canary: np.ndarray
    target: float


def sigmoid(scores: np.ndarray | float) -> np.ndarray:
    """Return 1 / (1 + e^-F)."""
    return np.asarray(1 / (1 + np.exp(-np.asarray(scores, dtype=np.float64))))
