"""Counts: functions of the logarithm of a rate, and levels that follow from released rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dprepro.methods.dp_ebm_plus.booster import Average, Booster, Effect
from dprepro.methods.dp_ebm_plus.clipping import EDGES, HALF_CELL
from dprepro.methods.dp_ebm_plus.kernel import rounded
from dprepro.methods.dp_ebm_plus.losses import weighted_mean
from dprepro.methods.dp_ebm_plus.prior import Posterior
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, Move, Residuals
from dprepro.privacy.query import NoisyAnswer

_SPREAD = 1.0
"""Standard deviation of a level a priori, and of one less the other, in logarithms."""

_SURE = 0.02
"""Noise in the mean count, as part of it, that does no harm."""

_LEAST = 0.1
"""No mean residual is believed to be closer to the mean rate: levels rise by log 10 at most."""


class CountBooster(Booster):
    """A `Booster` of the logarithms of rates. Levels are found by averages of rates.

    If features were independent, an epoch's mean rate would be exp(level + `_rise`). In truth it is
    the released rate less the mean residual. So the average of the first, P, is too small by the
    factor (rate - T) / P, where T is the average of mean residuals.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._expected = {id(level): Average() for level in (self.level, self.middle)}

    def of_level(self) -> Residuals:
        """Return the query for the intercept, clipped where noise and bias are least together.

        All that clipping takes away may be of one sign, as counts have a long tail to one side. If
        the noise in the mean is small all the same, nothing is clipped: no tail is overlooked.
        """
        sizes = self.start.rows * self._likely_sizes(exact=False)
        bias = (sizes[:, None] * np.clip(EDGES[:, None] * HALF_CELL - EDGES, 0.0, None)).sum(axis=0)
        noise = self.deviation * self._average / math.sqrt(self.level_share)
        best = float(EDGES[np.argmin(bias**2 + (noise * EDGES) ** 2)])
        sure = float(rounded(_SURE * self.start.rows * self.start.rate / noise))
        bound = min(max(best, sure, super().of_level().bound), 1.0)
        return Residuals(bound, self.level_share, INTERCEPT, bound)

    @property
    def _rise(self) -> float:
        """By how much functions raise the logarithm of the mean rate, if they are independent."""
        means = (weighted_mean(np.exp(each.values), each.counts) for each in self.effects)
        return sum(map(math.log, means))

    def _add(self, level: Effect, total: float, noise: float, rows: float, number: int) -> None:
        """Take in a sum of residuals, and what rate is expected now."""
        expected = math.exp(min(float(level.values[0]) + self._rise, 0.0))
        self._expected[id(level)].add(expected, 0.0, self.weights[number])
        level.answers.add(total / rows, noise / rows, self.weights[number])

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
        """Return log P - log(1 - T / rate), less `_rise`, and the precision; 0 and 0 at first."""
        deviation, rate = level.answers.deviation, self.start.rate
        if math.isinf(deviation):
            return 0.0, 0.0
        left = max(1 - float(level.answers.mean[0]) / rate, deviation / rate, _LEAST)
        expected = float(self._expected[id(level)].mean[0])
        return math.log(expected) - math.log(left) - self._rise, (rate / deviation) ** 2

    def _settle(self) -> None:
        """Set the levels to their mean a posteriori.

        A priori the middle m is the level that leads to the released rate, if features are
        independent, give or take `_SPREAD`; so is the intercept less the middle, around 0.
        """
        (a, of_a), (m, of_m) = (self._told_of(each) for each in (self.level, self.middle))
        own = tie = _SPREAD**-2
        before = self.start.level - self._rise
        both = (of_a + tie) * (of_m + tie + own) - tie**2
        towards_m = of_m * m + own * before
        self._levels = (
            np.array([((of_m + tie + own) * of_a * a + tie * towards_m) / both]),
            np.array([((of_a + tie) * towards_m + tie * of_a * a) / both]),
        )

    def _change(self, effect: Effect, likely: Posterior) -> np.ndarray:
        """Do what `Booster._change` does; a value rises by log (1 + d) in place of d.

        The slope says that d makes a rate 1 + d times as large, and in truth exp d.
        """
        change = super()._change(effect, likely) / self.damping.value
        return self.damping.value * (np.log1p(np.maximum(change, 0)) + np.minimum(change, 0))

    def residual_quantiles(self) -> Any:
        """Return None: how far counts lie from a rate depends on the rate."""
        return None
