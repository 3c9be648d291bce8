"""Ceilings of pairs whose outcomes have known probabilities.

No distinguisher shows more than the worst ratio of what either world releases: with delta, the
smallest epsilon for which the two distributions are (epsilon, delta)-close. Under zCDP the share of
wrong guesses says how much is shown, and the best guesses are wrong as seldom as can be. A ceiling
beyond 60 is given as infinite.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from scipy.optimize import brentq

_LARGEST_EPSILON = 60.0


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
