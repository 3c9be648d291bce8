"""How Lazy-Bregman boosting weighs rows by their margins (Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.lazybb.projection import smooth_weights

MARGINS = ("signed", "agreements")


@dataclass(frozen=True)
class Weighing:
    """The parameters of Algorithm 1 that weigh rows; see `LazyBBClassifier`.

    ``margin="signed"`` is the paper's sum of y h, "agreements" counts the rounds that were right,
    as the authors' code does: half the sum plus half the rounds, which makes it a `learning_rate`
    half as large, and the projection always active.
    """

    learning_rate: float
    density: float
    margin: str = "signed"

    def weights(self, margins: np.ndarray, turn: int) -> np.ndarray:
        """Return the smooth distribution after `turn` rounds with these margins, float64 (n,)."""
        exponent = margins if self.margin == "signed" else (margins + turn) / 2
        return smooth_weights(math.log(self.density) - self.learning_rate * exponent, self.density)
