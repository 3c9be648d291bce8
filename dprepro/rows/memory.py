"""Columns of a partition in memory."""

from __future__ import annotations

from collections.abc import MutableMapping

import numpy as np


class MemoryColumns:
    """See `dprepro.rows.partition.Columns`."""

    def __init__(self, targets: np.ndarray, cells: dict[int, np.ndarray]) -> None:
        self.targets = targets
        self.scores = np.zeros(targets.size, np.int32)
        self.cells: MutableMapping[int, np.ndarray] = cells
        self.codes: MutableMapping[int, np.ndarray] = {}
        self.followed = 0

    def let_go(self) -> None:
        """Nothing was read."""
