"""Boosting in few, large steps: one noisy histogram of residuals for each feature and epoch.

A step asks the curator for the sums of clipped residuals in all bins of a feature, for log loss for
those of their curvature too. The rest is post-processing of the answer. Adding what the released
functions already explain, the answer of every epoch estimates the same: the sum of the targets in
each bin. The average over the epochs is as good as one answer with the budget of all, and the
function follows from it by `smooth`, which shrinks away what may be noise. So no step size has to
suit epsilon or the number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from dprepro.ebm_plus.clipping import best_bound, likely_sizes
from dprepro.ebm_plus.losses import Loss, weighted_mean
from dprepro.ebm_plus.queries import INTERCEPT, Magnitudes, Move, Residuals, Start
from dprepro.ebm_plus.smoothing import Priors, lookup, priors, smooth
from dprepro.privacy.release import Instruction, Query, Release

INTERCEPT_WEIGHT = 0.5
"""mu^2 of the intercept's query, where that of the mean feature's is 1."""

EVEN_SHARE = 0.25
"""Share of the features' mu^2 that all get alike. The rest goes by the size of the functions."""

_AVERAGED = 4 / 3
"""Variance of an average whose weights grow evenly, where that of the plain average is 1."""

_SCALES = 3.0 ** np.arange(-4, 3)
"""Sizes that a function may have, in the unit of `Loss.scales`."""

_ASTRAY = 0.1
"""Log loss: share of the rarer label's rows that may lie anywhere between the public bounds."""

_CAUTION = 0.5
"""Standard deviations of its noise by which a count is raised before a step divides by it: a step
that is too small is made up for by later ones, and one that is too large may not be."""


class Asks(Protocol):
    """The curator, as a booster sees it."""

    def answer(self, query: Query) -> Release:
        """Answer a query."""
        ...

    def tell(self, instruction: Instruction) -> None:
        """Do what an instruction says."""
        ...


@dataclass
class Function:
    """A function on B bins while it is learned; the intercept is one with a single bin.

    Attributes
    ----------
    feature
        The number of the feature, or `INTERCEPT`.
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

    feature: int
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
        """Add to the averages an answer, and what was expected of one row in each bin.

        Both are float64 (2, B): residuals or targets, and curvatures; `deviation` is the standard
        deviation of the noise in the answer.
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
        mean = weighted_mean(self.values, self.counts)
        return weighted_mean((self.values - mean) ** 2, self.counts)


def query_shares(n_features: int, loss: Loss) -> tuple[float, float, float]:
    """Return the shares of an epoch's mu^2: all features', the intercept's, the magnitudes'.

    Gaussian queries of mu_1, mu_2, ... make one of mu^2 = mu_1^2 + mu_2^2 + ... together, whether
    they are asked at once or one after another: an epoch is one mechanism in the ledger.
    """
    total = n_features + INTERCEPT_WEIGHT + loss.sizes_weight
    return n_features / total, INTERCEPT_WEIGHT / total, loss.sizes_weight / total


class BatchBooster:
    """Learns an intercept and functions of the features from noisy sums. It never sees a row.

    Parameters
    ----------
    curator
        Answers queries, with its epochs open.
    functions
        One a feature with at least two bins, which the curator has been told.
    rows
        How many rows there are, about.
    start
        First value of the intercept.
    typical
        About what standard deviation the targets have; log loss does not need it.
    deviation
        Noise of an epoch as a whole: standard deviation of a query of sensitivity 1 that
        has all of the epoch's mu^2.
    """

    def __init__(
        self,
        curator: Asks,
        functions: list[Function],
        loss: Loss,
        *,
        rows: float,
        start: float,
        typical: float,
        deviation: float,
    ) -> None:
        self.curator = curator
        self.loss = loss
        self.rows = rows
        self.functions = functions
        self.typical = typical
        self.intercept = Function(
            INTERCEPT, np.array([rows]), np.zeros(1), np.ones(1), ordered=False
        )  # fmt: skip
        self.intercept.values[:] = start
        curator.tell(Start(start))
        self.shares = query_shares(len(functions), loss)
        self._deviation = deviation
        self.bound = 1.0
        self._mean_square = 0.25

    def learn(self, n_epochs: int) -> None:
        """Ask every query once an epoch."""
        self._epochs = n_epochs
        for number in range(n_epochs):
            self._epoch(number)

    def _epoch(self, number: int) -> None:
        if self.loss.sizes_weight:
            self._ask_for_bound()
        else:
            self.bound = self._largest_residual()
        shares = [self.shares[1], *self._feature_shares()]
        for function, share in zip([self.intercept, *self.functions], shares, strict=True):
            self._step(function, share, number)

    def _feature_shares(self) -> list[float]:
        """Return each feature's share of the epoch's mu^2: a part alike, the rest by size.

        The size is the root mean square a posteriori of what has been released, so that the shares
        are fixed before the epoch asks anything: they add up to the same in every epoch.
        """
        sizes = np.array(
            [
                math.sqrt(f.spread() + weighted_mean(f.deviations**2, f.counts))
                for f in self.functions
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

    def _ask_for_bound(self) -> None:
        """Choose where to clip from a noisy histogram of |residual|; estimate its mean square."""
        release = self.curator.answer(Magnitudes(1.0, self.shares[2]))
        sizes, square = likely_sizes(release.value, release.scale, self.rows, self.typical)
        queries = len(self.functions)
        step = self._deviation * math.sqrt(queries / self.shares[0]) if queries else 0.0
        whole = step * math.sqrt(queries * _AVERAGED / self._epochs)
        self.bound = best_bound(sizes, whole)
        self._mean_square = min(max(square, self.bound**2 / 30), self.bound**2)

    # --- steps ----------------------------------------------------------------------------------

    def _step(self, function: Function, share: float, number: int) -> None:
        """Ask for a function's residuals, and set it to what all answers so far say."""
        table = self._table(function)
        now = lookup(table, function.values)
        release = self._ask(function, share)
        # Later epochs count more: the other functions are closer to what they will be.
        function.remember(_two(release.value), now, (number + 1) * share, release.scale)
        totals, variances, counts = self._evidence(function, now)
        values, spreads = smooth(
            totals, variances, counts, table, self._priors(function), function.values
        )
        function.deviations = np.sqrt(np.maximum(spreads, 0.0))
        if function is not self.intercept:
            inferred = values - weighted_mean(values, function.counts)
            stride = self.loss.stride if number > 0 else 1.0
            values = function.values + stride * (inferred - function.values)
        self.curator.tell(Move(function.feature, function.move(values)))

    def _ask(self, function: Function, share: float) -> Release:
        """Return noisy sums, float64 (answers, B)."""
        bound = self.bound
        if function is self.intercept:
            bound = self.loss.intercept_bound(bound, self.typical)
        charged = self.loss.part_norm(bound)
        return self.curator.answer(Residuals(charged, share, function.feature, bound, self.loss))

    def _evidence(
        self, function: Function, now: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what the targets of each bin add up to, its variance, and rows, float64 (B,).

        `now` is what is expected of one row, see `lookup`.
        """
        (residuals, curvatures, expected, slopes), variance = function.averages()
        # A count too high makes steps too small, which later ones make up for.
        counts = function.counts + _CAUTION * function.uncertainty
        counts = self.loss.trusted_counts(counts, slopes, curvatures, math.sqrt(variance))
        totals = residuals + counts * expected
        curvature = counts * now[1]
        variances = variance + curvature * self.loss.sampling_variance(self._mean_square)
        if function is not self.intercept:
            # The level is the intercept's.
            level = self.loss.level(totals, counts * now[0], curvature, variances)
            totals = totals - curvature * level
        return totals, variances, counts

    def _table(self, function: Function) -> np.ndarray:
        intercept = 0.0 if function is self.intercept else float(self.intercept.values[0])
        others = sum(other.spread() for other in self.functions if other is not function)
        return self.loss.table(intercept, others)

    def _priors(self, function: Function) -> Priors:
        centres = np.zeros((1, function.counts.size))
        if function is self.intercept:
            return priors(np.array([self.loss.intercept_prior]), centres, ordered=False)
        scales = _SCALES * self.loss.scales(self.bound)
        if self.loss.expects_strays:
            centres = np.stack([centres[0], self._odds_of_strays(function)])
        return priors(scales, centres, ordered=function.ordered)

    def _odds_of_strays(self, function: Function) -> np.ndarray:
        """Return a second guess of the function, float64 (B,): its rows are partly strays.

        Some rows, half of them of either label, are taken to lie anywhere in the public range. In
        a bin with hardly any row both labels are then equally likely, which is far from the mean
        where one label is rare. The evidence decides between this guess and no effect. There are
        twice `_ASTRAY` as many strays as rows of the rarer label.
        """
        p = float(np.clip(expit(self.intercept.values[0]), 1e-6, 1 - 1e-6))
        astray = 2 * _ASTRAY * min(p, 1 - p) * self.rows * function.extents
        rates = (function.counts * p + astray / 2) / (function.counts + astray)
        odds = np.log(rates / (1 - rates))
        return odds - weighted_mean(odds, function.counts)


def _two(answers: np.ndarray) -> np.ndarray:
    """Return answers as float64 (2, B), with zeros for curvatures that were not asked for."""
    missing = np.zeros((2 - len(answers), answers.shape[1]))
    return np.concatenate([answers, missing])
