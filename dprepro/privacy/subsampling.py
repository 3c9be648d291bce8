"""Gaussian answers on Poisson samples of the rows: what they spend, and the noise they need.

At each of T steps every row joins the sample independently with probability q (the rate), and a sum
with one row's share bounded by C gets noise N(0, (sigma C)^2); sigma is the noise multiplier.

`renyi_epsilon` and `renyi_multiplier` account for such sums as papers do it, by an upper bound. A
ledger does not use them, as its accountant is tighter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from dprepro.privacy.gdp import check_epsilon_delta, epsilon_of

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_MOMENTS = (*range(1, 65), *(2**k for k in range(7, 14)))
_SIGMA_RANGE = (0.2, 1e4)
_BRACKET = 0.1
GRAIN = 1e-4
"""Width of the cells into which `dp_accounting` sorts privacy losses, at ample noise."""


LITTLE_NOISE = 0.1
"""Below this multiplier sums leave the sampling out: an upper bound, astronomical in any case."""


def loss_grain(noise_multiplier: float) -> float:
    """Return the width of cells to sort the losses of a sampled answer into.

    Losses of a sampled answer reach 1/sigma^2 and more: at a fixed width, little noise would
    exhaust the memory. Cells only ever round up.
    """
    return GRAIN * max(1.0, 1 / noise_multiplier**2)


# The ledger asks for a loss that the search for the noise made among its last ones.
@lru_cache(maxsize=4)
def sampled_loss(
    noise_multiplier: float, rate: float, grain: float, exchanged: bool
) -> PrivacyLossDistribution:
    """Return the privacy loss of one answer on a sample of the rows.

    Parameters
    ----------
    grain
        Width of the cells that the losses are sorted into.
    exchanged
        Whether neighbours exchange a row for another; else one has a row more.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(
        noise_multiplier,
        sampling_prob=rate,
        value_discretization_interval=grain,
        neighboring_relation=(
            NeighboringRelation.REPLACE_ONE if exchanged else NeighboringRelation.ADD_OR_REMOVE_ONE
        ),
    )


# The search for the noise comes back to the same multipliers.
@lru_cache(maxsize=1024)
def pld_epsilon(noise_multiplier: float, rate: float, steps: int, delta: float) -> float:
    """Return the epsilon spent at `delta`, by `dp_accounting`'s privacy loss distributions.

    Tight up to the grain, from above, under add/remove-one and zero-out.
    """
    if noise_multiplier < LITTLE_NOISE:
        return epsilon_of(math.sqrt(steps) / noise_multiplier, delta)
    loss = sampled_loss(noise_multiplier, rate, loss_grain(noise_multiplier), False)
    return float(loss.self_compose(steps).get_epsilon_for_delta(delta))


@lru_cache(maxsize=1024)  # each fit of a case or a grid states the same
def moments_epsilon(noise_multiplier: float, rate: float, steps: int, delta: float) -> float:
    """Return the epsilon that the moments accountant of Abadi et al. 2016 states at `delta`.

    min over some integers lambda of (T alpha(lambda) + log(1/delta)) / lambda, where
    exp(alpha(lambda)) = E_{z ~ N(0,1)} [(1 - q + q N(z; 1)/N(z; 0))^(lambda + 1)], which binomial
    expansion turns into a sum (their Theorem 2 and section 3.2). An upper bound that is not tight.
    """
    return min(
        (steps * log_moment(moment, noise_multiplier, rate) + math.log(1 / delta)) / moment
        for moment in _MOMENTS
    )


def log_moment(moment: int, sigma: float, rate: float) -> float:
    """Return alpha(lambda), see `moments_epsilon`, for lambda = `moment`, 1 or more.

    Over lambda it is the Renyi divergence of order lambda + 1 of one step.
    """
    order = moment + 1
    k = np.arange(order + 1)
    if rate == 1:
        return moment * order / (2 * sigma**2)
    log_binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    log_weight = log_binomial + k * math.log(rate) + (order - k) * math.log1p(-rate)
    return float(logsumexp(log_weight + k * (k - 1) / (2 * sigma**2)))


def poisson_sample(generator: np.random.Generator, rows: int, rate: float) -> np.ndarray:
    """Return the numbers of sampled rows, sorted, int64 (m,): each independently, maybe none.

    A binomial size and then a uniform subset of that size are the same in distribution.
    """
    batch = generator.choice(rows, generator.binomial(rows, rate), replace=False, shuffle=False)
    batch.sort()
    return batch


ACCOUNTANTS: dict[str, Callable[[float, float, int, float], float]] = {
    "pld": pld_epsilon,
    "moments": moments_epsilon,
}


@lru_cache(maxsize=1024)
def sampled_sigma(
    accountant: str, epsilon: float, delta: float, *, rate: float, steps: int
) -> float:
    """Return the smallest noise multiplier for which the accountant states at most `epsilon`.

    Raises ValueError on an unknown accountant, parameters out of range, or an epsilon that no
    multiplier between 0.2 and 10,000 meets.

    Parameters
    ----------
    accountant
        A key of `ACCOUNTANTS`.
    rate, steps
        q in (0, 1] and T.
    """
    check_epsilon_delta(epsilon, delta)
    if accountant not in ACCOUNTANTS:
        allowed = ", ".join(map(repr, ACCOUNTANTS))
        raise ValueError(f"accountant must be one of {allowed}, got {accountant!r}")
    if not (0 < rate <= 1 and steps >= 1):
        raise ValueError(f"rate must lie in (0, 1] and steps be 1 or more, got {rate} and {steps}")
    stated = ACCOUNTANTS[accountant]

    def excess(log_sigma: float) -> float:
        return stated(math.exp(log_sigma), rate, steps, delta) - epsilon

    low, high = _bracket(accountant, epsilon, delta, rate, steps)
    if excess(low) <= 0:
        return math.exp(low)
    root = float(brentq(excess, low, high, xtol=1e-4))
    while excess(root) > 0:  # on the root's other side, within the search's tolerance
        root += 1e-5
    return math.exp(root)


def _bracket(
    accountant: str, epsilon: float, delta: float, rate: float, steps: int
) -> tuple[float, float]:
    """Return logs of a noise multiplier below the one looked for, if there is, and of one above.

    The moments accountant never states less than the tight one, and is quick where that is slow:
    at little noise. So it gives the upper end, and the lower end is approached from there.
    """
    low, high = map(math.log, _SIGMA_RANGE)

    def states_too_much(name: str, log_sigma: float) -> bool:
        return ACCOUNTANTS[name](math.exp(log_sigma), rate, steps, delta) > epsilon

    if states_too_much(accountant, high):
        raise ValueError(
            f"no noise multiplier up to {math.exp(high):g} meets epsilon {epsilon:g} over {steps} "
            f"steps at delta {delta:g} by the {accountant!r} accountant; ask for a larger epsilon"
        )
    while high - low > _BRACKET:
        middle = (low + high) / 2
        if states_too_much("moments", middle):
            low = middle
        else:
            high = middle
    if accountant == "moments":
        return low, high
    while not states_too_much(accountant, low) and low > math.log(_SIGMA_RANGE[0]):
        low, high = max(low - 2 * _BRACKET, math.log(_SIGMA_RANGE[0])), low
    return low, high


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

    Raises ValueError on parameters out of range, or if no multiplier from 0.2 to 100,000 meets
    epsilon.
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
