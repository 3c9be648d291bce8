"""Boosting in few, large steps: one noisy histogram of residuals for each feature and epoch.

A step asks for the sums of clipped residuals in all bins of a feature and adds noise that it is
given. The rest is post-processing: the sums over the curvature are a Newton step, which is averaged
with what earlier epochs saw and smoothed by its known noise. Any step size is thus right for any
epsilon and number of rows: what cannot be told from noise is shrunk away, and an average of many
noisy looks is as good as one look with the budget of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dprepro.ebm.histogram_kernel import magnitude_counts, residual_sums
from dprepro.ebm.smoothing import smooth

MAGNITUDES = 20
"""Cells for |residual|: half octaves of the target's range, down to a thousandth."""

INTERCEPT_WEIGHT = 0.5
MAGNITUDE_WEIGHT = 0.2
"""mu^2 of these two queries of an epoch, where that of a feature's histogram is 1."""

_CLIP_NOISE = 16.0
_CLIP_BIAS = 0.25
"""Regression, for `_best_bound`: squares of the bins a feature, and of how uneven residuals are."""

_AVERAGED = 4 / 3
"""Variance of an average whose weights grow evenly, where that of the plain average is 1."""

_SCALES = 2.0 ** np.arange(-8, 4)
"""Sizes that a function may have: log odds, or twice the bound of the residuals."""

_PRIOR = {True: 3.0, False: 0.25}
"""Standard deviation a priori of the intercept: log odds (logistic), or the target's range."""

_LEAST_CURVATURE = 2e-4
"""Logistic: of p (1 - p), so that steps stay finite."""

_LARGEST_STEP = 2.0
"""Logistic: log odds that a step may move a bin beyond what noise does. Newton overshoots."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass
class Function:
    """A function on B bins while it is learned; the intercept is one with a single bin.

    Attributes
    ----------
    codes : uint8 (n,)
        Each row's bin: private.
    counts, uncertainty : float64 (B,)
        Noisy rows a bin, positive, and the standard deviation of the noise in them.
    ordered
        Whether neighbouring bins are neighbours in value.
    values, deviations : float64 (B,)
        f as it stands, mean zero under `counts`, and its standard deviation a posteriori.
    seen, noise : float64 (B,)
        Average of what the steps so far saw, and the variance of the privacy noise in it.
    variance
        Of the function's values over the rows.
    """

    codes: np.ndarray
    counts: np.ndarray
    uncertainty: np.ndarray
    ordered: bool

    def __post_init__(self) -> None:
        self.values, self.seen, self.noise, self.deviations = np.zeros((4, self.counts.size))
        self.variance = 0.0

    def move(self, values: np.ndarray) -> np.ndarray:
        """Set the values and return their change, float32 (B,)."""
        change = (values - self.values).astype(np.float32)
        self.values = values
        mean = _average(values, self.counts)
        self.variance = _average((values - mean) ** 2, self.counts)
        return change


def _average(values: np.ndarray, weights: np.ndarray) -> float:
    """Do what ``np.average`` does, in a tenth of its time on a few dozen values."""
    return float((values * weights).sum() / weights.sum())


def query_shares(n_features: int, *, logistic: bool) -> tuple[float, float, float]:
    """Return the shares of an epoch's mu^2: a feature's, the intercept's, the magnitudes'.

    Gaussian queries of mu_1, mu_2, ... make one of mu^2 = mu_1^2 + mu_2^2 + ... together, whether
    they are asked at once or one after another: an epoch is one mechanism in the ledger.
    """
    magnitude = 0.0 if logistic else MAGNITUDE_WEIGHT
    total = n_features + INTERCEPT_WEIGHT + magnitude
    return 1 / total, INTERCEPT_WEIGHT / total, magnitude / total


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
        deviation: float,
        logistic: bool,
    ) -> None:
        self.logistic = logistic
        self.rows = rows
        self.functions = functions
        self.targets = targets
        self.intercept = Function(
            np.zeros(targets.size, np.uint8), np.array([rows]), np.zeros(1), ordered=False
        )
        self.intercept.values[:] = start
        shares = query_shares(len(functions), logistic=logistic)
        self._feature_noise, self._intercept_noise, self._magnitude_noise = (
            deviation / math.sqrt(share) if share > 0 else math.inf for share in shares
        )
        self._deviation = deviation
        self._scores = np.full(targets.size, start, dtype=np.float32)
        self._pending = (self.intercept.codes, np.zeros(1, np.float32))
        self.bound = 1.0
        self._spread = 0.25

    def noise_size(self) -> int:
        """Return how many numbers of noise an epoch takes."""
        bins = sum(function.counts.size for function in self.functions)
        return 1 + bins + (0 if self.logistic else MAGNITUDES)

    def learn(self, noise: np.ndarray) -> None:
        """Ask every query once an epoch; `noise` is float64 (epochs, `noise_size`)."""
        self._epochs = len(noise)
        for number in range(self._epochs):
            self._epoch(number, noise[number])

    def _epoch(self, number: int, noise: np.ndarray) -> None:
        weight = 2.0 / (number + 2.0)
        own, noise = noise[:1], noise[1:]
        if self.logistic:
            self.bound = self._largest_residual()
        else:
            self._set_bound(noise[:MAGNITUDES])
            noise = noise[MAGNITUDES:]
        self._step_intercept(weight, own)
        ends = np.cumsum([function.counts.size for function in self.functions])[:-1]
        for function, added in zip(self.functions, np.split(noise, ends), strict=True):
            self._step(function, weight, added)

    # --- bounds ---------------------------------------------------------------------------------

    def _largest_residual(self) -> float:
        """Return the bound of |y - sigmoid(F)| that the released functions set to every row."""
        start = float(self.intercept.values[0])
        highest = start + sum(function.values.max() for function in self.functions)
        lowest = start + sum(function.values.min() for function in self.functions)
        return float(expit(max(highest, -lowest)))

    def _set_bound(self, noise: np.ndarray) -> None:
        """Choose where to clip from a noisy histogram of |residual|; estimate its mean square."""
        scale = self._magnitude_noise / self._deviation
        exact = magnitude_counts(self._scores, self.targets, *self._pending, MAGNITUDES)
        self._pending = (self._pending[0], np.zeros_like(self._pending[1]))
        noisy = exact + scale * noise
        edges = 2.0 ** (-np.arange(1, MAGNITUDES + 1) / 2)
        self.bound = self._best_bound(noisy, edges)
        middles = np.minimum(edges * 2**0.25, self.bound)
        sure = np.where(noisy > 2 * self._magnitude_noise, noisy, 0.0)
        least = self.bound**2 / 30
        self._spread = (
            max(float(sure @ middles**2 / sure.sum()), least) if sure.any() else self.bound**2 / 8
        )

    def _best_bound(self, noisy: np.ndarray, edges: np.ndarray) -> float:
        """Return the edge at which noise and what clipping takes away are least together.

        Clipping at c moves a mean of residuals by at most E(|r| - c)+, and by less the more even
        the two sides are. The noise in all features' means is c times that of a query, averaged
        over the epochs, times the bins over the rows.
        """
        above = np.clip(edges[:, None] * 2**0.25 - edges, 0.0, None)
        bias = np.maximum(noisy @ above, 0.0) / self.rows
        one = self._feature_noise**2 * _AVERAGED / self._epochs
        noise = _CLIP_NOISE * len(self.functions) * one / self.rows**2
        return min(0.5, float(edges[np.argmin(_CLIP_BIAS * bias**2 + noise * edges**2)]))

    # --- steps ----------------------------------------------------------------------------------

    def _sums(self, function: Function) -> np.ndarray:
        bound = np.float32(self.bound)
        if float(bound) > self.bound:
            bound = np.nextafter(bound, np.float32(0))
        sums = residual_sums(
            self._scores, self.targets, *self._pending, function.codes, function.counts.size,
            bound, self.logistic,
        )  # fmt: skip
        return np.asarray(sums)

    def _move(self, function: Function, values: np.ndarray) -> None:
        self._pending = (function.codes, function.move(values))

    def _step_intercept(self, weight: float, noise: np.ndarray) -> None:
        own, scale = self.intercept, self.bound * self._intercept_noise
        sums = self._sums(own) + scale / self._deviation * noise
        curvature = self._curvature(own)
        change = np.clip(sums / curvature, -1.0, 1.0)
        _remember(own, own.values + change, (scale / curvature) ** 2, weight)
        prior = _PRIOR[self.logistic] ** 2
        self._move(own, own.seen * prior / (prior + own.noise))

    def _step(self, function: Function, weight: float, noise: np.ndarray) -> None:
        """See a feature's residuals, and take what is left of them after smoothing."""
        scale = self.bound * self._feature_noise
        sums = self._sums(function) + scale / self._deviation * noise
        curvature = self._curvature(function)
        sampling = (1.0 if self.logistic else self._spread) / curvature
        added = (scale / curvature) ** 2
        change = sums / curvature
        if self.logistic:
            largest = _LARGEST_STEP + 2 * np.sqrt(added + sampling)
            change = np.clip(change, -largest, largest)
        # The level is the intercept's.
        change -= _average(change, curvature)
        _remember(function, function.values + change, added, weight)
        variances = function.noise + sampling
        centred = function.seen - _average(function.seen, 1 / variances)
        scales = _SCALES * (1.0 if self.logistic else 2 * self.bound)
        values, spreads = smooth(centred, variances, scales, ordered=function.ordered)
        function.deviations = np.sqrt(np.maximum(spreads, 0.0))
        self._move(function, values - _average(values, function.counts))

    def _curvature(self, function: Function) -> np.ndarray:
        """Return the expected second derivative of the loss by each bin's value, float64 (B,).

        Regression: the rows. Logistic: rows times the mean of p (1 - p), if the other functions'
        sum is normal with the variance that it has where features are independent. A step
        that is too small for the real curvature is followed by another; one more than twice too
        large would be outdone by the next, and so on. Hence one deviation on top of the counts.
        """
        counts = function.counts + function.uncertainty
        if not self.logistic:
            return counts
        score = self.intercept.values[0] + (0.0 if function is self.intercept else function.values)
        others = sum(f.variance for f in self.functions if f is not function)
        p = expit(np.atleast_1d(score)[:, None] + math.sqrt(others) * _NODES)
        mean = (p * (1 - p)) @ _WEIGHTS
        return np.asarray(counts * np.maximum(mean, _LEAST_CURVATURE))


def _remember(function: Function, saw: np.ndarray, added: np.ndarray, weight: float) -> None:
    """Average what this step saw with what was seen before; keep account of the noise in it."""
    function.seen = (1 - weight) * function.seen + weight * saw
    function.noise = (1 - weight) ** 2 * function.noise + weight**2 * added
