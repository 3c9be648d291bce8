"""Tell two distributions of outputs apart: a rule learnt from one half of the runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dprepro.audit.bounds import Bound
from dprepro.privacy.lower_bounds import FORMS, Form, Guesses

_THRESHOLDS = 400
# Beyond so many interquartile ranges, a coordinate counts by its logarithm: tails, and the few
# runs in which a solver diverges, must not drown the rest.
_LINEAR_RANGES = 3.0
_RIDGE = 1e-6


class Rule(Protocol):
    """Tells two worlds apart; whatever is learnt of it is learnt before it judges.

    Attributes
    ----------
    threshold
        A larger score means that the canary is guessed present.
    form
        The form of the bound that its guesses are put to, see `FORMS`.
    """

    @property
    def threshold(self) -> float:
        """See the class."""
        ...

    @property
    def form(self) -> Form:
        """See the class."""
        ...

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return the score of each output, float64 (N,), given float64 (N, d)."""
        ...


@dataclass(frozen=True)
class Threshold:
    """The rule of a case that observes a single number, which says by itself how to guess.

    Such as a log likelihood ratio, with the threshold 0: the best rule there is where noise is as
    stated. Nothing is learnt, so that every run judges.
    """

    threshold: float = 0.0
    form: Form = "accuracy"

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return the first number of each output, float64 (N,)."""
        return outputs[:, 0]


def judge(rule: Rule, outputs: np.ndarray, present: np.ndarray) -> Guesses:
    """Guess for each output, float64 (N, d), and compare with the truth, bool (N,)."""
    return _compare(rule.scores(outputs), present, np.array(rule.threshold))


@dataclass(frozen=True)
class Distinguisher:
    """Guesses "present" where a weighted sum of squashed outputs exceeds a threshold.

    Attributes
    ----------
    centre, scale, weights : float64 (d,)
        score = weights . arcsinh((output - centre) / scale).
    threshold
        See above.
    form
        The form of the bound that promised most, see `FORMS`.
    """

    centre: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    threshold: float
    form: Form

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return the score of each output, float64 (N,)."""
        return np.arcsinh((outputs - self.centre) / self.scale) @ self.weights


def learn(outputs: np.ndarray, present: np.ndarray, bound: Bound) -> Distinguisher:
    """Learn a linear rule, its threshold and the form of the bound from runs in either world.

    The direction is Fisher's discriminant, which is optimal for Gaussian outputs that differ in
    their mean. Threshold and form are those with the highest bound on these runs; applied to other
    runs they are fixed beforehand, so that the bound there holds.

    Parameters
    ----------
    outputs, present : float64 (N, d), bool (N,)
        Runs with both values of `present`.
    """
    centre, scale = _spread(outputs)
    squashed = np.arcsinh((outputs - centre) / scale)
    weights = _fisher(squashed[present], squashed[~present])
    scores = squashed @ weights
    distinct = np.unique(scores)
    middles = distinct[:-1] / 2 + distinct[1:] / 2 if distinct.size > 1 else distinct
    steps = np.linspace(0, middles.size - 1, min(_THRESHOLDS, middles.size)).round().astype(int)
    thresholds = middles[steps]
    bounds = np.array([bound(_compare(scores, present, thresholds), form) for form in FORMS])
    form, best = np.unravel_index(int(bounds.argmax()), bounds.shape)
    return Distinguisher(centre, scale, weights, float(thresholds[best]), FORMS[int(form)])


def shown_by_pairs(rule: Rule, outputs: np.ndarray, present: np.ndarray) -> float:
    """Return by how many standard deviations a rule's scores differ between worlds.

    Runs come in pairs with the same noise, first those without the canary: the mean difference then
    has next to no noise of its own. Where scores are about Gaussian, mu-GDP shows no more to them.
    """
    scores = rule.scores(outputs)
    shift = scores[present] - scores[~present]
    within = np.concatenate([scores[world] - scores[world].mean() for world in (present, ~present)])
    deviation = within.std()
    return float(abs(shift.mean()) / deviation) if deviation > 0 else 0.0


def _spread(outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return centre and scale of each coordinate; a constant one has scale 1."""
    low, centre, high = np.quantile(outputs, [0.25, 0.5, 0.75], axis=0)
    scale = _LINEAR_RANGES * (high - low)
    scale = np.where(scale > 0, scale, np.ptp(outputs, axis=0))
    return centre, np.where(scale > 0, scale, 1.0)


def _fisher(present: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """Return Sigma^-1 (mean difference), scaled to unit standard deviation within a world."""
    shift = present.mean(axis=0) - absent.mean(axis=0)
    within = np.vstack([present - present.mean(axis=0), absent - absent.mean(axis=0)])
    deviation = within.std(axis=0)
    # A coordinate without noise decides alone, if it differs at all; its deviation is rounding.
    deviation = np.maximum(deviation, 1e-9)
    correlation = (within / deviation).T @ (within / deviation) / len(within)
    weights = np.linalg.solve(
        correlation + _RIDGE * np.eye(deviation.size), shift / deviation
    ) / deviation  # fmt: skip
    length = np.abs(weights).max()
    return weights / length if length > 0 else np.ones_like(weights)


def _compare(scores: np.ndarray, present: np.ndarray, thresholds: np.ndarray) -> Guesses:
    with_canary, without = np.sort(scores[present]), np.sort(scores[~present])
    return Guesses(
        without.size - np.searchsorted(without, thresholds, side="right"),
        without.size,
        np.searchsorted(with_canary, thresholds, side="right"),
        with_canary.size,
    )
