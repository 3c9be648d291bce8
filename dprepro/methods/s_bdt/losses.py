"""Residuals and curvatures of rows in whole numbers, for labels and for numbers.

A row's part follows from its own score and target alone. So it has the same bits whatever the
other rows are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import expit

BITS = 24
UNIT = 2.0**-BITS
"""Of scores, targets, residuals and curvatures."""

_LIMIT, _STEP = 16, 12
"""Log odds beyond the first count as the first; the table has a place for each 2^_STEP units."""


class Loss(ABC):
    """What a leaf's denominator adds up, and what rows are after.

    Attributes
    ----------
    denominator
        In words, for the ledger.
    """

    denominator: ClassVar[str]

    @abstractmethod
    def parts(self, targets: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return target minus prediction and the curvature of each row, int64 (n,) of `UNIT`."""


class LogLoss(Loss):
    """For labels 0 and 1: y - p and p (1 - p), p = sigmoid(score)."""

    denominator = "curvatures"

    def __init__(self) -> None:
        places = np.arange(-(_LIMIT << (BITS - _STEP)), (_LIMIT << (BITS - _STEP)) + 1)
        # Rounded far more coarsely than the libraries of two machines differ.
        self._table = np.rint(expit(places * 2.0 ** (_STEP - BITS)) / UNIT).astype(np.int64)

    def parts(self, targets: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return y - p and p (1 - p), int64 (n,)."""
        last = len(self._table) - 1
        p = self._table[np.clip((scores >> _STEP) + last // 2, 0, last)]
        return targets - p, (p * ((1 << BITS) - p)) >> BITS


class SquaredLoss(Loss):
    """For numbers in [-1, 1]: y - score and 1."""

    denominator = "numbers of rows"

    def parts(self, targets: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return y - score and 1, int64 (n,)."""
        return targets - scores, np.full(len(scores), 1 << BITS)
