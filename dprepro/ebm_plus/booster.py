"""Boosting in few, large steps: one noisy histogram of residuals for each feature and epoch.

A step asks for the sums of clipped residuals in all bins of a feature, for labels those of their
curvature too, and adds noise that it is given. The rest is post-processing. With what the released
functions expect of a bin added, the residuals of every epoch tell the same: what the bin's targets
add up to. Their average over the epochs is as good as one look with the budget of all, and the
function follows from it by `smooth`: what cannot be told from noise is shrunk away, so that no step
size has to suit epsilon or the number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dprepro.ebm_plus.clipping import MAGNITUDES, best_bound, likely_sizes
from dprepro.ebm_plus.kernel import magnitude_counts, residual_sums
from dprepro.ebm_plus.smoothing import LINEAR, Priors, expected_rates, lookup, priors, smooth

INTERCEPT_WEIGHT = 0.5
MAGNITUDE_WEIGHT = 0.2
"""mu^2 of these two queries of an epoch, where that of the mean feature's histogram is 1."""

EVEN_SHARE = 0.25
"""Of the features' mu^2, that all get alike. The rest goes where functions are large."""

_AVERAGED = 4 / 3
"""Variance of an average whose weights grow evenly, where that of the plain average is 1."""

_SCALES = 3.0 ** np.arange(-4, 3)
"""Sizes that a function may have: log odds, or twice the bound of the residuals."""

_PRIOR = {True: 3.0, False: 0.25}
"""Standard deviation a priori of the intercept: log odds (logistic), or the target's range."""

_ASTRAY = 0.1
"""Logistic: share of the rarer label's rows that may lie anywhere between the public bounds."""

_UNCLIPPED = 3.0
"""Regression: deviations of the targets within which the intercept's residuals are not clipped."""

_CERTAIN = 2.0
"""Logistic: deviations by which a curvature must exceed the expected one to be believed."""

_CAUTION = 0.5
"""Deviations of noise by which rows are taken to be more than their count says."""

_STRIDE = {True: 0.5, False: 1.0}
"""How far a function moves to what is inferred, after the first epoch: for labels (True) half way,
which averages what was inferred in one epoch after another."""

_LARGEST_SHIFT = 3.0
"""Logistic: log odds by which a level is corrected at once, at most."""


@dataclass
class Function:
    """A function on B bins while it is learned; the intercept is one with a single bin.

    Attributes
    ----------
    codes : uint8 (n,)
        Each row's bin: private.
    counts, uncertainty : float64 (B,)
        Noisy rows a bin, positive, and the standard deviation of the noise in them.
    extents : float64 (B,)
        Shares of the public range: a bin's width over that of the bounds, or one over the number of
        categories.
    ordered
        Whether neighbouring bins are neighbours in value.
    values, deviations : float64 (B,)
        f as it stands, mean zero under `counts`, and its standard deviation a posteriori.
    """

    codes: np.ndarray
    counts: np.ndarray
    uncertainty: np.ndarray
    extents: np.ndarray
    ordered: bool

    def __post_init__(self) -> None:
        self.values, self.deviations = np.zeros((2, self.counts.size))
        self._answers = np.zeros((4, self.counts.size))
        self._weight = self._variance = 0.0

    def remember(
        self, answers: np.ndarray, expected: np.ndarray, weight: float, deviation: float
    ) -> None:
        """Add to the averages what a step was told, and what was expected for one row a bin.

        Both are float64 (2, B): residuals or targets, and curvatures; `deviation` is the noise in
        every answer.
        """
        self._weight += weight
        self._variance += (weight * deviation) ** 2
        self._answers += weight * np.concatenate([answers, expected])

    def averages(self) -> tuple[np.ndarray, float]:
        """Return residuals, curvatures and the two expectations (4, B), and the variance of noise.

        The variance is that of the first two.
        """
        return self._answers / self._weight, self._variance / self._weight**2

    def move(self, values: np.ndarray) -> np.ndarray:
        """Set the values and return their change, float32 (B,)."""
        change = (values - self.values).astype(np.float32)
        self.values = values
        return change

    def spread(self) -> float:
        """Return the variance of the function's values over the rows."""
        return mean((self.values - mean(self.values, self.counts)) ** 2, self.counts)


def mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Do what ``np.average`` does, in a tenth of its time on a few dozen values."""
    return float((values * weights).sum() / weights.sum())


def query_shares(n_features: int, *, logistic: bool) -> tuple[float, float, float]:
    """Return the shares of an epoch's mu^2: all features', the intercept's, the magnitudes'.

    Gaussian queries of mu_1, mu_2, ... make one of mu^2 = mu_1^2 + mu_2^2 + ... together, whether
    they are asked at once or one after another: an epoch is one mechanism in the ledger.
    """
    magnitude = 0.0 if logistic else MAGNITUDE_WEIGHT
    total = n_features + INTERCEPT_WEIGHT + magnitude
    return n_features / total, INTERCEPT_WEIGHT / total, magnitude / total


def answer_sensitivity(bound: float, *, logistic: bool) -> float:
    """Return the L2 sensitivity of `residual_sums`: c, for labels c sqrt(1 + (1 - c)^2)."""
    return bound * math.sqrt(1 + (1 - bound) ** 2) if logistic else bound


class BatchBooster:
    """Learns an intercept and functions of the features from noisy sums.

    Parameters
    ----------
    targets : float32 (n,)
        Labels 0/1, or numbers in [-1/2, 1/2].
    functions
        One a feature with at least two bins.
    rows
        How many rows there are, about.
    start
        First value of the intercept.
    typical
        Deviation that numbers have around their mean, about; labels do not need it.
    deviation
        Noise of an epoch as a whole: standard deviation of a query of sensitivity 1 that
        has all of the epoch's mu^2.
    """

    def __init__(
        self,
        targets: np.ndarray,
        functions: list[Function],
        *,
        rows: float,
        start: float,
        typical: float,
        deviation: float,
        logistic: bool,
    ) -> None:
        self.logistic = logistic
        self.rows = rows
        self.functions = functions
        self.targets = targets
        self.typical = typical
        none = np.zeros(targets.size, np.uint8)
        self.intercept = Function(
            none, np.array([rows]), np.zeros(1), np.ones(1), ordered=False
        )  # fmt: skip
        self.intercept.values[:] = start
        self.shares = query_shares(len(functions), logistic=logistic)
        self._deviation = deviation
        self._scores = np.full(targets.size, start, dtype=np.float32)
        self._pending = (none, np.zeros(1, np.float32))
        self.bound = 1.0
        self._mean_square = 0.25
        self._is_averaging = False

    def noise_size(self) -> int:
        """Return how many numbers of noise an epoch takes."""
        bins = 1 + sum(function.counts.size for function in self.functions)
        return 2 * bins if self.logistic else bins + MAGNITUDES

    def learn(self, noise: np.ndarray) -> None:
        """Ask every query once an epoch; `noise` is float64 (epochs, `noise_size`)."""
        self._epochs = len(noise)
        for number in range(self._epochs):
            self._epoch(number, noise[number])

    def _epoch(self, number: int, noise: np.ndarray) -> None:
        self._is_averaging = number > 0
        if self.logistic:
            self.bound = self._largest_residual()
        else:
            self._set_bound(noise[:MAGNITUDES])
            noise = noise[MAGNITUDES:]
        asked = [self.intercept, *self.functions]
        answers = 2 if self.logistic else 1
        ends = answers * np.cumsum([function.counts.size for function in asked])[:-1]
        shares = [self.shares[1], *self._feature_shares()]
        for function, share, added in zip(asked, shares, np.split(noise, ends), strict=True):
            # Later epochs count more: the other functions are closer to what they will be.
            self._step(function, share, (number + 1) * share, added.reshape(answers, -1))

    def _feature_shares(self) -> list[float]:
        """Return each feature's share of the epoch's mu^2: a part alike, the rest by size.

        The size is the root mean square a posteriori of what has been released, so that the shares
        are fixed before the epoch asks anything: they add up to the same in every epoch.
        """
        sizes = np.array(
            [
                math.sqrt(function.spread() + mean(function.deviations**2, function.counts))
                for function in self.functions
            ]
        )
        if not sizes.any():
            sizes[:] = 1.0
        even = EVEN_SHARE / max(sizes.size, 1)
        shares = even + (1 - EVEN_SHARE) * sizes / sizes.sum()
        return list(self.shares[0] * shares)

    # --- bounds ---------------------------------------------------------------------------------

    def _largest_residual(self) -> float:
        """Return the bound of |y - sigmoid(F)| that the released functions set to every row.

        They move within the epoch that begins with it. What then passes it is clipped.
        """
        start = float(self.intercept.values[0])
        highest = start + sum(function.values.max() for function in self.functions)
        lowest = start + sum(function.values.min() for function in self.functions)
        return float(expit(max(highest, -lowest)))

    def _set_bound(self, noise: np.ndarray) -> None:
        """Choose where to clip from a noisy histogram of |residual|; estimate its mean square."""
        scale = 1 / math.sqrt(self.shares[2])
        exact = magnitude_counts(self._scores, self.targets, *self._pending, MAGNITUDES)
        self._pending = (self._pending[0], np.zeros_like(self._pending[1]))
        deviation = scale * self._deviation
        sizes, square = likely_sizes(exact + scale * noise, deviation, self.rows, self.typical)
        queries = len(self.functions)
        step = self._deviation * math.sqrt(queries / self.shares[0]) if queries else 0.0
        whole = step * math.sqrt(queries * _AVERAGED / self._epochs)
        self.bound = best_bound(sizes, whole)
        self._mean_square = min(max(square, self.bound**2 / 30), self.bound**2)

    # --- steps ----------------------------------------------------------------------------------

    def _sums(self, function: Function, bound: float) -> np.ndarray:
        single = np.float32(bound)
        if float(single) > bound:
            single = np.nextafter(single, np.float32(0))
        sums = residual_sums(
            self._scores, self.targets, *self._pending, function.codes, function.counts.size,
            single, self.logistic,
        )  # fmt: skip
        return np.asarray(sums)

    def _ask(self, function: Function, share: float, noise: np.ndarray) -> tuple[np.ndarray, float]:
        """Return noisy sums (2, B) and the deviation of the noise in each."""
        bound = self.bound
        if function is self.intercept and not self.logistic:
            # Clipped residuals make a median of the intercept, which targets with two peaks are far
            # from; and noise in this one query is little.
            bound = min(1.0, max(bound, _UNCLIPPED * self.typical))
        scale = answer_sensitivity(bound, logistic=self.logistic) / math.sqrt(share)
        sums = self._sums(function, bound)
        sums[: len(noise)] += scale * noise
        return sums, scale * self._deviation

    def _step(self, function: Function, share: float, weight: float, noise: np.ndarray) -> None:
        """Ask for a function's residuals, and set it to what all answers so far say."""
        table = self._table(function)
        now = lookup(table, function.values)
        answers, deviation = self._ask(function, share, noise)
        function.remember(answers, now, weight, deviation)
        (residuals, curvatures, expected, slopes), variance = function.averages()
        # A count too high makes steps too small, which others follow; too low, too large ones.
        counts = function.counts + _CAUTION * function.uncertainty
        if self.logistic:
            # Where features go together, rows are not spread as the table takes them to be.
            sure = curvatures - _CERTAIN * math.sqrt(variance)
            counts = counts * np.maximum(sure / (counts * slopes), 1.0)
        totals = residuals + counts * expected
        curvature = counts * now[1]
        variances = variance + curvature * (1.0 if self.logistic else self._mean_square)
        if function is not self.intercept:
            gap = totals - counts * now[0] if self.logistic else totals
            level = mean(gap / curvature, curvature**2 / variances)
            if self.logistic:
                level = min(max(level, -_LARGEST_SHIFT), _LARGEST_SHIFT)
            totals = totals - curvature * level  # the level is the intercept's
        values, spreads = smooth(
            totals, variances, counts, table, self._priors(function), function.values
        )
        function.deviations = np.sqrt(np.maximum(spreads, 0.0))
        if function is not self.intercept:
            inferred = values - mean(values, function.counts)
            stride = _STRIDE[self.logistic] if self._is_averaging else 1.0
            values = function.values + stride * (inferred - function.values)
        self._pending = (function.codes, function.move(values))

    def _table(self, function: Function) -> np.ndarray:
        if not self.logistic:
            return LINEAR
        intercept = 0.0 if function is self.intercept else float(self.intercept.values[0])
        others = sum(other.spread() for other in self.functions if other is not function)
        return expected_rates(intercept, math.sqrt(others))

    def _priors(self, function: Function) -> Priors:
        centres = np.zeros((1, function.counts.size))
        if function is self.intercept:
            return priors(np.array([_PRIOR[self.logistic]]), centres, ordered=False)
        scales = _SCALES * (1.0 if self.logistic else 2 * self.bound)
        if self.logistic:
            centres = np.stack([centres[0], self._strangeness(function)])
        return priors(scales, centres, ordered=function.ordered)

    def _strangeness(self, function: Function) -> np.ndarray:
        """Return log odds if some rows, half of them of either label, lie anywhere in the range.

        Where hardly any row lies, a label is then as likely as not, which is far from the mean
        where labels are rare: fraud is strange. Which of both, this or no effect, is expected of
        a function, its evidence decides. Rows astray are twice `_ASTRAY` of the rarer label's.
        """
        p = float(np.clip(expit(self.intercept.values[0]), 1e-6, 1 - 1e-6))
        astray = 2 * _ASTRAY * min(p, 1 - p) * self.rows * function.extents
        rates = (function.counts * p + astray / 2) / (function.counts + astray)
        odds = np.log(rates / (1 - rates))
        return odds - mean(odds, function.counts)
