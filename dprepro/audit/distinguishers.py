"""What a ledger claims, the rules that tell two worlds apart, and the most that these could show.

A claim is GDP, zCDP or (epsilon, delta). Of pairs whose outcomes have known probabilities the
ceiling is known: no distinguisher shows more than the worst ratio of what either world releases;
with delta, the smallest epsilon for which the two distributions are (epsilon, delta)-close. Under
zCDP the share of wrong guesses says how much is shown, and the best guesses are wrong as seldom as
can be. A ceiling beyond 60 is given as infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import permutations
from typing import Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from dprepro.privacy.composition import rho_of, zcdp_epsilon
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger, slack
from dprepro.privacy.lower_bounds import (
    FORMS,
    Form,
    Guesses,
    epsilon_lower_bound,
    mu_lower_bound,
    rho_lower_bound,
)

Bound = Callable[[Guesses, Form], np.ndarray]
"""The lower bound that guesses prove, in either form."""


class Claim(str, Enum):
    """What holds of all answers together, if the ledger is right. Members equal their wording.

    A claim for all deltas at once allows less than one at a single delta. So the same guesses
    refute more of it.
    """

    GDP = "GDP"
    ZCDP = "zCDP"
    PLAIN = "(epsilon, delta)"

    def bound(self, delta: float, confidence: float) -> Bound:
        """Return the bound on mu, on rho, or on epsilon at `delta`."""

        def found(guesses: Guesses, form: Form) -> np.ndarray:
            if self is Claim.GDP:
                return mu_lower_bound(guesses, form, confidence)
            if self is Claim.ZCDP:
                return rho_lower_bound(guesses, form, confidence)
            return epsilon_lower_bound(guesses, delta, form, confidence)

        return found

    def epsilon(self, found: float, delta: float) -> float:
        """Return the epsilon of such a bound at `delta`."""
        if self is Claim.GDP:
            return epsilon_of(found, delta)
        if self is Claim.ZCDP:
            return zcdp_epsilon(found, delta) if found > 0 else 0.0
        return found

    def least_error(self, epsilon: float, delta: float) -> float:
        """Return the share of wrong guesses of the best distinguisher, if epsilon is spent.

        Under zCDP that of Gaussian noise.

        Raises ValueError on an epsilon that is too small for any noise.
        """
        if self is Claim.PLAIN:
            return float(expit(-epsilon))
        is_gaussian = self is Claim.GDP
        mu = mu_of(epsilon, delta) if is_gaussian else math.sqrt(2 * rho_of(epsilon, delta))
        return float(ndtr(-mu / 2))


def claim_of(ledger: Ledger) -> Claim:
    """Return the strongest claim that the ledger's entries make for the stated epsilon."""
    if all(entry.mechanism == "gaussian" and entry.sampling >= 1 for entry in ledger.entries):
        return Claim.GDP
    if ledger.delta > 0 and concentrated_epsilon(ledger) <= ledger.epsilon + slack(ledger.epsilon):
        return Claim.ZCDP
    return Claim.PLAIN


def spent_under(claim: Claim, ledger: Ledger) -> float:
    """Return what the ledger adds up to; under zCDP by zCDP, which says more than other sums."""
    return concentrated_epsilon(ledger) if claim is Claim.ZCDP else ledger.spent_epsilon()


def concentrated_epsilon(ledger: Ledger) -> float:
    """Return the epsilon of all entries by zCDP at the stated delta; infinite where none is."""
    entries = [entry.for_group(ledger.rows_per_unit) for entry in ledger.entries]
    rho = sum(entry.rho * entry.uses for entry in entries)
    return zcdp_epsilon(rho, ledger.delta) if 0 < rho < math.inf else math.inf


# --- the most that could be shown -----------------------------------------------------------------

_LARGEST_EPSILON = 60.0


@dataclass(frozen=True)
class Ceiling:
    """The largest epsilon that a distinguisher could show, at the ledger's delta.

    Attributes
    ----------
    epsilon
        The figure.
    basis
        In words, what it follows from, and so of which distinguishers it holds.
    """

    epsilon: float
    basis: str


def largest_epsilon(present: np.ndarray, absent: np.ndarray, delta: float) -> float:
    """Return the least epsilon for which two distributions over the same outcomes are close.

    That is sum_o max(0, P(o) - e^epsilon Q(o)) <= delta both ways; infinite without a delta if an
    outcome is possible in one world alone.

    Parameters
    ----------
    present, absent : float64 (outcomes,)
        Probabilities in either world.
    """

    def excess(epsilon: float) -> float:
        factor = math.exp(epsilon)
        one = np.maximum(present - factor * absent, 0).sum()
        other = np.maximum(absent - factor * present, 0).sum()
        return float(max(one, other)) - delta

    if excess(0.0) <= 0:
        return 0.0
    if delta == 0:
        possible = (present > 0) | (absent > 0)
        with np.errstate(divide="ignore"):
            ratios = np.log(present[possible]) - np.log(absent[possible])
        return float(np.abs(ratios).max())
    if excess(_LARGEST_EPSILON) > 0:
        return math.inf
    return float(brentq(excess, 0.0, _LARGEST_EPSILON, xtol=1e-9))


def two_outcomes(present: float, absent: float, delta: float) -> float:
    """Return `largest_epsilon` where something happens with these probabilities, or does not."""
    return largest_epsilon(
        np.array([present, 1 - present]), np.array([absent, 1 - absent]), delta
    )  # fmt: skip


def largest_rho(present: np.ndarray, absent: np.ndarray) -> float:
    """Return the most that `rho_lower_bound` could show of two distributions.

    Guesses are wrong in a share e = (1 - TV) / 2 of runs at least, and show kl(1 - e || e).
    """
    distance = float(np.abs(present - absent).sum()) / 2
    if distance >= 1:
        return math.inf
    return distance * math.log((1 + distance) / (1 - distance))


def laplace_lead(lead: float, scale: float) -> float:
    """Return how likely the smaller of two values is the larger one with Laplace noise on both.

    L1 - L2 > lead with probability e^-z (1/2 + z/4), z = lead / scale >= 0.
    """
    z = lead / scale
    return math.exp(-z) * (0.5 + z / 4)


def exponential_choice(utilities: np.ndarray, scale: float) -> np.ndarray:
    """Return the probabilities of the exponential mechanism, exp(utility / scale) each."""
    weights = np.exp((utilities - utilities.max()) / scale)
    return np.asarray(weights / weights.sum())


def permute_and_flip(utilities: np.ndarray, scale: float) -> np.ndarray:
    """Return the probabilities of permute-and-flip (McKenna, Sheldon 2020), of few candidates.

    In random order, each candidate is taken with probability exp((utility - best) / scale).
    """
    accepted = np.exp((utilities - utilities.max()) / scale)
    chances = np.zeros(utilities.size)
    orders = list(permutations(range(utilities.size)))
    for order in orders:
        left = 1.0
        for candidate in order:
            chances[candidate] += left * accepted[candidate]
            left *= 1 - accepted[candidate]
    return chances / len(orders)


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

    @property
    def form(self) -> Form:
        """See the class."""

    def scores(self, outputs: np.ndarray) -> np.ndarray:
        """Return the score of each output, float64 (N,), given float64 (N, d)."""


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
