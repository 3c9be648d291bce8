"""How to train locally linear maps: constants, all of them public."""

from __future__ import annotations

import math
from dataclasses import dataclass

SAMPLINGS = ("poisson", "shuffle")


@dataclass(frozen=True)
class FitSettings:
    """How to train.

    `batch_size` is the expected one, L, and what private sums are divided by; `clip` may be
    infinite. The learning rate falls to `decay` times itself every `decay_every` epochs, and Adam
    starts anew with each fall, as in the authors' code.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    decay: float
    decay_every: int
    beta: float
    clip: float
    sampling: str

    @property
    def is_poisson(self) -> bool:
        """Whether rows join batches independently of each other."""
        return self.sampling == "poisson"

    def steps_per_epoch(self, rows: int) -> int:
        """Return the number of batches in an epoch."""
        return math.ceil(rows / self.batch_size)

    def steps(self, rows: int) -> int:
        """Return the number of all steps, T."""
        return self.epochs * self.steps_per_epoch(rows)

    def rate(self, rows: int) -> float:
        """Return the probability q = L / n with which Poisson sampling takes a row."""
        return min(1.0, self.batch_size / rows)
