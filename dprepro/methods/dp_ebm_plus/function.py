"""A function while it is learned: what was released of it, and the averages of all answers.

Each of K functions that move at once may make up for the same rows. Then all of them together go up
to K times too far, and the next epoch's functions further still. Sums of residuals say how far they
went: the sum over rows of a row's residual times the change of its score is the slope of the log
likelihood along that change. If it was D0 before the change and is D1 after it, the best change
would have been D0 / (D0 - D1) of it (the secant method).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dprepro.data.domain import Feature, NumericFeature
from dprepro.methods.dp_ebm_plus.grid import cell_extents, sum_deviations
from dprepro.methods.dp_ebm_plus.kernel import LARGEST, from_units, to_units
from dprepro.methods.dp_ebm_plus.losses import weighted_mean
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT
from dprepro.methods.dp_ebm_plus.smoothing import NO_NOISE
from dprepro.methods.dp_ebm_plus.strategy import AutoregressiveStrategy

_FASTEST, _SLOWEST = 1.5, 0.3
"""By what the pace may rise or fall from one epoch to the next."""

_LEAST = 0.5
"""The pace is at least this over K: K equal functions do not go too far then."""

_DOUBT, _MOST = 0.75, 0.8
"""So many standard deviations of its noise may a bin's count be too large: with a whole one, bands
were up to a half too wide in root mean square. And the largest relative error that is believed."""


class Answer(NamedTuple):
    """What an answer says of one function.

    Attributes
    ----------
    sums : float64 (B,)
        Sums of residuals, with noise; for a pair (2, B), see `PairResiduals`; for a code with a mix
        its numbers (C,), see `Code`.
    deviation : float or float64 (B,)
        The standard deviation of the noise.
    """

    sums: np.ndarray
    deviation: float | np.ndarray


@dataclass
class Function:
    """A function on B bins while it is learned; the intercept is one with a single bin.

    Attributes
    ----------
    feature
        The number of the feature, or `INTERCEPT`.
    counts, uncertainty : float64 (B,)
        Noisy number of rows in each bin, positive, and the standard deviation of its noise.
    noisy : float64 (B,)
        The number as it was released; `counts` may be made likelier.
    extents : float64 (B,)
        Each bin's share of the public range: its width over that of the bounds, or its categories
        over all categories.
    ordered
        Whether bins next to each other are next to each other in value.
    values, deviations : float64 (B,)
        The function as it stands, in whole numbers of `kernel.UNIT`, and its standard deviation a
        posteriori. The mean over the rows is zero, except for the intercept.
    band : float64 (B,)
        The standard deviation that bands show, set at the end: see
        `dprepro.methods.dp_ebm_plus.function`.
    decay
        If neighbouring bins share the numbers that are asked for, how; see
        `AutoregressiveStrategy`.
    """

    feature: int
    counts: np.ndarray
    uncertainty: np.ndarray
    extents: np.ndarray
    ordered: bool
    decay: AutoregressiveStrategy | None = None

    def __post_init__(self) -> None:
        self.values, self.deviations, self.band = np.zeros((3, self.counts.size))
        self.noisy = self.counts
        self._spread: float | None = None
        self._answers = np.zeros((2, self.counts.size))
        self._weight = 0.0
        self._variance: float | np.ndarray = 0.0

    @classmethod
    def constant(cls, rows: float) -> Function:
        """Return an intercept: a function of 0 with a single bin, which holds all rows."""
        return cls(INTERCEPT, np.array([rows]), np.zeros(1), np.ones(1), ordered=False)

    @classmethod
    def over_bins(
        cls, k: int, feature: Feature, counts: np.ndarray, bin_of_cell: np.ndarray, noise: float
    ) -> Function:
        """Return a function of zeros over merged bins.

        Parameters
        ----------
        k
            The number of the feature.
        feature, counts, bin_of_cell
            The feature; the rows of its bins, and each cell's bin, as `merge_fine` returns them.
        noise
            As `agreeing_counts` returns it.
        """
        uncertainty = sum_deviations(feature, bin_of_cell, counts.size, noise)
        extents = np.bincount(bin_of_cell, cell_extents(feature), counts.size)
        ordered = isinstance(feature, NumericFeature)
        return cls(k, counts, uncertainty, extents, ordered=ordered)

    def remember(self, answer: Answer, expected: np.ndarray, weight: float) -> None:
        """Add an answer to the weighted averages, and what was expected of a row when it was asked.

        Parameters
        ----------
        answer
            Sums per bin of residuals, or numbers that these follow from by the `decay`.
        expected : float64 (B,)
            The target expected of a row in each bin: see `lookup`.
        weight
            What the answer counts in the averages, relative to the others.
        """
        self._weight += weight
        self._variance = self._variance + (weight * answer.deviation) ** 2
        sums = answer.sums if self.decay is None else self.decay.sums(answer.sums)
        self._answers += weight * np.stack([sums, expected])

    @property
    def has_answers(self) -> bool:
        """Whether there are `averages`."""
        return self._weight > 0

    def averages(self) -> tuple[np.ndarray, float | np.ndarray]:
        """Return the averages of all answers so far, and the variance of the noise in them.

        The averages are float64 (2, B): sums of residuals, and expected targets. Only the first
        have noise.
        """
        variance = self._variance / self._weight**2
        if self.decay is not None:
            variance = (self.noise() ** 2).sum(axis=0)
        return self._answers / self._weight, variance

    def noise(self) -> np.ndarray:
        """Return the noise in the averages that neighbours share, for `smooth`; see there."""
        if self.decay is None:
            return NO_NOISE
        return self.decay.noise(self._variance / self._weight**2 + np.zeros(self.counts.size))

    def move(self, values: np.ndarray) -> np.ndarray:
        """Round values, float64 (B,), and set them; return their change in units, int32 (B,)."""
        before, after = to_units(self.values), to_units(values)
        self.values, self._spread = from_units(after), None
        return np.clip(after - before, -LARGEST, LARGEST)

    def change_to(self, other: Function) -> np.ndarray:
        """Return what takes rows from this function's values to another's, in units, int32 (B,)."""
        return np.clip(to_units(other.values) - to_units(self.values), -LARGEST, LARGEST)

    def spread(self) -> float:
        """Return the variance of the function's values over the rows, found anew after a move."""
        if self._spread is None:
            mean = weighted_mean(self.values, self.counts)
            self._spread = weighted_mean((self.values - mean) ** 2, self.counts)
        return self._spread


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


def deviations(function: Function, mean_square: float) -> np.ndarray:
    r"""Return the posterior standard deviation of a regression's function, float64 (B,).

    `Function.deviations` takes a bin's released count n' for its number n of rows. What a bin's
    answers add up to is t = n (mu - a) + n' a, mu being the mean target of its rows and a what the
    function was, on average, when it was asked. So t / n' = a + (n / n') (mu - a): where n' is
    larger than n, the value stays too close to a. With e = (n' - n) / n',

        mu - t / n' = e / (1 - e) (t / n' - a),

    whose mean square is that of e / (1 - e) times (f - a)^2 + s^2, for a posterior mean f and
    variance s^2 of t / n'. For e `_DOUBT` standard deviations of the noise in n', over n', are
    taken, at most `_MOST`. A value follows from the bin's neighbours, too, whose errors are
    independent, so the mean square counts in part: s over the deviation of the bin's own t / n'.

    Parameters
    ----------
    function
        After the last epoch.
    mean_square
        Of residuals.
    """
    (_, asked_at), noise = function.averages()
    own = (function.counts * mean_square + noise) / function.counts**2
    part = np.minimum(function.deviations / np.sqrt(own), 1.0)
    error = np.minimum(_DOUBT * function.uncertainty / function.counts, _MOST)
    square = (function.values - asked_at) ** 2 + function.deviations**2
    return np.sqrt(function.deviations**2 + part * (error / (1 - error)) ** 2 * square)
