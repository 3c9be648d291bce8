"""How far functions go that move at once: post-processing of answers.

Each of K functions that move at once may make up for the same rows. Then all of them together go up
to K times too far, and the next epoch's functions further still. Sums of residuals say how far they
went: the sum over rows of a row's residual times the change of its score is the slope of the log
likelihood along that change. If it was D0 before the change and is D1 after it, the best change
would have been D0 / (D0 - D1) of it (the secant method).
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.ebm_plus.function import Answer

_FASTEST, _SLOWEST = 1.5, 0.3
"""By what the pace may rise or fall from one epoch to the next."""

_LEAST = 0.5
"""The pace is at least this over K: K equal functions do not go too far then."""


class Pace:
    """The part of the way to their inferred values that functions go in an epoch, at most 1.

    Parameters
    ----------
    n_functions
        K. The first epoch's pace is 1 / sqrt(K): between all functions alike and none.
    """

    def __init__(self, n_functions: int) -> None:
        functions = max(n_functions, 1)
        self.value = 1 / math.sqrt(functions)
        self._least = _LEAST / functions
        self._before: tuple[list[np.ndarray], float] | None = None

    def follow(self, answers: list[Answer]) -> None:
        """Renew the pace by the answers that came after the last change.

        A slope that may be noise hardly counts: it is shrunk by its square over that plus the
        variance of its noise.
        """
        if self._before is None:
            return
        changes, before = self._before
        after = _slope(changes, answers)
        noise = sum(((c * a.deviation) ** 2).sum() for c, a in zip(changes, answers, strict=True))
        if before > 0 and after != 0:
            after *= after**2 / (after**2 + noise)
            factor = 1 / max(1 - after / before, 1 / _FASTEST)
            self.value = float(min(max(self.value * max(factor, _SLOWEST), self._least), 1.0))

    def remember(self, changes: list[np.ndarray], answers: list[Answer]) -> None:
        """Note the changes, float64 (B,) of each function, that were made of these answers."""
        self._before = changes, _slope(changes, answers)


def _slope(changes: list[np.ndarray], answers: list[Answer]) -> float:
    # No matrix product: its last digit is not the same on every machine.
    return float(sum((c * a.sums).sum() for c, a in zip(changes, answers, strict=True)))
