"""The levels of a regression of few rows: post-processing of answers.

Where rows are few, residuals are clipped far below their size. From predictions that are right on
average, clipped residuals do not add up to 0 then, if targets are skewed. The mean of a code over
the rows is not 0 either, as codes are counted from noisy counts. So features would pull predictions
towards the median in every epoch, without end. Therefore features are asked about from a level of
their own, the middle, where clipped residuals add up to 0. Predictions have the mean.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.ebm_plus.rates import LINEAR
from dprepro.ebm_plus.smoothing import CURVE, JUMPS, WALK, Priors, smooth

_DRIFTS = np.array([1 / 81, 1 / 27, 1 / 9, 1 / 3])
"""How far the level may move over all epochs a priori, in standard deviations of the residuals."""

_KINDS = np.array([JUMPS, WALK, CURVE])

_FEWEST = 3
"""Epochs from which on a drift is looked for."""

_OFFSET = 0.4
"""Standard deviation of the mean less the middle a priori, in that of the residuals."""


class Level:
    """The level that the answers of all epochs so far speak for.

    Parameters
    ----------
    prior
        Standard deviation of the level before any answer. It may be set anew.
    """

    def __init__(self, prior: float) -> None:
        self.prior = prior
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
        mean = float((levels / variances).sum()) / (precision + 1 / self.prior**2)
        if levels.size < _FEWEST:
            return mean
        centre = np.full(levels.size, mean)
        models = Priors((_DRIFTS * usual) ** 2, _KINDS, centre[None])
        likely = smooth(levels, variances, np.ones(levels.size), LINEAR, models, centre)
        return float(likely.mean[-1])


class Levels:
    """The two levels of a regression of few rows: the middle, and the mean, which is apart from it.

    The mean follows from the sums of residuals that are hardly clipped, the middle from sums that
    are clipped as those of the features, which have far less noise. A priori both are close.

    Parameters
    ----------
    prior
        Standard deviation of the middle before any answer. That of the offset is `_OFFSET` times
        the usual size of residuals, as far as this is known.

    Attributes
    ----------
    middle, offset
        As far as known: 0 before any answer.
    """

    def __init__(self, prior: float) -> None:
        self._middle, self._offset = Level(prior), Level(_OFFSET)
        self.middle = self.offset = 0.0
        self._is_known = False

    @property
    def mean(self) -> float:
        """The level of the predictions."""
        return self.middle + self.offset

    def follow(self, found: float, deviation: float, usual: float) -> float:
        """Return the mean, given one more epoch that speaks of it; see `Level.follow`.

        The first epoch speaks of the middle, too: it lies about there.
        """
        self._offset.prior = _OFFSET * usual
        if not self._is_known:
            self.follow_middle(found, math.hypot(deviation, self._offset.prior), usual)
        self.offset = self._offset.follow(found - self.middle, deviation, usual)
        return self.mean

    def follow_middle(self, found: float, deviation: float, usual: float) -> float:
        """Return the middle, given one more epoch that speaks of it; see `Level.follow`."""
        self.middle, self._is_known = self._middle.follow(found, deviation, usual), True
        return self.middle
