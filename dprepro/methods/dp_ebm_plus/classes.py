"""Several classes: a function for each class and feature, and the softmax of their sums.

Row i has the score F_is = a_s + sum_k f_ks(x_ik) for class s, of which the probabilities are the
softmax. Answers are

1. counts: rows of each class. They get 1 % of mu^2; the number of rows is their sum.
2. histograms, as for two labels.
3. sums of residual vectors, as for two labels: see `queries.ClassResiduals`. A row has one code for
   all classes, so one query an epoch asks about all features and classes.

A function of a class is inferred as that of a label is (`booster`, `prior`), given all others:

- The probability of class s is sigmoid(F_s - log sum_(d != s) exp F_d). So what is expected in a
  bin is what is expected of a label, for the margin g_ks = f_ks - log sum_(d != s) r_d exp f_kd in
  place of a function; r are the rates of the other classes, which add up to 1.
- All classes move at once. With probabilities p the log likelihood has the second derivatives
  -(diag(p) - p p'). Residuals y - p add up to 0, so diag(1 / p) (y - p) is Newton's step: times
  diag(p) - p p' it is y - p. So the slope of class s is p_s, as if classes were independent Poisson
  counts, and not the p_s (1 - p_s) of a label, by which two classes would go twice too far.
- The answers of all classes add up to 0 but for noise: their mean over the classes is taken out.

Of two classes this is the fit of two labels with the log odds f_k1 - f_k0: the sizes that functions
have a priori are those of labels over the root of 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax

from dprepro.additive.bins import FeatureBins
from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm_plus.algorithm import divide
from dprepro.methods.dp_ebm_plus.booster import Answer, Booster, Effect
from dprepro.methods.dp_ebm_plus.curator import PlusCurator
from dprepro.methods.dp_ebm_plus.kernel import to_units
from dprepro.methods.dp_ebm_plus.losses import (
    LogisticLoss,
    Response,
    Start,
    chances,
    mean_of,
    weighted_mean,
)
from dprepro.methods.dp_ebm_plus.prior import Posterior
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    ClassCounts,
    ClassResiduals,
    Move,
    Moves,
)
from dprepro.methods.dp_ebm_plus.queries import Start as StartOfScores
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_part
from dprepro.privacy.query import NoisyAnswer
from dprepro.rows.table import report

_LONGEST = 0.8 * math.sqrt(2)
"""Where residual vectors are shortened in a row whose code is of typical length: of two classes
both residuals are those of a label, with both signs."""

_LEAST_SLOPE = 1e-9
"""No class is less likely in a bin, so that one can divide by what is expected."""

_SWEEPS = 20
"""Rounds of Newton's steps for the levels, one after another; they have settled long before."""


class SoftmaxLoss(LogisticLoss):
    """Log loss of one class among several; its only object is `SOFTMAX`."""

    def bound(self, start: Start, noise_to_signal: float) -> float:
        """Return `_LONGEST`, whatever the noise."""
        return _LONGEST

    def response(
        self, values: np.ndarray, shares: np.ndarray, start: Start, level: float, others: float
    ) -> Response:
        """Return the probabilities of a class to expect, by its margins, which are its slopes."""
        found = mean_of(chances(values, shares, start, level, others))
        return found, np.maximum(found, _LEAST_SLOPE)


SOFTMAX = SoftmaxLoss()


class ClassFunctions(NamedTuple):
    """The functions of a feature: rows of each bin, float64 (B,), values and band, (B, S)."""

    counts: np.ndarray
    values: np.ndarray
    band: np.ndarray

    @classmethod
    def of(cls, effects: Sequence[Effect]) -> ClassFunctions:
        """Return those of a feature, one of each class, less their mean over the classes."""
        values = np.stack([effect.values for effect in effects], axis=1)
        squares = np.stack([effect.band**2 for effect in effects], axis=1)
        # The variance of a value less the mean, were the classes independent.
        mean, part = squares.mean(axis=1, keepdims=True), 1 / len(effects)
        band = np.sqrt((1 - 2 * part) * squares + part * mean)
        return cls(effects[0].counts, values - values.mean(axis=1, keepdims=True), band)


def learn(
    curator: PlusCurator, domain: Domain, budget: PrivacyBudget, n_epochs: int
) -> tuple[list[FeatureBins], list[ClassFunctions], np.ndarray]:
    """Return bins and functions of each feature, and the intercepts, float64 (S,).

    Functions and intercepts add up to 0 over the classes: the softmax does not depend on their sum.
    """
    rates, start = _start(curator, budget)
    kind = partial(ClassBooster, rates=rates)
    bins, effects, booster = divide(curator, domain, SOFTMAX, budget, start, n_epochs, kind)
    curator.tell(StartOfScores(to_units(booster.class_levels)))
    for number in range(n_epochs):
        answer = curator.answer(booster.class_residuals())
        curator.tell(Moves(tuple(booster.learn(answer, number))))
        report("boosting", number + 1, n_epochs)
    found = [ClassFunctions.of([effect] * rates.size) for effect in effects]
    for each in booster.functions:
        found[each[0].feature] = ClassFunctions.of(each)
    levels = booster.class_levels
    return bins, found, levels - levels.mean()


def _start(curator: PlusCurator, budget: PrivacyBudget) -> tuple[np.ndarray, Start]:
    """Ask 1; return the rates of the classes, float64 (S,), and the start of one of them.

    Noise keeps the rates off 0. The noise in a function of class s is proportional to 1 / r_s: the
    start has the root mean square over the rows, sum_s r_s (1 / r_s)^2.
    """
    curator.open_totals(*gdp_part(budget, SOFTMAX.totals_share))
    answer = curator.answer(ClassCounts(1.0, 1.0))
    classes = answer.value.size
    noise = answer.scale * math.sqrt(classes)
    rows = max(float(answer.value.sum()), noise, 10.0)
    least = max(min(1 / classes, answer.scale / rows), 1e-4)
    rates = np.maximum(answer.value / rows, least)
    rates /= rates.sum()
    slope = 1 / math.sqrt((1 / rates).sum())
    return rates, Start(rows, noise, 0.0, 1 / classes, slope, _LONGEST, math.sqrt(0.5))


class ClassEffect(Effect):
    """The function of a feature and a class; `margin`, float64 (B,), is g_ks of the module."""

    def __init__(self, feature: int, counts: np.ndarray, start: Start) -> None:
        super().__init__(feature, counts)
        self.start, self.margin = start, np.zeros(counts.size)

    @property
    def spread(self) -> float:
        """The variance of the margin over the rows."""
        mean = weighted_mean(self.margin, self.counts)
        return weighted_mean((self.margin - mean) ** 2, self.counts)


class ClassBooster(Booster):
    """A `Booster` of S functions of each feature, and S levels.

    Parameters
    ----------
    rates : float64 (S,)
        Of the classes.

    Attributes
    ----------
    functions
        For each feature that is learned, its functions by class.
    class_levels : float64 (S,)
        The intercepts, in whole numbers of `kernel.UNIT`.
    """

    def __init__(self, *given: Any, rates: np.ndarray) -> None:
        super().__init__(*given)
        self.classes = rates.size
        starts = [replace(self.start, rate=float(rate)) for rate in rates]
        self.functions = [
            [ClassEffect(effect.feature, effect.counts, start) for start in starts]
            for effect in self.effects
        ]
        self._rates = rates
        self._levels_of = [Effect(INTERCEPT, self.level.counts) for _ in starts]
        for level, value in zip(self._levels_of, log_softmax(np.log(rates)), strict=True):
            level.move(np.array([value]))

    @property
    def class_levels(self) -> np.ndarray:
        """See the class."""
        return np.array([float(level.values[0]) for level in self._levels_of])

    def class_residuals(self) -> ClassResiduals:
        """Return the query about all features, all classes and their levels."""
        bound = self.bound * self._length
        return ClassResiduals(bound, 1.0, self._codes, bound)

    def learn(self, noisy: NoisyAnswer, number: int) -> list[Move]:
        """Return how all functions and levels move, given one more answer."""
        weights = [code.weights[:, None] for code in self._codes]
        places = np.cumsum([w.size for w in weights])[:-1]
        value = noisy.value - noisy.value.mean(axis=1, keepdims=True)
        numbers = [part / w for part, w in zip(np.split(value, places), weights, strict=True)]
        answers = [
            Answer(part, noisy.scale / w) for part, w in zip(numbers[1:], weights[1:], strict=True)
        ]
        self.damping.follow(answers)
        self._set_margins()
        spreads = [sum(each[s].spread for each in self.functions) for s in range(self.classes)]
        moves, along = [], []
        for each, question, part in zip(self.functions, self._questions, numbers[1:], strict=True):
            mix, changes = question.strategy.mix, []
            for effect, sums, spread in zip(each, part.T, spreads, strict=True):
                response = self._response(effect, spread)
                self._take(effect, mix.sums(sums), noisy.scale, number, response)
                changes.append(self._change(effect, self._infer(effect, question, response)))
            mean = sum(changes) / self.classes
            along.append(np.stack([mix.along(change - mean) for change in changes], axis=1))
            moved = [
                effect.move(effect.values + change).change
                for effect, change in zip(each, changes, strict=True)
            ]
            moves.append(Move(each[0].feature, np.stack(moved, axis=1)))
        self.damping.remember(along, answers)
        return [
            self._learn_levels(numbers[0][0], float(noisy.scale / weights[0][0, 0]), number),
            *moves,
        ]

    def _set_margins(self) -> None:
        others = 1.0 - np.eye(self.classes)
        others *= self._rates / (others * self._rates).sum(axis=1, keepdims=True)
        for each in self.functions:
            values = np.stack([effect.values for effect in each])
            largest = values.max(axis=0)
            for effect, rates in zip(each, others, strict=True):
                # No matrix product: its last digit is not the same on every machine.
                sums = (rates[:, None] * np.exp(values - largest)).sum(axis=0)
                effect.margin = effect.values - largest - np.log(np.maximum(sums, 1e-300))

    def _response(self, effect: Any, spread: float) -> Response:
        """Return `SoftmaxLoss.response` of a margin."""
        level = math.log(effect.start.rate / (1 - effect.start.rate))
        others = spread - effect.spread
        return self.loss.response(effect.margin, effect.shares, effect.start, level, others)

    def _change(self, effect: Effect, likely: Posterior) -> np.ndarray:
        """Do what `Booster._change` does; a value rises by log (1 + d) in place of d.

        The slope says that d makes a class 1 + d times as likely, and in truth exp d.
        """
        change = super()._change(effect, likely) / self.damping.value
        return self.damping.value * (np.log1p(np.maximum(change, 0)) + np.minimum(change, 0))

    def _learn_levels(self, totals: np.ndarray, noise: float, number: int) -> Move:
        """Take in what the query says of the levels, and move all of them.

        Newton's steps for one level after another, as for the level of two labels.
        """
        rows, prior = self.start.rows, self.loss.prior**-2
        levels = self.class_levels
        for level, total, rate in zip(self._levels_of, totals, softmax(levels), strict=True):
            level.answers.add(total + rows * rate, noise, self.weights[number])
        for _ in range(_SWEEPS):
            for s, level in enumerate(self._levels_of):
                t, square = float(level.answers.mean[0]), level.answers.deviation**2
                rate = float(softmax(levels)[s])
                slope = rows * rate * (1 - rate)
                variance = square + slope
                up = slope * (t - rows * rate) / variance - levels[s] * prior
                step = up / (slope**2 / variance + prior)
                levels[s] += min(max(step, -2.0), 2.0)
        moved = [
            level.move(np.array([value])).change[0]
            for level, value in zip(self._levels_of, levels, strict=True)
        ]
        return Move(INTERCEPT, np.array([moved]))
