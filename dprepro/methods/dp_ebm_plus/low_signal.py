"""What is done where noise exceeds most of what rows say: public bins, and small noisy steps.

Where histograms would be lost in their noise, so would be bins merged by them, and the evidence for
how rough a single function is. Then every function has public bins and the same roughness, and
follows its noisy gradients: what noise adds in one step the other steps average, and what features
have in common adds up in the sum of the functions, though no one of them stands out.

Of an ordered feature sums over neighbouring bins are asked (`smooth_sums`): functions that change
slowly, as most effects do, stand out from their noise then. The less rows say, the smoother are the
functions that are asked about.

Of a regression, residuals are clipped far below their size. From predictions that are right on
average, clipped residuals do not add up to 0 then, if targets are skewed. The mean of a code over
the rows is not 0 either, as codes are counted from noisy counts. So features would pull predictions
towards the median in every epoch, without end. Therefore features are asked about from a level of
their own, the middle, where clipped residuals add up to 0. Predictions have the mean.

How far steps get depends on how many rows each bin has, which is lost in noise. So some ways are
tried that rows may lie in the bins, and some sizes that effects may have. The better one of them
explains the histogram and the steps that were released, the more it counts (`likely_error`). All of
this is post-processing.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from dprepro.additive.bins import FeatureBins, category_bins, largest, numeric_bins
from dprepro.data.domain import Feature, NumericFeature
from dprepro.methods.dp_ebm_plus.booster import LARGEST_RESIDUAL, Booster, BudgetAllocation
from dprepro.methods.dp_ebm_plus.clipping import (
    EDGES,
    HALF_CELL,
    LARGEST_BOUND,
    likely_shares,
    mean_counts,
    median_deviation,
    share_within,
)
from dprepro.methods.dp_ebm_plus.function import Answer, Function
from dprepro.methods.dp_ebm_plus.grid import FINEST, grid_edges
from dprepro.methods.dp_ebm_plus.kernel import rounded
from dprepro.methods.dp_ebm_plus.losses import FEW, weighted_mean
from dprepro.methods.dp_ebm_plus.queries import CENTRE_UNIT, Code
from dprepro.methods.dp_ebm_plus.smoothing import (
    CURVE,
    JUMPS,
    LINEAR,
    WALK,
    Priors,
    factor,
    lookup,
    smooth,
)
from dprepro.privacy.query import NoisyAnswer

_DRIFTS = np.array([1 / 81, 1 / 27, 1 / 9, 1 / 3])
"""How far the level may move over all epochs a priori, in standard deviations of the residuals."""

_KINDS = np.array([JUMPS, WALK, CURVE])

_FEWEST = 3
"""Epochs from which on a drift is looked for."""

_OFFSET = 0.4
"""Standard deviation of the mean less the middle a priori, in that of the residuals."""

LOW_SIGNAL_SHARE = 0.02
"""Part of mu^2 for the histograms. They weigh bins where a function is centred and shown."""

LEAST = 0.4
"""Log loss: where residuals are clipped if all is noise. The bound rises with the signal, up to
`LARGEST_RESIDUAL` at a signal of `FEW`: the more noise, the more a smaller bound saves."""

_INTERVALS = 30
"""Bins of a numeric feature: alike in cells of the public grid, not in width."""

_MIDDLE = 0.05
"""Part of the query about all features that is about the `InterceptTracking.middle`."""

_NARROWEST = 0.5
"""Least bound of a regression, in standard deviations of the residuals. A smaller one hardly lowers
the noise in what a query says, but steps become shorter, and lead to medians."""

_LEAST_WITHIN = 0.1
"""Least share of residuals within the bound that is believed."""

_LONGEST = 12.0
"""Bins over which effects are alike at most: see `reach_of`."""

_CENTRES, _WIDTH = (0.1, 0.3, 0.5, 0.7, 0.9), 0.15
"""Rows may lie around these places of the public grid, with this standard deviation, as parts of
all its bins. Or each bin has as many."""

_ANYWHERE = 0.05
"""Part of the rows that each bin has as many of, wherever the others lie."""

_MISSING = 0.25
"""Part of the rows that may have no value. Or they are as rare as a value without others nearby."""

_ODDS = np.array([0.05, 0.3, 1.0, 3.0])
"""A category may have so many times the rows of each other one."""

_TIMES = np.array([0.25, 0.5, 1.0, 2.0, 4.0])

_DEVIATION = 0.7
"""Effects may be so many times as large as is likely. A priori the logarithm is normal, with this
standard deviation."""

_LEAST_ROWS, _LEAST_NOISE, _LEAST_SQUARE = 1e-6, 1e-6, 1e-3
"""Rows of a bin, also times their slope; variance of a value, as a part of its square and of the
noise in all steps; and these, as a part of the square of a likely effect."""

_BITS = 12
"""Binary digits of an error to expect."""


class TrackedIntercept:
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


class InterceptTracking:
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
        self._middle, self._offset = TrackedIntercept(prior), TrackedIntercept(_OFFSET)
        self.middle = self.offset = 0.0
        self._is_known = False

    @property
    def mean(self) -> float:
        """The level of the predictions."""
        return self.middle + self.offset

    def follow(self, found: float, deviation: float, usual: float) -> float:
        """Return the mean, given one more epoch that speaks of it; see `TrackedIntercept.follow`.

        The first epoch speaks of the middle, too: it lies about there.
        """
        self._offset.prior = _OFFSET * usual
        if not self._is_known:
            self.follow_middle(found, math.hypot(deviation, self._offset.prior), usual)
        self.offset = self._offset.follow(found - self.middle, deviation, usual)
        return self.mean

    def follow_middle(self, found: float, deviation: float, usual: float) -> float:
        """Return the middle, after one more epoch; see `TrackedIntercept.follow`."""
        self.middle, self._is_known = self._middle.follow(found, deviation, usual), True
        return self.middle


def is_low_signal(rows: float, n_features: int, mu: float, few: float) -> bool:
    """Say whether there are fewer rows than `few` deviations of the noise in a feature's sums.

    Parameters
    ----------
    rows
        About how many rows there are: released.
    n_features, mu
        Noise in a sum over the rows in a bin is about sqrt(n_features) / mu.
    """
    return rows * mu < few * math.sqrt(n_features)


def public_bins(feature: Feature) -> tuple[FeatureBins, np.ndarray]:
    """Return bins that depend on the domain alone, and the bin of each cell, int (cells,).

    Numeric: so many neighbouring cells of the public grid each, and one for missing values where
    the domain allows them. Categorical: one for each category, as far as codes can number them.
    """
    if not isinstance(feature, NumericFeature):
        weights = np.ones(len(feature.categories) + feature.missing)
        return category_bins(feature, largest(weights, weights > 0, FINEST))
    edges = grid_edges(feature)
    cells = edges.size + 1
    n_bins = min(_INTERVALS, cells)
    bin_of_cell = np.arange(cells) * n_bins // cells
    missing_bin = n_bins if feature.missing else -1
    bins = numeric_bins(feature, edges[np.diff(bin_of_cell) > 0], missing_bin)
    return bins, np.append(bin_of_cell, max(missing_bin, 0))


def reach_of(shortest: float, part: float) -> float:
    """Return the bins over which functions are asked about as if they were alike.

    `part` is the signal over the one at which rows are no longer few, about where the reach is the
    `shortest`. The smaller it is, the more do queries keep to what smooth functions have in common:
    the reach follows its power -2/3.
    """
    return min(shortest * part ** (-2 / 3), _LONGEST)


def alike(lag: int, reach: float) -> float:
    """Return the correlation that effects of intervals so far apart are asked about with.

    (1 + a) exp(-a), a = sqrt(3) lag / `reach` (Matern 3/2): curves whose slopes drift.
    """
    a = math.sqrt(3) * lag / reach
    return (1 + a) * math.exp(-a)


def smooth_sums(function: Function, reach: float) -> np.ndarray | None:
    r"""Return the mix of an ordered function's codes, int64 (B, B), in `CENTRE_UNIT`, else None.

    See `Code.mix`. Number c adds up interval c and those that follow, with weights that rise at
    first and then fade. The bin of missing values has a number of its own.

    With L for the mix of the intervals, L' L is the covariance `alike` of the effects. Noise is
    alike in all numbers. So functions that change slowly are asked about more precisely than
    others. Then each number is counted from its mean over the bins, and all are scaled alike: with
    as many rows in each bin, the mean squared norm of a code is 1 - 1 / B, as without a mix.
    """
    if not function.ordered:
        return None
    intervals = np.flatnonzero(function.extents > 0)
    n, n_bins = intervals.size, function.counts.size
    # All rows of the covariance's band are the same; LAPACK's digits depend on the machine.
    band = np.tile([alike(n - 1 - place, reach) for place in range(n)], (n, 1))
    factor(band)
    mix = np.eye(n_bins)
    for b, row in enumerate(band):
        mix[intervals[: b + 1], intervals[b]] = row[n - 1 - b :]
    mix -= mix.mean(axis=1, keepdims=True)  # codes are counted from their mean anyway
    mix *= math.sqrt((n_bins - 1) / (mix**2).sum())
    return np.rint(mix / CENTRE_UNIT).astype(np.int64)


def likely_counts(noisy: np.ndarray, deviations: np.ndarray, rows: float) -> np.ndarray:
    """Return rows a bin a posteriori, float64 (B,), positive, `rows` in all.

    A priori bins have as many rows each, give or take as many again.

    Parameters
    ----------
    noisy, deviations : float64 (B,)
        Noisy counts, and the standard deviation of the noise in each.
    """
    even = rows / noisy.size
    trust = even**2 / (even**2 + deviations**2)
    counts = np.maximum(trust * noisy + (1 - trust) * even, even / 20)
    return np.asarray(counts * (rows / counts.sum()))


class LowSignalBooster(Booster):
    """A `Booster` whose functions follow their noisy gradients.

    The intercept of labels is learned as there, that of a regression by `InterceptTracking`:
    features are asked about from their `middle`, on which the same query says a little, too.

    A step adds gain A z to a path. A = (M - p)', by `Code`, has what a row in each bin adds to the
    numbers that are asked for, and z = A' g is what is released: g are the sums of residuals in the
    bins. The gain is proportional to the share of mu^2 that the function got, so that what is asked
    precisely counts more. All steps together add noise of about `Loss.low_signal_noise` to the sum
    of all paths in a row, in units of the bound that queries are charged for; for labels, of what
    it would be without `LEAST`. For one function alone a step is at most Newton's, and for all
    together `Loss.longest_step` times that at most.

    The function is its path times E / (E + V): the mean square of the path over the rows, and what
    noise is expected to contribute to it. E holds V, so a path of noise alone is halved.
    """

    has_few_rows: ClassVar[bool] = True
    unclipped: ClassVar[float] = 2.5

    def _set_decays(self) -> None:
        """Do nothing: a `AccumulatedSteps` has a mix of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss.at_once:
            way = min(self.signal / FEW, 1.0)
            self.bound = LEAST + way * (LARGEST_RESIDUAL - LEAST)
        self.shares = self._shares()
        self._usual = self.root_mean_square = self.typical
        self._within = 1.0
        self._level = TrackedIntercept(self.loss.intercept_prior)
        self._levels = InterceptTracking(self.loss.intercept_prior)
        if not self.loss.at_once and self.functions:
            self.middle = Function.constant(self.rows)
        few = self.loss.few(self.typical)
        reach = reach_of(self.loss.low_signal_reach, self.signal / few)
        self._paths = [AccumulatedSteps(f.counts, smooth_sums(f, reach)) for f in self.functions]

    @property
    def paced(self) -> bool:
        """See `Booster.paced`: steps are short."""
        return False

    @property
    def together(self) -> list[Function]:
        """See `Booster.together`; for squared error the middle and the `singles`."""
        if self.middle is not None:
            return [self.middle, *self.singles]
        return super().together or self.singles

    def shares_together(self) -> np.ndarray:
        """See `Booster.shares_together`."""
        shares = super().shares_together()
        if self.middle is None:
            return shares
        return np.array([_MIDDLE * shares.sum(), *((1 - _MIDDLE) * shares)])

    def _code(self, function: Function, part: float) -> Code:
        if function is self.intercept or function is self.middle:
            return super()._code(function, part)
        path = self.path(function)
        # All numbers alike: which bins are rare is lost in noise.
        weights = np.full(path.centre.size, math.sqrt(part))
        return Code(function.feature, weights, path.centre, path.mix)

    def _shares(self) -> BudgetAllocation:
        """Return the shares of an epoch: the intercept gets more for regression."""
        features, intercept, magnitudes = self.shares
        more = max(self.loss.low_signal_intercept, intercept)
        if more == intercept:
            return self.shares
        rest = (1 - more) / (1 - intercept)
        return BudgetAllocation(features * rest, more, magnitudes * rest)

    def sizes(self) -> tuple[np.ndarray, float]:
        """See `Booster.sizes`; from the counts of all epochs so far, as those of one are noise.

        An epoch has the weight of its number, as residuals become smaller.
        """
        noisy, noise = mean_counts(self.magnitudes, np.arange(1.0, len(self.magnitudes) + 1))
        shares = likely_shares(noisy, noise, self.rows, self.rows_noise, self.typical)
        return self.rows * shares, float((shares * (EDGES * HALF_CELL) ** 2).sum())

    def choose_bound(self, magnitudes: NoisyAnswer) -> float:
        """See `Booster.choose_bound`; bands keep to the root mean square that is returned."""
        self.root_mean_square = super().choose_bound(magnitudes)
        return self.root_mean_square

    def bound_for(self, sizes: np.ndarray, noise: float) -> float:
        """See `Booster.bound_for`; at least `_NARROWEST`.

        From the same sizes follow what residuals are `usual`, and how many lie within the bound.
        """
        self._usual = float(rounded(median_deviation(sizes)))
        bound = min(max(super().bound_for(sizes, noise), _NARROWEST * self._usual), LARGEST_BOUND)
        self._within = max(share_within(sizes, bound), _LEAST_WITHIN)
        return bound

    @property
    def usual(self) -> float:
        """See `Booster.usual`; as soon as residuals have been counted, by their median size."""
        return self._usual

    def learn(self, function: Function, answer: Answer, share: float, number: int) -> np.ndarray:
        """See `Booster.learn`."""
        if function is self.intercept:
            if self.loss.at_once:
                return super().learn(function, answer, share, number)
            return self._follow(answer)
        if function is self.middle:
            return np.array([self._levels.follow_middle(*self._found(function, answer))])
        path = self.path(function)
        gain = self.gain(share, path)
        slopes = self._within * lookup(self.table(function), function.values)[1]
        # All numbers of a feature have the same noise, as all have the same weight.
        path.go(gain, answer.sums, float(np.max(answer.deviation)), slopes)
        trust = path.trust()
        function.deviations = trust * np.sqrt(path.variances)
        return trust * path.values

    def _follow(self, answer: Answer) -> np.ndarray:
        """Return where the intercept goes."""
        found = self._found(self.intercept, answer)
        if self.middle is None:
            return np.array([self._level.follow(*found)])
        mean = self._levels.follow(*found)
        self.middle.move(np.array([self._levels.middle]))
        return np.array([mean])

    def _found(self, level: Function, answer: Answer) -> tuple[float, float, float]:
        """Return the arguments of `TrackedIntercept.follow`.

        If the level moves, a sum of residuals changes by those that are not clipped alone. The
        intercept's are taken for unclipped. The middle's are counted from the intercept, which is
        right if both are close; else steps are shorter or longer, and lead to the same end.
        """
        likely = self.rows * (self._within if level is self.middle else 1.0)
        found = float(level.values[0] + answer.sums[0] / likely)
        return found, float(np.max(answer.deviation)) / likely, self.usual

    def band_of(self, function: Function) -> np.ndarray:
        """See `Booster.band_of`; the root mean square error to expect."""
        size = self.loss.likely_effect(self.root_mean_square)
        sampling = self.loss.sampling_variance(self.mean_square)
        return likely_error(function, self.path(function), self.rows, size, sampling)

    def settle_intercept(self) -> None:
        """See `Booster.settle_intercept`."""
        self.intercept.move(np.array([self._levels.mean]))

    def gain(self, share: float, path: AccumulatedSteps) -> float:
        """Return what a step adds to a path for each unit of a sum that got this share of mu^2."""
        features = self.shares.features
        gain = (
            self.loss.low_signal_noise
            * share
            / (math.sqrt(self.n_epochs * features) * self.deviation)
        )
        if self.loss.at_once:  # a bound that falls shortens no step
            gain *= LARGEST_RESIDUAL / self.bound
        newton = 1 / (self.rows * self.loss.largest_curvature)
        longest = min(self.loss.longest_step * share / features, 1 / path.steepest)
        return min(gain, longest * newton)

    def path(self, function: Function) -> AccumulatedSteps:
        """Return the path of one of `functions`."""
        return self._paths[self.functions.index(function)]


class Step(NamedTuple):
    """A step of a path: how far for each unit of a sum, and what the sums were about.

    Attributes
    ----------
    gain, deviation
        Of the step, and of the noise in each number that was asked for.
    slopes : float64 (B,)
        How much the residual of a row falls with the function's value.
    trust
        The function was so many times the path.
    """

    gain: float
    deviation: float
    slopes: np.ndarray
    trust: float


class AccumulatedSteps:
    """What the steps of one function over B bins add up to.

    Attributes
    ----------
    counts : float64 (B,)
        Rows of each bin, as released.
    mix, centre : int64 (C, B) or None, and (C,)
        See `Code`.
    ways : float64 (B, C)
        A: what a step along each number adds to each bin.
    steepest
        What the curvature along a step is at most, per row and unit of the loss's curvature: the
        mean squared norm of a code, which is the sum of the curvatures along all directions.
    values : float64 (B,)
        The mean over the rows is zero.
    variances : float64 (B,)
        Of the noise of all steps, as if no step made up for the noise of those before it.
    """

    def __init__(self, counts: np.ndarray, mix: np.ndarray | None) -> None:
        self.counts, self.mix = counts, mix
        shares = counts / counts.sum()
        numbers = np.eye(counts.size) / CENTRE_UNIT if mix is None else mix
        self.centre = np.rint((numbers * shares).sum(axis=1)).astype(np.int64)
        self.ways = (numbers - self.centre[:, None]).T * CENTRE_UNIT
        squares = (self.ways**2).sum(axis=1)
        self.steepest = max(weighted_mean(squares, counts), CENTRE_UNIT)
        self.values, self.variances = np.zeros((2, counts.size))
        self._steps: list[Step] = []

    def go(self, gain: float, sums: np.ndarray, deviation: float, slopes: np.ndarray) -> None:
        """Add a step along released numbers, (C,); see `Step`."""
        self._steps.append(Step(gain, deviation, slopes, self.trust()))
        # No matrix product: its last digit is not the same on every machine.
        values = self.values + gain * (self.ways * sums).sum(axis=1)
        self.values = values - weighted_mean(values, self.counts)
        self.variances = self.variances + (gain * deviation) ** 2 * (self.ways**2).sum(axis=1)

    def trust(self) -> float:
        """Return E / (E + V), see `LowSignalBooster`."""
        square = weighted_mean(self.values**2, self.counts)
        noise = weighted_mean(self.variances, self.counts)
        return square / (square + noise) if noise > 0 else 1.0

    @property
    def slopes(self) -> np.ndarray:
        """Those of the last step, float64 (B,)."""
        return self._steps[-1].slopes

    def reach(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how far the path gets if bins have these counts, and the noise it brings along.

        With f the effects, a step adds gain A (A' D (f - trust values) + noise), where D has each
        bin's rows times their slope on the diagonal. All of it is linear in f, so values = R f +
        noise of a known covariance. For bands alone: no query depends on it.

        Parameters
        ----------
        counts : float64 (W, B)
            Ways that rows may lie in the bins.

        Returns
        -------
        float64 (W, B, B) each: R, and the covariance of the noise.
        """
        n_bins = self.counts.size
        centring = np.eye(n_bins) - self.counts / self.counts.sum()
        spread = centring @ self.ways
        turn, shaken = spread @ self.ways.T, spread @ spread.T
        reached, noise = np.zeros((2, len(counts), n_bins, n_bins))
        for gain, deviation, slopes, trust in self._steps:
            added = gain * turn * (counts * slopes)[:, None, :]
            kept = centring - trust * added
            reached = kept @ reached + added
            noise = kept @ noise @ kept.transpose(0, 2, 1) + (gain * deviation) ** 2 * shaken
        return reached, noise


def likely_error(
    function: Function, path: AccumulatedSteps, rows: float, size: float, sampling: float
) -> np.ndarray:
    """Return the root mean square error to expect of a function, float64 (B,).

    Function and effects are counted from their means over the rows.

    Parameters
    ----------
    rows
        In all.
    size
        How large effects are likely to be: root mean square over the bins.
    sampling
        The variance of a row's residual over its curvature: the rows are a sample, too.
    """
    prior, explain = covariance(function), _in_all if function.ordered else _in_each
    logs, squares = [], []
    counts, evidence = ways(function, rows)
    square = max(float(np.mean(path.variances + path.values**2)), _LEAST_SQUARE * size**2)
    least = _LEAST_NOISE * square * np.eye(path.values.size)
    for each, fit, reach, noise in zip(counts, evidence, *path.reach(counts), strict=True):
        # A category is judged by its own value and count; the mean stays that of likely counts.
        shares = each if function.ordered else function.counts
        centring = np.eye(each.size) - shares / shares.sum()
        effects = centring @ prior @ centring.T
        found = reach @ (np.eye(each.size) - each / each.sum())
        sample = found * (sampling / np.maximum(each * path.slopes, _LEAST_ROWS)) @ found.T
        for times in _TIMES:
            log, mean, variance = explain(
                path.values, (times * size) ** 2 * effects, reach, noise + sample + least
            )
            logs.append(fit + log - 0.5 * (np.log(times) / _DEVIATION) ** 2)
            squares.append(variance + (mean - centring @ function.values) ** 2)
    weights = np.exp(logs - np.max(logs, axis=0))
    return _to_bits(np.sqrt((weights * squares).sum(axis=0) / weights.sum(axis=0)))


def _to_bits(values: np.ndarray) -> np.ndarray:
    """Return values rounded to `_BITS` binary digits: the last ones differ between machines."""
    digits, powers = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(digits, _BITS)), powers - _BITS))


def ways(function: Function, rows: float) -> tuple[np.ndarray, np.ndarray]:
    """Return ways that rows may lie in the bins, and how well they explain the noisy counts.

    Each is float64 (W, B). A bin has about as many rows as the way says, give or take as many
    again; the first are the counts that follow a posteriori. The second are log likelihoods: of an
    ordered feature that of all counts, of another that of the category's.
    """
    likely = rows * (_places(function) if function.ordered else _odds(function.counts.size))
    variances = likely**2 + function.uncertainty**2
    gaps = function.noisy - likely
    logs = -0.5 * (gaps**2 / variances + np.log(variances))
    counts = np.maximum(likely + likely**2 / variances * gaps, _LEAST_ROWS)
    if function.ordered:
        counts *= rows / counts.sum(axis=1, keepdims=True)
        logs = np.broadcast_to(logs.sum(axis=1, keepdims=True), logs.shape)
    return counts, logs


def _places(function: Function) -> np.ndarray:
    """Return likely shares of an ordered feature's rows, float64 (W, B)."""
    values = function.extents > 0
    n_bins = values.size
    shares = [np.full(n_bins, 1 / n_bins)]
    places = (np.arange(values.sum()) + 0.5) / values.sum()
    for centre in _CENTRES:
        around = np.exp(-0.5 * ((places - centre) / _WIDTH) ** 2)
        share = np.full(n_bins, _ANYWHERE / n_bins)
        share[values] += (1 - share.sum()) * around / around.sum()
        shares.append(share)
    if values.all():
        return np.array(shares)
    missing = [(1 - _MISSING) * share[values] / share[values].sum() for share in shares]
    more = np.full((len(shares), n_bins), _MISSING)
    more[:, values] = missing
    return np.concatenate([shares, more])


def _odds(n_bins: int) -> np.ndarray:
    """Return likely shares of each category's rows, float64 (W, B)."""
    return np.tile(_ODDS[:, None] / (_ODDS[:, None] + n_bins - 1), n_bins)


def covariance(function: Function) -> np.ndarray:
    """Return the covariance of effects a priori, float64 (B, B), whose mean variance is 1.

    Effects of values in order are a walk of normal steps, counted from its mean over the bins.
    Those of categories, and of missing values, are independent.
    """
    values = np.flatnonzero(function.extents > 0)
    found = np.eye(function.counts.size)
    if not function.ordered or values.size < 2:
        return found
    place = np.arange(values.size)
    centring = np.eye(values.size) - 1 / values.size
    walk = centring @ np.minimum.outer(place, place) @ centring
    found[np.ix_(values, values)] = walk * (values.size / np.trace(walk))
    return found


def _in_all(
    seen: np.ndarray, effects: np.ndarray, reach: np.ndarray, noise: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the log likelihood of a path's values, and the effects' means and variances given it.

    `effects` is the covariance a priori; the path's values are `reach` times the effects plus
    `noise`, of this covariance.
    """
    factor = np.linalg.cholesky(reach @ effects @ reach.T + noise)
    both = np.linalg.solve(factor, np.column_stack([seen, reach @ effects]))
    parts, pull = both[:, 0], both[:, 1:]
    log = -np.log(np.diag(factor)).sum() - 0.5 * (parts**2).sum()
    variance = np.diag(effects) - (pull**2).sum(axis=0)
    return float(log), parts @ pull, np.maximum(variance, 0.0)


def _in_each(
    seen: np.ndarray, effects: np.ndarray, reach: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `_in_all` does of each bin, by its own value alone; float64 (B,) each."""
    expected = np.diag(reach @ effects @ reach.T + noise)
    pull = np.diag(reach @ effects)
    log = -0.5 * (np.log(expected) + seen**2 / expected)
    return log, pull / expected * seen, np.maximum(np.diag(effects) - pull**2 / expected, 0.0)
