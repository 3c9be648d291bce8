"""Renyi accounting of Gaussian sums on Poisson samples, as papers do it: an upper bound.

The ledger does not use it: see `dprepro.privacy.accountant`, which is tighter. Methods that repeat
a paper take their noise from here.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.optimize import brentq

from dprepro.privacy.gdp import check_epsilon_delta
from dprepro.privacy.subsampling import log_moment

LARGEST_ORDER = 2000
"""Orders alpha are whole numbers from 2 to this."""

_MULTIPLIERS = (0.2, 1e5)
_PRECISION = 1e-9
"""Of the logarithm of a multiplier that is searched for."""


@lru_cache(maxsize=1024)
def renyi_epsilon(noise_multiplier: float, rate: float, steps: int, delta: float) -> float:
    """Return the epsilon that Renyi accounting states at `delta`.

    The least, over whole alpha, of T D(alpha) + log((alpha - 1) / alpha) - (log delta + log alpha)
    / (alpha - 1), where D(alpha) is the Renyi divergence of one step (Mironov, Talwar, Zhang 2019,
    section 3.3) and the rest is the conversion of Canonne, Kamath, Steinke 2020, Proposition 12.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise over the L2 norm of a row's part.
    rate, steps
        q in (0, 1]: how likely a row takes part in a step; and how many steps, T.
    """

    def stated(order: int) -> float:
        divergence = log_moment(order - 1, noise_multiplier, rate) / (order - 1)
        loose = (math.log(delta) + math.log(order)) / (order - 1)
        return steps * divergence + math.log1p(-1 / order) - loose

    # It falls and then rises: halve the range at which it stops falling.
    low, high = 2, LARGEST_ORDER
    while low < high:
        middle = (low + high) // 2
        if stated(middle + 1) < stated(middle):
            low = middle + 1
        else:
            high = middle
    return max(stated(low), 0.0)


@lru_cache(maxsize=1024)
def renyi_multiplier(epsilon: float, delta: float, *, rate: float, steps: int) -> float:
    """Return the smallest noise multiplier for which `renyi_epsilon` states at most `epsilon`.

    Raises
    ------
    ValueError
        On parameters out of range, or if no multiplier from 0.2 to 100,000 meets epsilon.
    """
    check_epsilon_delta(epsilon, delta)
    if not (0 < rate <= 1 and steps >= 1):
        raise ValueError(f"rate must lie in (0, 1] and steps be 1 or more, got {rate} and {steps}")

    def excess(log_multiplier: float) -> float:
        return renyi_epsilon(math.exp(log_multiplier), rate, steps, delta) - epsilon

    low, high = map(math.log, _MULTIPLIERS)
    if excess(high) > 0:
        raise ValueError(
            f"no noise multiplier up to {math.exp(high):g} meets epsilon {epsilon:g} over {steps} "
            f"steps at delta {delta:g} by Renyi accounting; ask for a larger epsilon"
        )
    if excess(low) <= 0:
        return math.exp(low)
    log_multiplier = float(brentq(excess, low, high, xtol=_PRECISION)) + _PRECISION
    while excess(log_multiplier) > 0:  # a small epsilon moves by more than the multiplier does
        log_multiplier += _PRECISION
    return math.exp(log_multiplier)
