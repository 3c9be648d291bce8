"""What is made of answers: where to clip, where functions and levels go. It never sees a row.

The sums of an epoch, plus what a function itself explains, estimate what the other functions leave
of the targets in each bin. Once these have settled, all epochs estimate the same. So a function
follows from the average over the epochs, by `prior`. No step size has to suit epsilon.

Functions that move at once may all make up for the same rows, and go too far together: `Damping`
says how much of the way they go.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dprepro.additive.model import LEVELS
from dprepro.methods.dp_ebm_plus.bins import BinnedFeature
from dprepro.methods.dp_ebm_plus.clipping import (
    EDGES,
    HALF_CELL,
    best_bound,
    likely_shares,
    mean_counts,
    median_deviation,
    quantiles,
    share_within,
)
from dprepro.methods.dp_ebm_plus.kernel import LARGEST, from_units, rounded, to_units
from dprepro.methods.dp_ebm_plus.losses import Loss, Response, Start, weighted_mean
from dprepro.methods.dp_ebm_plus.prior import (
    REACHES,
    SIZES,
    Posterior,
    Priors,
    curve,
    half_cauchy,
    independent,
    mixture,
    ornstein_uhlenbeck,
    posteriors,
    with_missing,
)
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, Code, CodedResiduals, Move, Residuals
from dprepro.methods.dp_ebm_plus.strategy import Strategy, rounded_weights, typical_norm
from dprepro.privacy.query import NoisyAnswer

EFFECT = 0.5
"""How large an effect the strategy expects, in the unit of the loss."""

INTERCEPT_PART = 0.5
"""Squared length of the intercept's code, where that of a feature with many bins is about 1."""

_SIZES_PART, _LEVEL_PART = 0.2, 0.1
"""Parts of an epoch of a regression: of the counts of residuals by size, where a feature's is about
1; and of the intercept, at least, in all."""

_RISING, _STEEPLY, _HALFWAY = 1.5, 2.5, 0.005
"""Later epochs count more, as the other functions are closer to their ends: by a power of their
number. It is the first of these, and by the second more where there is no noise, since then early
epochs have nothing to add. The third is the noise-to-signal ratio at which half of that is left."""

_UNCLIPPED = 3.0
"""The intercept's residuals are clipped at so many of their standard deviations, by the median."""

_NARROWEST, _WIDEST, _LEAST_WITHIN = 0.5, 0.5, 0.1
"""Least bound of residuals in their standard deviation, largest one in the range of the targets;
and the least share of residuals within the bound that is believed."""

_OFFSET = 0.4
"""Standard deviation of the mean less the middle a priori, in that of the residuals."""

_LEAST_SAMPLING = 1e-3
"""Least variance of a sum from sampling, in that from noise, so that both can be told apart."""

_SETTLING = 1
"""Epochs of a regression in which functions stay. Where few of many residuals are large, the middle
is far from the mean: it moves first, as else all functions would make up for it."""

_FASTEST, _SLOWEST = 1.5, 0.3
"""By what the pace may rise or fall from one epoch to the next."""

_LEAST = 0.5
"""The pace is at least this over K: K equal functions do not go too far then."""


class Answer(NamedTuple):
    """What an answer says of one function.

    Attributes
    ----------
    sums : float64 (B,)
        Sums of residuals, with noise; for a code with a mix its numbers (C,), see `Code`.
    deviation : float or float64 (B,)
        The standard deviation of the noise.
    """

    sums: np.ndarray
    deviation: float | np.ndarray


class Damping:
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


class Average:
    """A weighted average of answers, and the variance of the noise in it."""

    def __init__(self) -> None:
        self._weight, self._total, self._square = 0.0, np.zeros(1), 0.0

    def add(self, value: Any, deviation: float, weight: float) -> None:
        """Add an answer, float64 (B,) or a number, with the standard deviation of its noise."""
        self._weight += weight
        self._total = self._total + weight * np.atleast_1d(value)
        self._square += (weight * deviation) ** 2

    @property
    def mean(self) -> np.ndarray:
        """The average, float64 (B,)."""
        return self._total / self._weight

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in it; infinite before any answer."""
        return math.sqrt(self._square) / self._weight if self._weight else math.inf


class Effect:
    """The function of a feature while it is learned, or a level: a function of one bin.

    Attributes
    ----------
    feature
        The feature's number, or `INTERCEPT`; or a pair, whose cells are the bins.
    counts : float64 (B,)
        Rows of each bin.
    values, band : float64 (B,)
        The function as it stands, in whole numbers of `kernel.UNIT`, and its standard deviation a
        posteriori. The mean over the rows is zero, except for a level.
    """

    def __init__(self, feature: Any, counts: np.ndarray) -> None:
        self.feature, self.counts = feature, counts
        self.shares = counts / counts.sum()
        self.values, self.band, self.rise = np.zeros((3, counts.size))
        self.answers = Average()

    def move(self, values: np.ndarray) -> Move:
        """Round values, float64 (B,), and set them; return what tells the rows."""
        before, after = to_units(self.values), to_units(values)
        self.values = from_units(after)
        return Move(self.feature, np.clip(after - before, -LARGEST, LARGEST))

    @property
    def spread(self) -> float:
        """The variance of the function over the rows."""
        mean = weighted_mean(self.values, self.counts)
        return weighted_mean((self.values - mean) ** 2, self.counts)

    def known(self) -> tuple[np.ndarray, float]:
        """Return what is known of a row's score by its bin, float64 (B,), and its variance."""
        return self.values, self.spread

    def centred(self, values: np.ndarray) -> np.ndarray:
        """Return values, float64 (B,), less what other functions are to learn: their mean."""
        return np.asarray(values - weighted_mean(values, self.counts))


class Question(ABC):
    """How a function is asked about, by a `strategy`, and what is made of the answers."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @abstractmethod
    def posterior(
        self, t: np.ndarray, own: np.ndarray, shared: np.ndarray, h: np.ndarray, unit: float
    ) -> Posterior:
        """Return what is known of the function, given what `prior.posteriors` takes."""


class OfFeature(Question):
    """How a feature is asked about.

    `priors` are what is believed of its function before, and `of_sizes` says how likely sizes are.
    """

    def __init__(self, strategy: Strategy, priors: Priors, of_sizes: np.ndarray) -> None:
        super().__init__(strategy)
        self._priors, self._of_sizes = priors, of_sizes

    def posterior(
        self, t: np.ndarray, own: np.ndarray, shared: np.ndarray, h: np.ndarray, unit: float
    ) -> Posterior:
        """See `Question.posterior`."""
        found = posteriors(t, own, shared, h, self._priors, unit, has_level=True)
        return mixture(found, self._of_sizes)


def question(k: int, found: BinnedFeature, noise: float, part: float) -> Question:
    """Return how feature k is asked; `noise` and `part` are those of `Strategy.of`."""
    counts, n = found.counts, found.intervals
    # All functions together are about as large a priori as the unit.
    of_sizes = half_cauchy(SIZES, math.sqrt(part))
    if n < 2:
        alike = independent(counts.size)
        priors = Priors.of([alike], SIZES)
        return OfFeature(Strategy.of(k, counts, alike, noise, part), priors, of_sizes)
    shares = counts[:n] / counts[:n].sum()
    # The mean of the bins between both, as a share of all, and of the rows between both.
    apart = 0.5 / n + (shares[1:] + shares[:-1]) / 4
    kinds: list[tuple[np.ndarray, ...]] = [ornstein_uhlenbeck(apart, reach) for reach in REACHES]
    kinds.append(curve(n))
    if counts.size > n:
        kinds = [with_missing(kind) for kind in kinds]
    strategy = Strategy.of(k, counts, kinds[0], noise, part)
    return OfFeature(strategy, Priors.of(kinds, SIZES), of_sizes)


def part_of_a_feature(n_features: int) -> float:
    """Return a feature's part of a row's squared length, if each of its bins is asked by itself."""
    return 1 / (max(n_features, 1) + INTERCEPT_PART)


def averaging(n_epochs: int, noise_to_signal: float = math.inf) -> np.ndarray:
    """Return the weights of the epochs, float64 (E,), which add up to 1; see `Loss.bound`."""
    power = _RISING + _STEEPLY / (1 + noise_to_signal / _HALFWAY)
    weights = np.arange(1.0, n_epochs + 1) ** power
    return np.asarray(weights / weights.sum())


def noise_of_average(weights: np.ndarray) -> float:
    """Return the noise in an average with these weights, where that in an answer is 1."""
    return math.sqrt(float((weights**2).sum()))


class Booster:
    """The functions of all features with two bins at least, and the levels.

    Parameters
    ----------
    loss, start
        What is minimised, and what the totals say.
    effects, questions
        Of each feature, and how it is asked.
    deviation
        Standard deviation of the noise in a query of sensitivity 1 that gets a whole epoch.
    weights : float64 (E,)
        Of the epochs in an average: see `averaging`.

    Attributes
    ----------
    level, middle
        The intercept, and what features are asked from: for labels the intercept, for a regression
        the level at which residuals add up to 0 that are clipped as theirs are.
    bound, within, mean_square
        Where residuals are clipped in a row whose code is of typical length, the share of residuals
        within it, and the mean of their squares.
    """

    def __init__(
        self,
        loss: Loss,
        start: Start,
        effects: list[Effect],
        questions: list[Question],
        deviation: float,
        weights: np.ndarray,
    ) -> None:
        self.loss, self.start, self.deviation = loss, start, deviation
        one = np.array([start.rows])
        self.level, self.middle = (Effect(INTERCEPT, one) for _ in range(2))
        self.level.move(np.array([start.level]))
        self.middle.move(np.array([start.level]))
        self.bound, self.within, self.mean_square = start.residual, 1.0, 0.25
        self.weights, self._average = weights, noise_of_average(weights)
        self.part = part_of_a_feature(len(effects))
        self.effects: list[Effect] = []
        self._fixed = 0.0
        self.sizes_share = self.level_share = 0.0
        self._usual = start.residual
        self.ask_about(list(zip(effects, questions, strict=True)))

    def ask_about(self, asked: Sequence[tuple[Effect, Question]], moves: bool = True) -> None:
        """Let the next epochs ask about these functions.

        Unless they are to move, the functions before stay what scores are made of.
        """
        effects = [effect for effect, _ in asked]
        questions = [question for _, question in asked]
        self._fixed = 0.0 if moves else self.spread
        self.effects, self._questions, self.moves = effects, questions, moves
        if moves:  # with other functions residuals had other sizes
            self._sizes: list[NoisyAnswer] = []
        weight = rounded_weights(np.array([INTERCEPT_PART * self.part]))
        of_level = Code(INTERCEPT, weight, np.zeros(1, np.int64))
        self._codes = (of_level, *(question.strategy.code for question in questions))
        counts = [self.level.counts, *(effect.counts for effect in effects)]
        self._length = typical_norm(self._codes, counts)
        self.damping = Damping(len(effects))
        if self.loss.counts_sizes:
            total = max(len(effects), 1) + INTERCEPT_PART + _SIZES_PART
            self.level_share = max(_LEVEL_PART, INTERCEPT_PART / total)
            self.sizes_share = _SIZES_PART / total * (1 - self.level_share)

    @property
    def asked(self) -> list[tuple[Effect, Question]]:
        """The functions that are asked about, and how."""
        return list(zip(self.effects, self._questions, strict=True))

    def infer_all(self) -> None:
        """Let every question find what is known of its function, and nothing move."""
        for effect, question in self.asked:
            self._infer(effect, question, self._response(effect, self.spread))

    @property
    def spread(self) -> float:
        """The variance of the sum of all functions, as if features were independent."""
        return self._fixed + sum(effect.spread for effect in self.effects)

    def noise_in_a_bin(self, n_features: int) -> float:
        """Return the noise of an epoch in the sum of a bin, over what a usual effect moves all by.

        So many features are asked about, each bin by itself.
        """
        start = self.start
        noise = self.deviation * self.bound * math.sqrt(n_features + INTERCEPT_PART)
        return noise / (start.rows * start.slope * EFFECT * start.unit)

    # --- a regression's sizes and levels --------------------------------------------------------

    def choose_bound(self, sizes: NoisyAnswer) -> None:
        """Choose where to clip, by noisy counts of |residual|: where noise and bias are least."""
        self._sizes.append(sizes)
        shares = self._likely_sizes(exact=False)
        noise = self.deviation * self._average * self._length * math.sqrt(len(self.effects))
        noise /= math.sqrt((1 - self.level_share - self.sizes_share) * self.part)
        self._usual = float(rounded(median_deviation(shares)))
        bound = best_bound(self.start.rows * shares, noise)
        self.bound = min(max(bound, _NARROWEST * self._usual), _WIDEST)
        self.within = max(share_within(shares, self.bound), _LEAST_WITHIN)
        square = float((shares * (EDGES * HALF_CELL) ** 2).sum())
        # At least a tenth of what residuals that are uniform within the bound have.
        self.mean_square = min(max(square, self.bound**2 / 30), self.bound**2)

    def _likely_sizes(self, exact: bool) -> np.ndarray:
        """Return the shares of rows by |residual|, by all counts; later ones count more."""
        weights = np.arange(1.0, len(self._sizes) + 1) ** 2
        counts, noise = mean_counts(self._sizes, weights)
        typical = None if exact else self.start.residual
        return likely_shares(counts, noise, self.start.rows, self.start.noise, typical, exact)

    def of_level(self) -> Residuals:
        """Return the query for the intercept of a regression."""
        bound = min(1.0, max(self.bound, _UNCLIPPED * self._usual))
        return Residuals(bound, self.level_share, INTERCEPT, bound)

    def learn_level(self, answer: NoisyAnswer, number: int) -> None:
        """Take in what the query for the intercept of a regression brought, and settle levels."""
        rows = self.start.rows
        found = self.level.values + answer.value / rows
        self.level.answers.add(found, answer.scale / rows, self.weights[number])
        self._settle()

    def _settle(self) -> None:
        """Set the levels of a regression to their mean a posteriori.

        The intercept a follows from residuals that are hardly clipped, the middle m from those that
        are clipped as the features' are, with far less noise. A priori a - m ~ N(0, `_OFFSET`^2)
        in units of the residuals, and m ~ N(0, `Loss.prior`^2).
        """
        of_mean = self.level.answers.deviation**-2
        of_middle = self.middle.answers.deviation**-2
        tie = (_OFFSET * self._usual) ** -2
        own = self.loss.prior**-2
        mean = of_mean * float(self.level.answers.mean[0]) if of_mean else 0.0
        middle = of_middle * float(self.middle.answers.mean[0]) if of_middle else 0.0
        both = (of_mean + tie) * (of_middle + tie + own) - tie**2
        a = ((of_middle + tie + own) * mean + tie * middle) / both
        m = ((of_mean + tie) * middle + tie * mean) / both
        self._levels = np.array([a]), np.array([m])

    def levels(self) -> None:
        """Move both levels of a regression to where they were settled."""
        for level, settled in zip((self.level, self.middle), self._levels, strict=True):
            level.move(settled)

    # --- functions ------------------------------------------------------------------------------

    def coded_residuals(self) -> CodedResiduals:
        """Return the query about all features, and the level that they are asked from."""
        bound = self.bound * self._length
        share = 1.0 - self.level_share - self.sizes_share
        return CodedResiduals(bound, share, self._codes, bound)

    def learn(self, noisy: NoisyAnswer, number: int) -> list[Move]:
        """Return how all functions move, given one more answer; for labels the intercept, too."""
        weights = [code.weights for code in self._codes]
        places = np.cumsum([w.size for w in weights])[:-1]
        numbers = [part / w for part, w in zip(np.split(noisy.value, places), weights, strict=True)]
        total, noise = float(numbers[0][0]), float(noisy.scale / weights[0][0])
        mixes = [question.strategy.mix for question in self._questions]
        sums = [mix.sums(part) for mix, part in zip(mixes, numbers[1:], strict=True)]
        answers = [
            Answer(part, noisy.scale / w) for part, w in zip(numbers[1:], weights[1:], strict=True)
        ]
        self.damping.follow(answers)
        spread = self.spread
        moving = self.moves and (number >= _SETTLING or not self.loss.counts_sizes)
        changes = []
        for effect, question, each in zip(self.effects, self._questions, sums, strict=True):
            response = self._response(effect, spread)
            self._take(effect, each, noisy.scale, number, response)
            if moving:
                changes.append(self._change(effect, self._infer(effect, question, response)))
        if not moving:
            return [self._learn_level(total, noise, number)]
        along = [mix.along(change) for mix, change in zip(mixes, changes, strict=True)]
        self.damping.remember(along, answers)
        moves = [
            effect.move(effect.values + change)
            for effect, change in zip(self.effects, changes, strict=True)
        ]
        return [self._learn_level(total, noise, number), *moves]

    def _take(
        self, effect: Effect, sums: np.ndarray, scale: float, number: int, response: Response
    ) -> None:
        """Add sums of residuals to the answers about a function; see `_infer`."""
        rows = self.within * effect.counts
        effect.answers.add(sums + rows * response[0], scale, self.weights[number])

    def _infer(self, effect: Effect, question: Question, response: Response) -> Posterior:
        """Return what is known of a function, given all answers and its `_response`."""
        loss, (expected, slopes) = self.loss, response
        rows = self.within * effect.counts
        gained, h = effect.answers.mean - rows * expected, rows * slopes
        shared = question.strategy.noise(effect.answers.deviation)
        noise = (shared**2).sum(axis=0)
        sampling = loss.sampling(self.mean_square / self.within, self.start)
        own = np.maximum(h * sampling, _LEAST_SAMPLING * noise)
        t = gained + h * effect.values
        return question.posterior(t, own, shared, h, loss.unit(self.start, self._usual))

    def _response(self, effect: Effect, spread: float) -> Response:
        """Return `Loss.response` of a function.

        `spread` is the variance of the sum of all functions, as if features were independent.
        """
        values, own = effect.known()
        level = float(self.level.values[0])
        return self.loss.response(values, effect.shares, self.start, level, spread - own)

    def _change(self, effect: Effect, likely: Posterior) -> np.ndarray:
        """Set a function's band; return by how much it moves, float64 (B,)."""
        effect.band, effect.rise = np.sqrt(likely.variance), likely.rise
        return self.damping.value * (effect.centred(likely.mean) - effect.values)

    def _learn_level(self, total: float, noise: float, number: int) -> Move:
        """Take in what the query says of the level that features were asked from."""
        rows, weight = self.start.rows, self.weights[number]
        if self.loss.counts_sizes:
            rows *= self.within
            found = float(self.middle.values[0]) + total / rows
            self.middle.answers.add(found, noise / rows, weight)
            self._settle()
            return self.middle.move(self._levels[1])
        level = float(self.level.values[0])
        spread = self.spread
        expected, _ = self.loss.of_level(level, spread, self.start)
        self.level.answers.add(total + rows * expected, noise, weight)
        t, square = float(self.level.answers.mean[0]), self.level.answers.deviation**2
        for _ in range(20):
            expected, slope = self.loss.of_level(level, spread, self.start)
            slope *= rows
            variance = square + slope
            up = slope * (t - rows * expected) / variance - level / self.loss.prior**2
            step = up / (slope**2 / variance + self.loss.prior**-2)
            level += min(max(step, -2.0), 2.0)
        return self.level.move(np.array([level]))

    # --- after the last epoch -------------------------------------------------------------------

    def residual_quantiles(self) -> np.ndarray | None:
        """Return |target - prediction| that the shares `LEVELS` of new rows do not exceed, (L,).

        In units of the target's range. None for labels, and if there was one epoch alone. A new
        row's squared residual is larger than a fitted one's by the factor 1 + 2 d / n on average
        (Efron 2004, "The Estimation of Prediction Error", eq. 2.8). d, the degrees of freedom, adds
        up by how much a row's prediction rises with its own target.
        """
        if len(self._sizes) < 2:
            return None
        freedom = sum(weighted_mean(effect.rise, effect.counts) for effect in self.effects)
        return math.sqrt(1 + 2 * freedom) * quantiles(self._likely_sizes(exact=True), LEVELS)
