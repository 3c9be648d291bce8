"""Gaussian differential privacy: conversions between mu and (epsilon, delta).

A mechanism is mu-GDP if telling two neighbouring datasets apart from its output is at least as
hard as telling N(0, 1) from N(mu, 1) (Dong, Roth, Su 2019).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from dprepro.runtime.arguments import POSITIVE, Number

_MU_DIGITS = 36
_LOG_MU_RANGE = (math.log(1e-8), math.log(1e4))
_NEAR = 3e-10
"""By how much, as a part of it, an epsilon may be off: rounding alone comes to less."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def delta_of(epsilon: float, mu: float) -> float:
    """Return the smallest delta for which a mu-GDP mechanism is (epsilon, delta)-DP.

    delta = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)  (Theorem 5 of Nori et al.
    2021; it holds for every epsilon >= 0 at once, each with its own delta).
    """
    if mu <= 0:
        return 0.0
    log_first = float(log_ndtr(-epsilon / mu + mu / 2))
    log_second = epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
    # The difference is formed in logs: both terms underflow long before their ratio does.
    return math.exp(log_first) * -math.expm1(min(log_second - log_first, 0.0))


def _delta_without_loss(epsilon: float, mu: float) -> float:
    """Return what `delta_of` does, to 13 digits, where it takes one number from a near one.

    delta = E max(0, 1 - e^(epsilon - L)), L the privacy loss, N(mu^2 / 2, mu^2): with z normal from
    a = epsilon / mu - mu / 2 on, the integral of phi(a + t) (1 - e^(-mu t)) over t >= 0.
    """
    if mu > 1:
        return delta_of(epsilon, mu)
    start = epsilon / mu - mu / 2
    reach = 12 if start < 1 else min(12, 40 / start)  # what lies beyond is below e^-40
    t = (_NODES + 1) * reach / 2
    values = np.exp(-start * t - t * t / 2) * -np.expm1(-mu * t)
    scale = math.exp(-start * start / 2) / math.sqrt(2 * math.pi)
    return scale * float(values @ _WEIGHTS) * reach / 2


@lru_cache(maxsize=4096)
def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP implies (epsilon, delta)-DP.

    Rounded down to 36 binary digits, so that all machines have the same: their logarithms differ in
    the last. It spends at most a billionth of epsilon more than epsilon.

    Raises ValueError unless epsilon > 0 and 0 < delta < 1, and mu lies between 1e-8 and 1e4.
    """
    check_epsilon_delta(epsilon, delta)
    least, most = map(math.exp, _LOG_MU_RANGE)
    if delta_of(epsilon, most) < delta:
        raise ValueError(
            f"epsilon {epsilon:g} is too large for a scale of noise to be found; choose at most "
            f"{0.99 * epsilon_of(most, delta):.2g}"
        )
    if delta_of(epsilon, least) > delta:
        raise ValueError(
            f"epsilon {epsilon:g} and delta {delta:g} are too small for a scale of noise to be "
            "found; choose larger ones"
        )
    root = brentq(
        lambda log_mu: delta_of(epsilon, math.exp(log_mu)) - delta, *_LOG_MU_RANGE, xtol=1e-14
    )
    mantissa, exponent = math.frexp(math.exp(root))
    digits = math.floor(mantissa * 2.0**_MU_DIGITS)
    while True:
        mu = math.ldexp(digits, exponent - _MU_DIGITS)
        if _delta_without_loss(epsilon * (1 + _NEAR), mu) <= delta:
            return mu
        digits -= 1


@lru_cache(maxsize=4096)
def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 for which mu-GDP implies (epsilon, delta)-DP."""
    if delta_of(0.0, mu) <= delta:
        return 0.0
    upper = mu * mu / 2 + 40.0 * mu + 1.0
    found = float(brentq(lambda epsilon: delta_of(epsilon, mu) - delta, 0.0, upper, xtol=1e-12))
    low, high = found * (1 - _NEAR), found * (1 + _NEAR)
    if _delta_without_loss(high, mu) <= delta <= _delta_without_loss(low, mu):
        return found
    # An absolute tolerance is coarse where epsilon is small: among its logarithms it is not.
    low, high = max(low, 1e-300), max(high, 1e-300)
    while _delta_without_loss(low, mu) < delta and low > 1e-300:
        low /= 2
    while _delta_without_loss(high, mu) > delta:
        high *= 2
    if _delta_without_loss(low, mu) <= delta:
        return low
    root = brentq(
        lambda log_epsilon: _delta_without_loss(math.exp(log_epsilon), mu) - delta,
        math.log(low), math.log(high), xtol=1e-14,
    )  # fmt: skip
    return math.exp(float(root))


def check_epsilon_delta(epsilon: float, delta: float) -> None:
    """Raise ValueError unless epsilon is positive and finite and delta lies in (0, 1)."""
    POSITIVE("epsilon", epsilon)
    Number(0, 1, "()")("delta", delta)
