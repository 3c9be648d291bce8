"""Where the numbers of a partition lie, a column a feature: here, in memory."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Protocol

import numpy as np

MOVING = -1
"""In place of the number of moves that scores have followed, while they follow some."""


class Columns(Protocol):
    """The columns of a partition's n rows, in whole numbers.

    Attributes
    ----------
    targets : int32 (n,)
        In the unit and order of the method.
    scores : int32 (n,)
        What was released so far makes of each row. Written to in place.
    cells : dict of uint8, uint16 or uint32 (n,)
        The cell of every row, of the features whose bins are not told yet.
    codes : dict of uint8 (n,)
        The bin of every row, of the features whose bins are told.
    followed : int
        How many moves the scores have followed, or `MOVING`.
    """

    targets: np.ndarray
    scores: np.ndarray
    cells: MutableMapping[int, np.ndarray]
    codes: MutableMapping[int, np.ndarray]
    followed: int

    def let_go(self) -> None:
        """Give back the memory of what was read: a question is answered."""
        ...


class MemoryColumns:
    """Columns in memory."""

    def __init__(self, targets: np.ndarray, cells: dict[int, np.ndarray]) -> None:
        self.targets = targets
        self.scores = np.zeros(targets.size, np.int32)
        self.cells: MutableMapping[int, np.ndarray] = cells
        self.codes: MutableMapping[int, np.ndarray] = {}
        self.followed = 0

    def let_go(self) -> None:
        """Nothing was read."""
