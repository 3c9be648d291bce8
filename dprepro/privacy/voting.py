"""How many noisy votes a budget pays for, where a row has one vote in each ballot."""

from __future__ import annotations

import math

from dprepro.privacy.rounds import rho_of


def affordable_votes(rate: float, epsilon: float, delta: float) -> int:
    """Return how many ballots with Laplace(1 / rate) on the counts of both classes may be held.

    A row that changes moves each of the two counts by at most 1, so a ballot is two Laplace
    releases of `rate` each: 2 rate in pure epsilon, and rate^2 in rho of zero-concentrated privacy
    (a release of epsilon_0 is epsilon_0^2 / 2-zCDP: Bun, Steinke 2016, Proposition 1.4). Of
    adding epsilons up and adding rho up, what allows more counts.
    """
    pure = epsilon / (2 * rate)
    concentrated = rho_of(epsilon, delta) / rate**2 if delta > 0 else 0.0
    return math.floor(max(pure, concentrated) * (1 + 1e-12))
