"""Where the intercept of a regression has to be now, if it has to move: post-processing of answers.

Where rows are few, residuals are clipped far below their size, so that their mean is not 0 though
that of the residuals is. The mean of a code over the rows is not quite 0 either, as it is counted
from a noisy one. So features go on pulling predictions towards the median, and the intercept has to
make up for it in every epoch. An average over all epochs would lag behind.
"""

from __future__ import annotations

import numpy as np

from dprepro.ebm_plus.rates import LINEAR
from dprepro.ebm_plus.smoothing import CURVE, JUMPS, WALK, Priors, smooth

_DRIFTS = np.array([1 / 81, 1 / 27, 1 / 9, 1 / 3])
"""How far the level may move over all epochs a priori, in standard deviations of the residuals."""

_KINDS = np.array([JUMPS, WALK, CURVE])

_FEWEST = 3
"""Epochs from which on a drift is looked for."""


class Level:
    """The level that the answers of all epochs so far speak for.

    Parameters
    ----------
    prior
        Standard deviation of the level before any answer.
    """

    def __init__(self, prior: float) -> None:
        self._prior = prior**2
        self._found: list[float] = []
        self._variances: list[float] = []

    def follow(self, found: float, deviation: float, usual: float) -> float:
        """Return the level now, given one more epoch.

        A priori levels follow each other by a walk, with jumps or without, or by a curve, of one of
        several sizes. The evidence says which, and hardly any drift is among them.

        Parameters
        ----------
        found, deviation
            What this epoch alone says of the level, and the standard deviation of its noise.
        usual
            About what standard deviation residuals have.
        """
        self._found.append(found)
        self._variances.append(deviation**2)
        levels, variances = np.array(self._found), np.array(self._variances)
        precision = float((1 / variances).sum())
        mean = float((levels / variances).sum()) / (precision + 1 / self._prior)
        if levels.size < _FEWEST:
            return mean
        centre = np.full(levels.size, mean)
        models = Priors((_DRIFTS * usual) ** 2, _KINDS, centre[None])
        likely = smooth(levels, variances, np.ones(levels.size), LINEAR, models, centre)
        return float(likely.mean[-1])
