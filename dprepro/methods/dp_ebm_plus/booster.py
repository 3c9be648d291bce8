"""What the booster makes of answers: where to clip, what to ask how precisely, where functions go.

All of it is post-processing: the booster holds answers and never sees a row. The order in
which things are asked and learned is in `dprepro.methods.dp_ebm_plus.algorithm`.

Every epoch's answer, plus what a function itself explains, estimates what the other functions leave
of the targets in each bin. Once these have settled, all epochs estimate the same. So a function
follows from the average over the epochs by `smooth`, which shrinks away what may be noise. No step
size has to suit epsilon or the number of rows.

The counts of |residual| that begin each epoch of a regression say how the residuals of new rows are
distributed, too (`residual_quantiles`): that costs no budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from dprepro.additive.model import LEVELS
from dprepro.methods.dp_ebm_plus.clipping import (
    ENDS,
    best_bound,
    likely_residual_scales,
    likely_shares,
    mean_counts,
)
from dprepro.methods.dp_ebm_plus.function import Answer, Damping, Function, deviations
from dprepro.methods.dp_ebm_plus.kernel import rounded
from dprepro.methods.dp_ebm_plus.losses import Loss, weighted_mean
from dprepro.methods.dp_ebm_plus.queries import Code, CodedResiduals, Residuals
from dprepro.methods.dp_ebm_plus.smoothing import Priors, lookup, priors, smooth
from dprepro.methods.dp_ebm_plus.strategy import autoregressive_strategy, code, typical_norm
from dprepro.privacy.query import NoisyAnswer

INTERCEPT_WEIGHT = 0.5
"""mu^2 of the intercept's query, where that of the mean feature's query is 1."""

EVEN_SHARE = 0.25
"""Part of the features' mu^2 that is divided evenly. The rest goes by the size of the functions."""

_CONTAMINATION = 0.1
"""Strays of the rarer label, as a share of all rows with that label."""

_CLEAR = 2600.0
"""Deviations of the noise in a feature's sums, over all epochs, from which on noise is small."""

_SCALES = np.array([1 / 81, 1 / 27, 1 / 9, 1 / 3, 1.0, 3.0, 9.0])
"""Sizes that a function may have a priori, in the unit of `Loss.scales`."""

LARGEST_RESIDUAL = 0.8
"""Log loss: where residuals are clipped. The few rows with a larger one say less of all than the
noise that a larger bound would cost."""

_CAUTION = 0.5
"""Counts are raised by this many standard deviations of their noise before a step divides by them.
Later steps make up for one that is too small; one that is too large may do lasting harm."""

_LEAST_SAMPLING = 1e-6
"""Least variance of a sum from sampling, in that from noise, so that both can be told apart."""

_LEAST = 1e-9
"""Least share of new rows that no interval is to hold."""


class BudgetAllocation(NamedTuple):
    """How an epoch's mu^2 is divided: all features together, the intercept, the magnitudes."""

    features: float
    intercept: float
    magnitudes: float


def budget_allocation(n_features: int, loss: Loss) -> BudgetAllocation:
    """Return the shares of an epoch's mu^2; they add up to 1.

    Gaussian queries of mu_1, mu_2, ... together have mu^2 = mu_1^2 + mu_2^2 + ..., whether they are
    asked at once or one after another: so an epoch is one mechanism in the ledger.
    """
    total = n_features + INTERCEPT_WEIGHT + loss.sizes_weight
    return BudgetAllocation(n_features / total, INTERCEPT_WEIGHT / total, loss.sizes_weight / total)


def divided(share: float, functions: Sequence[Function]) -> list[float]:
    """Return each function's part of a share of mu^2: a part of it alike, the rest by size.

    The size is the root mean square a posteriori of what has been released.
    """
    squares = [f.spread() + weighted_mean(rounded(f.deviations) ** 2, f.counts) for f in functions]
    sizes = np.sqrt(squares)
    if not sizes.any():
        sizes[:] = 1.0
    even = EVEN_SHARE / max(sizes.size, 1)
    return list(share * (even + (1 - EVEN_SHARE) * sizes / sizes.sum()))


def contamination_prior(function: Function, rows: float, intercept: float) -> np.ndarray:
    """Return a second guess of the function, float64 (B,): some of its rows are strays.

    Half of the strays have either label. In a bin with hardly any other row, both labels are then
    equally likely, which is far from the mean where one label is rare. There are 2 `_CONTAMINATION`
    n min(p, 1 - p) strays among n rows with the share p of positive labels. The evidence decides
    between this guess and no effect.

    Parameters
    ----------
    rows
        n, about.
    intercept
        The log odds of p.
    """
    p = min(max(float(expit(intercept)), 1e-6), 1 - 1e-6)
    astray = 2 * _CONTAMINATION * min(p, 1 - p) * rows * function.extents
    rates = (function.counts * p + astray / 2) / (function.counts + astray)
    odds = np.log(rates / (1 - rates))
    return np.asarray(odds - weighted_mean(odds, function.counts))


@dataclass
class Booster:
    """The intercept and the functions of the features while they are learned.

    Attributes
    ----------
    functions
        One for each feature with at least two bins.
    loss
        What is minimised.
    rows
        About how many rows there are.
    start
        First value of the intercept.
    typical
        About what standard deviation the targets have; log loss does not need it.
    deviation
        Noise of an epoch as a whole: the standard deviation of a query of sensitivity 1 that gets
        all of the epoch's mu^2.
    n_epochs
        How many epochs there are in all.
    rows_noise
        Standard deviation of the noise in `rows`.
    intercept
        A function with a single bin.
    shares
        How every epoch's mu^2 is divided.
    signal
        The number of rows over the noise in a feature's sums, over all epochs.
    clearness
        From 0 to 1: how small noise is beside what rows say. It follows from `signal`.
    has_few_rows
        Whether it is for few rows with much noise.
    unclipped
        See `Loss.intercept_bound`.
    middle
        If features are asked about from a level other than the intercept: that level.
    pace
        Log loss: how far functions go that move at once.
    bound, mean_square
        Where residuals are clipped in this epoch (in a query about functions `together`: those of a
        row whose code is of typical length), and for squared error the mean of their squares.
    magnitudes
        The noisy histograms of |residual| of all epochs so far, for squared error.
    """

    has_few_rows: ClassVar[bool] = False
    unclipped: ClassVar[float] = 3.0

    functions: list[Function]
    loss: Loss
    rows: float
    start: float
    typical: float
    deviation: float
    n_epochs: int
    rows_noise: float = 0.0

    def __post_init__(self) -> None:
        self.intercept = Function.constant(self.rows)
        self.intercept.move(np.array([self.start]))
        self.middle: Function | None = None
        self.shares = budget_allocation(len(self.functions), self.loss)
        self.bound, self.mean_square = LARGEST_RESIDUAL if self.loss.at_once else 1.0, 0.25
        noise = self.deviation * math.sqrt(max(len(self.functions), 1) / self.n_epochs)
        self.signal = self.rows / noise
        self.clearness = min(self.signal / _CLEAR, 1.0)
        self.magnitudes: list[NoisyAnswer] = []
        self.damping = Damping(len(self.functions))
        self._set_decays()

    def _set_decays(self) -> None:
        """Let neighbouring bins of ordered functions share the numbers that are asked for."""
        for function in self.functions:
            if function.ordered:
                function.decay = autoregressive_strategy(
                    function.counts, function.extents, self.loss.rare
                )

    # --- before an epoch ------------------------------------------------------------------------

    def feature_shares(self) -> list[float]:
        """Return each feature's share of the epoch's mu^2: see `divided`.

        The shares are fixed before the epoch asks anything, so that they add up to the same in
        every epoch.
        """
        return divided(self.shares.features, self.functions)

    def choose_bound(self, magnitudes: NoisyAnswer) -> float:
        """Choose where to clip by a noisy histogram of |residual|; return its root mean square."""
        self.magnitudes.append(magnitudes)
        sizes, square = self.sizes()
        queries = len(self.functions)
        # The noise of one query if all features get alike; that of all features and epochs.
        one = self.deviation * math.sqrt(queries / self.shares.features) if queries else 0.0
        weights = np.array([self.weight(number) for number in range(self.n_epochs)])
        together = one * math.sqrt(queries * (weights**2).sum()) / weights.sum()
        self.bound = self.bound_for(sizes, together)
        # At least a tenth of what residuals that are uniform within the bound have.
        self.mean_square = min(max(square, self.bound**2 / 30), self.bound**2)
        return float(rounded(math.sqrt(square)))

    def bound_for(self, sizes: np.ndarray, noise: float) -> float:
        """Return where to clip: see `best_bound`."""
        return best_bound(sizes, noise)

    def sizes(self) -> tuple[np.ndarray, float]:
        """Return rows a cell of |residual| a posteriori, float64 (20,), and the mean square.

        From the last epoch's counts: residuals become smaller.
        """
        last = self.magnitudes[-1]
        return likely_residual_scales(last.value, last.scale, self.rows, self.typical)

    # --- in a step ------------------------------------------------------------------------------

    def table(self, function: Function) -> np.ndarray:
        """Tabulate what is expected of a row's target, given the function's value; see `lookup`."""
        level = float(self.intercept.values[0])
        others = sum(other.spread() for other in self.functions if other is not function)
        own, intercept = function.spread(), level
        if function is self.intercept:
            own, intercept = 0.0, 0.0
        believed = self.loss.believed(level, own + others, self.start)
        return self.loss.table(intercept, believed * others)

    @property
    def usual(self) -> float:
        """About what standard deviation residuals have: at first that of the targets."""
        return self.typical

    @property
    def singles(self) -> list[Function]:
        """The functions of one feature each."""
        return self.functions

    @property
    def together(self) -> list[Function]:
        """What an epoch asks about in one query: for log loss the intercept and the `singles`."""
        return [self.intercept, *self.singles] if self.loss.at_once else []

    def coded_residuals(self) -> CodedResiduals:
        """Return the query for all functions `together`, charged for what its bound allows.

        A row whose code is of typical length may have a residual of `bound`.
        """
        functions, shares = self.together, self.shares_together()
        parts = shares / shares.sum()
        counts = [function.counts for function in functions]
        codes = tuple(
            self._code(function, part) for function, part in zip(functions, parts, strict=True)
        )
        bound = self.bound * typical_norm(codes, counts)
        # For labels without pairs the shares add up to 1, up to rounding.
        return CodedResiduals(bound, min(float(shares.sum()), 1.0), codes, bound)

    def shares_together(self) -> np.ndarray:
        """Return the share of each function `together`, float64; they are that of the query."""
        shares = self.feature_shares()[: len(self.singles)]
        return np.array([self.shares.intercept, *shares] if self.loss.at_once else shares)

    def _code(self, function: Function, part: float) -> Code:
        return code(function.feature, function.counts, part, self.loss.rare, function.decay)

    @property
    def paced(self) -> bool:
        """Whether functions that move at once keep a `pace`."""
        return self.loss.at_once

    def residuals_of(self, function: Function, share: float) -> Residuals | CodedResiduals:
        """Return the query for a function's residuals, charged for what its bound lets through."""
        if function is self.intercept:
            bound = self.loss.intercept_bound(self.bound, self.usual, self.unclipped)
            return Residuals(bound, share, function.feature, bound)
        asked = self._code(function, 1.0)
        # All bins count alike. By rows, those in rare bins, whose codes are long, would be clipped
        # at far less.
        bound = self.bound * typical_norm([asked], [np.ones(function.counts.size)])
        return CodedResiduals(bound, share, (asked,), bound)

    def weight(self, number: int) -> float:
        """Return what an epoch's answers count in the averages, relative to the others.

        Later epochs count more: the other functions are closer to what they will be. The noise in
        the average is least if all count alike, so weights rise like the number of the epoch where
        noise is large, and like its cube where it is small and the loss `hurries`.
        """
        cubic = self.clearness if self.loss.hurries else 0.0
        place = (number + 1) / self.n_epochs
        return (number + 1) * (1 - cubic + cubic * place * place)

    def learn_all(
        self, functions: list[Function], query: CodedResiduals, noisy: NoisyAnswer, number: int
    ) -> list[np.ndarray]:
        """Return what all functions move to that were asked about in one query; see `learn`."""
        learned = []
        weights = [asked.weights for asked in query.codes]
        sums = np.split(noisy.value, np.cumsum([w.size for w in weights])[:-1])
        answers = [Answer(s / w, noisy.scale / w) for s, w in zip(sums, weights, strict=True)]
        if self.paced:
            self.damping.follow(answers)
        for function, answer, asked in zip(functions, answers, query.codes, strict=True):
            # Rounded: for labels without pairs it is 1.
            share = round(query.share, 9) * self._part_of(function, asked)
            learned.append(self.learn(function, answer, share, number))
        if self.paced:
            changes = [v - f.values for f, v in zip(functions, learned, strict=True)]
            decays = [f.decay for f in functions]
            changes = [c if d is None else d.along(c) for c, d in zip(changes, decays, strict=True)]
            self.damping.remember(changes, answers)
        return learned

    def _part_of(self, function: Function, asked: Code) -> float:
        """Return the part of a query that was for a function, up to a constant factor."""
        if function.decay is None:
            return weighted_mean(asked.weights**2, function.counts)
        return typical_norm([asked], [function.counts]) ** 2

    def learn(self, function: Function, answer: Answer, share: float, number: int) -> np.ndarray:
        """Return the values, float64 (B,), that a function moves to after one more answer.

        Parameters
        ----------
        answer
            What `residuals_of` the function, or `coded_residuals`, brought.
        share, number
            What the query was charged of the epoch, and the epoch's number, from 0.
        """
        table = self.table(function)
        expected = lookup(table, function.values)
        function.remember(answer, expected[0], self.weight(number) * share)
        return self._infer(function, table, expected, number)

    def _infer(
        self, function: Function, table: np.ndarray, expected: np.ndarray, number: int
    ) -> np.ndarray:
        """Set a function's deviations, and return the values, float64 (B,), that it moves to.

        Parameters
        ----------
        table, expected
            See `table`, and `lookup` at the function's values.
        number
            Of the epoch, from 0.
        """
        values, spreads, _ = smooth(*self._inference(function, table, expected))
        function.deviations = np.sqrt(np.maximum(spreads, 0.0))
        if function is self.intercept:
            return values
        centred = values - weighted_mean(values, function.counts)
        return function.values + self._stride(number) * (centred - function.values)

    def _inference(self, function: Function, table: np.ndarray, expected: np.ndarray) -> Any:
        """Return the arguments of `smooth`."""
        totals, variances, counts = self._evidence(function, expected)
        models = self._priors(function)
        return totals, variances, counts, table, models, function.values, function.noise()

    def freedom(self, function: Function) -> float:
        """Return the degrees of freedom of a function over the number of rows; see `smoothing`."""
        table = self.table(function)
        found = smooth(*self._inference(function, table, lookup(table, function.values)))
        return weighted_mean(found.rise, function.counts)

    def set_bands(self) -> None:
        """Set `Function.band` of each function, after the last epoch."""
        for function in self.functions:
            function.band = self.band_of(function)

    def band_of(self, function: Function) -> np.ndarray:
        """Return how far a function may lie from the one in the rows, float64 (B,)."""
        if self.loss.is_logistic:
            return function.deviations
        return deviations(function, self.mean_square)

    def settle_intercept(self) -> None:
        """Let the intercept follow the `middle`: there is none where rows are many."""

    def _stride(self, number: int) -> float:
        """Return how much of the way to its inferred values a function goes."""
        if self.loss.at_once:
            return self.damping.value
        short, long = self.loss.strides
        return short + self.clearness * (long - short) if number > 0 else 1.0

    def _evidence(
        self, function: Function, expected: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sum of the targets in each bin, its variance, and rows, each float64 (B,).

        The variance is without `Function.noise`.
        """
        (residuals, targets), variance = function.averages()
        counts = function.counts + _CAUTION * function.uncertainty
        totals = residuals + counts * targets
        curvature = counts * expected[1]
        variances = variance + curvature * self.loss.sampling_variance(self.mean_square)
        if function is not self.intercept:
            # What all bins share is for the intercept to learn.
            level = self.loss.level(totals, counts * expected[0], curvature, variances)
            totals = totals - curvature * level
        if function.decay is not None:
            variances = np.maximum(variances - variance, _LEAST_SAMPLING * variance)
        return totals, variances, counts

    def _priors(self, function: Function) -> Priors:
        centres = np.zeros((1, function.counts.size))
        if function is self.intercept:
            return priors(np.array([self.loss.intercept_prior]), centres, ordered=False)
        scales = _SCALES * self.loss.scales(self.bound)
        if self.loss.expects_strays:
            strays = contamination_prior(function, self.rows, float(self.intercept.values[0]))
            centres = np.stack([centres[0], strays])
        return priors(scales, centres, ordered=function.ordered)


def residual_quantiles(booster: Booster) -> np.ndarray | None:
    """Return |target - prediction| that the shares `LEVELS` of new rows do not exceed, (L,).

    In units of the target's range. None for labels, and if there was one epoch alone: its counts
    are from before any function moved. The counts are of the rows that were fitted to, whose
    residuals are smaller than those of new rows by what the functions learned of their sampling
    noise: see `_optimism`.

    Parameters
    ----------
    booster
        After the last epoch.
    """
    if len(booster.magnitudes) < 2:
        return None
    # Residuals become smaller from epoch to epoch, and ever less so; before the first, no function
    # has moved.
    counts, noise = mean_counts(booster.magnitudes, np.arange(float(len(booster.magnitudes))))
    # Where rows are few, predictions hardly ever reach an end of the range.
    exact = not booster.has_few_rows
    shares = likely_shares(counts, noise, booster.rows, booster.rows_noise, exact=exact)
    wider = math.sqrt(1 + 2 * _optimism(booster))
    return wider * quantiles(shares, LEVELS)


def quantiles(shares: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the sizes that the shares `levels` of rows do not exceed, float64 (L,), rising.

    Between two edges the size is a linear function of the standard normal quantile of
    (1 + level) / 2, which is exact for normal residuals.

    Parameters
    ----------
    shares : float64 (20,)
        Of the cells of `EDGES`, at least 0, adding up to 1.
    levels : float64 (L,)
        Between 0 and 1.
    """
    within = np.clip(1 - np.cumsum(shares)[:-1], 0.0, 1.0)
    known = np.concatenate([[0.0], within[::-1], [1.0]])
    scores = ndtri((1 + np.minimum(known, 1 - _LEAST)) / 2)  # infinite at 1
    return np.asarray(np.interp(ndtri((1 + levels) / 2), scores, ENDS))


def _optimism(booster: Booster) -> float:
    """Return the degrees of freedom of the functions over the number of rows.

    A new row's squared residual is larger than a fitted one's by the factor 1 + 2 d / n on average
    (Efron 2004, "The Estimation of Prediction Error", eq. 2.8). d adds up, over the rows, by how
    much a row's prediction rises with its own target.
    """
    return sum(booster.freedom(f) for f in booster.functions if f.has_answers)
