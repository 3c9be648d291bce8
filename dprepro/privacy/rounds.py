"""How much each of k adaptive pure mechanisms may spend of one budget: three compositions.

"pure" adds epsilons up; "advanced" is the theorem of Dwork, Rothblum, Vadhan (Asadi et al. 2022,
Theorem 1); "zcdp" uses that an exponential choice has a bounded range: a choice that costs eps0 is
eps0^2 / 8-zCDP, half a Laplace release's eps0^2 / 2 squared (Cesar, Rogers 2021; Bun, Steinke
2016). Advanced composition is worse than adding up when rounds are few; what is returned is never
worse than "pure".
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

ROUND_COMPOSITIONS = ("pure", "advanced", "zcdp")


def advanced_epsilon(each: float, rounds: int, delta: float) -> float:
    """Return sqrt(2 k ln(1/delta)) eps0 + k eps0 (e^eps0 - 1), Theorem 1 with delta_i = 0."""
    return math.sqrt(2 * rounds * math.log(1 / delta)) * each + rounds * each * math.expm1(each)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP at `delta`.

    min over orders a > 1 of rho a + ln(1 / (a delta)) / (a - 1) + ln(1 - 1/a)  (Canonne, Kamath,
    Steinke 2020, Proposition 12), at least 0.
    """

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return rho * order - math.log(order * delta) / excess + math.log1p(-1 / order)

    centre = 0.5 * math.log(math.log(1 / delta) / rho)
    best = optimize.minimize_scalar(
        epsilon, bounds=(centre - 8, centre + 8), method="bounded", options={"xatol": 1e-10}
    )
    return max(0.0, float(best.fun))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho whose `zcdp_epsilon` at `delta` is `epsilon`."""
    return _largest(lambda rho: zcdp_epsilon(rho, delta), epsilon)


def choice_epsilon(composition: str, rounds: int, epsilon: float, delta: float) -> float:
    """Return what each of `rounds` exponential choices may spend, in pure epsilon.

    Raises
    ------
    ValueError
        On an unknown composition, or one that needs a delta without one in (0, 1).
    """
    check_composition(composition, delta)
    pure = epsilon / rounds
    if composition == "zcdp":
        return max(pure, math.sqrt(8 * rho_of(epsilon, delta) / rounds))
    if composition == "advanced":
        return max(pure, _largest(lambda each: advanced_epsilon(each, rounds, delta), epsilon))
    return pure


def tree_epsilons(
    composition: str, rounds: int, splits: int, label_share: float, epsilon: float, delta: float
) -> tuple[float, float]:
    """Return what each choice of a split and each tree's labels may spend, in pure epsilon.

    Each of `rounds` trees has `splits` exponential choices and one Laplace release. Pure and
    advanced composition share a tree's epsilon, "zcdp" shares rho: `label_share` for the labels.

    Raises
    ------
    ValueError
        As `choice_epsilon`.
    """
    tree = choice_epsilon("pure" if composition == "zcdp" else composition, rounds, epsilon, delta)
    added = (1 - label_share) * tree / splits, label_share * tree
    if composition != "zcdp":
        return added
    check_composition(composition, delta)
    rho = rho_of(epsilon, delta) / rounds
    concentrated = (
        math.sqrt(8 * (1 - label_share) * rho / splits),
        math.sqrt(2 * label_share * rho),
    )
    better = all(new >= old for new, old in zip(concentrated, added, strict=True))
    return concentrated if better else added


def check_composition(composition: object, delta: float) -> None:
    """Raise ValueError on an unknown composition, or a delta out of range for it."""
    if composition not in ROUND_COMPOSITIONS:
        allowed = ", ".join(map(repr, ROUND_COMPOSITIONS))
        raise ValueError(f"composition must be one of {allowed}, got {composition!r}")
    if composition != "pure" and not 0 < delta < 1:
        raise ValueError(
            f"composition {composition!r} needs a delta between 0 and 1, got {delta!r}; "
            "use composition='pure' without one"
        )


def _largest(spent: Callable[[float], float], epsilon: float) -> float:
    """Return the argument at which the increasing function `spent` reaches `epsilon`."""
    high = 1.0
    while spent(high) < epsilon:
        high *= 2
    low = high
    while spent(low) > epsilon:
        low /= 2
    if low == high:
        return high
    found = float(optimize.brentq(lambda value: spent(value) - epsilon, low, high, xtol=1e-15))
    for near in (found, found * (1 - 1e-10)):
        if spent(near) <= epsilon:
            return near
    # An absolute tolerance is coarse where the argument is small: among its logarithms it is not.
    root = optimize.brentq(
        lambda log: spent(math.exp(log)) - epsilon, math.log(low), math.log(high), xtol=1e-14
    )
    found, step = math.exp(float(root)), 1e-15
    while spent(found) > epsilon:
        found, step = found * (1 - step), 2 * step
    return found
