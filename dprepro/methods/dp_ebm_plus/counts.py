"""Counts: functions of the logarithm of a rate, and levels that are found by rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.methods.dp_ebm_plus.booster import Booster, Effect
from dprepro.methods.dp_ebm_plus.losses import weighted_mean
from dprepro.methods.dp_ebm_plus.prior import Posterior
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, Move, Residuals
from dprepro.privacy.query import NoisyAnswer

_UNCLIPPED = 15.0
"""As for a regression, but counts have a longer tail to one side."""

_LEAST = 1e-6
"""No rate is believed to be smaller, in that of the largest count."""


class CountBooster(Booster):
    """A `Booster` of the logarithms of rates. A level is an average of rates, as answers are."""

    def of_level(self) -> Residuals:
        """Return the query for the intercept, of which residuals are hardly clipped."""
        bound = min(1.0, max(self.bound, _UNCLIPPED * self._usual))
        return Residuals(bound, self.level_share, INTERCEPT, bound)

    @property
    def _rise(self) -> float:
        """By how much functions raise the logarithm of the mean rate, if they are independent."""
        means = (weighted_mean(np.exp(each.values), each.counts) for each in self.effects)
        return sum(map(math.log, means))

    def _add(self, level: Effect, total: float, noise: float, rows: float, number: int) -> None:
        """Take in a sum of residuals: the rate is what is expected at the level, and their mean."""
        expected = math.exp(min(float(level.values[0]) + self._rise, 0.0))
        level.answers.add(expected + total / rows, noise / rows, self.weights[number])

    def learn_level(self, answer: NoisyAnswer, number: int) -> None:
        """See `Booster.learn_level`."""
        self._add(self.level, float(answer.value[0]), answer.scale, self.start.rows, number)
        self._settle()

    def _learn_level(self, total: float, noise: float, number: int) -> Move:
        """See `Booster._learn_level`."""
        self._add(self.middle, total, noise, self.start.rows * self.within, number)
        self._settle()
        return self.middle.move(self._levels[1])

    def _told_of(self, level: Effect) -> tuple[float, float]:
        """See `Booster._told_of`: the logarithm of the rate, less by what functions raise it."""
        deviation = level.answers.deviation
        if math.isinf(deviation):
            return 0.0, 0.0
        rate = max(float(level.answers.mean[0]), deviation, _LEAST)
        precision = (rate / deviation) ** 2
        return precision * (math.log(rate) - self._rise), precision

    def _change(self, effect: Effect, likely: Posterior) -> np.ndarray:
        """Do what `Booster._change` does; a value rises by log (1 + d) in place of d.

        The slope says that d makes a rate 1 + d times as large, and in truth exp d.
        """
        change = super()._change(effect, likely) / self.damping.value
        return self.damping.value * (np.log1p(np.maximum(change, 0)) + np.minimum(change, 0))

    def residual_quantiles(self) -> Any:
        """Return None: how far counts lie from a rate depends on the rate."""
        return None
