"""How much noise, or how much epsilon, each of k adaptive queries gets of one budget.

Pure mechanisms have three compositions: "pure" adds epsilons up; "advanced" is the theorem of
Dwork, Rothblum, Vadhan (Asadi et al. 2022, Theorem 1); "zcdp" uses that an exponential choice has a
bounded range: a choice that costs eps0 is eps0^2 / 8-zCDP, half a Laplace answer's eps0^2 / 2
squared (Cesar, Rogers 2021; Bun, Steinke 2016). Advanced composition is worse than adding up when
rounds are few; what is returned is never worse than "pure".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import optimize

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import check_epsilon_delta, epsilon_of, mu_of


def classic_sigma(queries: int, epsilon: float, delta: float) -> float:
    """Return the noise per query, in units of its sensitivity, by strong composition.

    sigma^2 = 8 k log(e + epsilon/delta) / epsilon^2  (Theorem 2 of Nori et al. 2021, after
    Kairouz, Oh, Viswanath 2017). Loose at small epsilons, and too little noise at large ones: from
    about 110 at delta 1e-2, 189 at 1e-6, 248 at 1e-9; see `classic_budget`.
    """
    check_epsilon_delta(epsilon, delta)
    return math.sqrt(8 * queries * math.log(math.e + epsilon / delta)) / epsilon


def classic_budget(epsilon: float, delta: float) -> PrivacyBudget:
    """Return the (epsilon, delta) that queries with `classic_sigma` keep together.

    It is what they were calibrated to, or more where Theorem 2 does not hold: they are mu-GDP with
    mu^2 = epsilon^2 / (8 log(e + epsilon/delta)), however many they are.
    """
    mu = 1 / classic_sigma(1, epsilon, delta)
    return PrivacyBudget(max(epsilon, epsilon_of(mu, delta)), delta)


def gdp_sigma(queries: int, epsilon: float, delta: float) -> float:
    """Return the noise per query, in units of its sensitivity, by Gaussian DP.

    sigma = sqrt(k) / mu(epsilon, delta)  (Theorems 4, 5 and 7 of Nori et al. 2021). Exact.
    """
    return math.sqrt(queries) / mu_of(epsilon, delta)


def gdp_part(budget: PrivacyBudget, share: float) -> tuple[float, PrivacyBudget]:
    """Return mu, and the budget, of queries that get a share of the whole budget's mu^2.

    Parts of mu-GDP add up as mu^2 = mu_1^2 + mu_2^2 + ... (Theorem 4 of Nori et al. 2021): shares
    that add up to 1 spend the budget, exactly. The delta is that of the whole budget.
    """
    mu = mu_of(*budget) * math.sqrt(share)
    return mu, PrivacyBudget(epsilon_of(mu, budget.delta), budget.delta)


@dataclass(frozen=True)
class TwoPhaseNoise:
    """Noise of the two phases of DP-EBM in units of sensitivity, and the budget of each.

    The budget is the (epsilon, delta) that the phase by itself keeps: its part of the whole, or
    more where the theorem that calibrated it does not hold; see `classic_budget`.
    """

    binning: float
    boosting: float
    binning_budget: PrivacyBudget
    boosting_budget: PrivacyBudget


def calibrate_two_phases(
    composition: str,
    epsilon: float,
    delta: float,
    *,
    binning_queries: int,
    boosting_queries: int,
    binning_share: float,
) -> TwoPhaseNoise:
    """Split (epsilon, delta) between binning and boosting and calibrate the noise of each.

    "gdp" and "classic" split epsilon `binning_share` : 1 - `binning_share` and delta in halves
    (section 4 of Nori et al. 2021 and the authors' library); the two guarantees add up by basic
    composition. "classic-boosting" is "classic" for boosting alone: when the paper appeared, the
    library calibrated binning by "gdp" whatever was asked for. "joint" splits mu^2 in the
    proportion that "gdp" arrives at and converts the sum mu_binning^2 + mu_boosting^2 =
    mu(epsilon, delta)^2 once (Theorems 4 and 5), which is exact: the same guarantee with less noise
    in both phases.

    Raises ValueError on an unknown composition, or a share, epsilon or delta out of range.
    """
    if composition not in TWO_PHASE_COMPOSITIONS:
        allowed = ", ".join(map(repr, TWO_PHASE_COMPOSITIONS))
        raise ValueError(f"composition must be one of {allowed}, got {composition!r}")
    if not 0 < binning_share < 1:
        raise ValueError(f"binning_share must lie strictly between 0 and 1, got {binning_share!r}")
    check_epsilon_delta(epsilon, delta)
    classic_binning = composition == "classic"
    classic_boosting = composition in ("classic", "classic-boosting")
    sigma_binning = classic_sigma if classic_binning else gdp_sigma
    sigma_boosting = classic_sigma if classic_boosting else gdp_sigma
    binning = PrivacyBudget(epsilon * binning_share, delta / 2)
    boosting = PrivacyBudget(epsilon * (1 - binning_share), delta / 2)
    separate = TwoPhaseNoise(
        binning=sigma_binning(binning_queries, *binning),
        boosting=sigma_boosting(boosting_queries, *boosting),
        binning_budget=classic_budget(*binning) if classic_binning else binning,
        boosting_budget=classic_budget(*boosting) if classic_boosting else boosting,
    )
    if composition != "joint":
        return separate
    return _spend_all(separate, epsilon, delta, binning_queries, boosting_queries)


TWO_PHASE_COMPOSITIONS = ("gdp", "classic", "classic-boosting", "joint")


def _spend_all(
    separate: TwoPhaseNoise,
    epsilon: float,
    delta: float,
    binning_queries: int,
    boosting_queries: int,
) -> TwoPhaseNoise:
    """Shrink the noise of both phases by one factor until the sum of mu^2 is all there is."""
    mu_binning = math.sqrt(binning_queries) / separate.binning
    mu_boosting = math.sqrt(boosting_queries) / separate.boosting
    factor = mu_of(epsilon, delta) / math.hypot(mu_binning, mu_boosting)
    return TwoPhaseNoise(
        binning=separate.binning / factor,
        boosting=separate.boosting / factor,
        binning_budget=PrivacyBudget(epsilon_of(mu_binning * factor, delta / 2), delta / 2),
        boosting_budget=PrivacyBudget(epsilon_of(mu_boosting * factor, delta / 2), delta / 2),
    )


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

    Raises ValueError on an unknown composition, or one that needs a delta without one in (0, 1).
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

    Each of `rounds` trees has `splits` exponential choices and one Laplace answer. Pure and
    advanced composition share a tree's epsilon, "zcdp" shares rho: `label_share` for the labels.

    Raises ValueError as `choice_epsilon`.
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


def affordable_votes(rate: float, epsilon: float, delta: float) -> int:
    """Return how many ballots with Laplace(1 / rate) on the counts of both classes may be held.

    A row that changes moves each of the two counts by at most 1, so a ballot is two Laplace
    answers of `rate` each: 2 rate in pure epsilon, and rate^2 in rho of zero-concentrated privacy
    (an answer of epsilon_0 is epsilon_0^2 / 2-zCDP: Bun, Steinke 2016, Proposition 1.4). Of
    adding epsilons up and adding rho up, what allows more counts.
    """
    pure = epsilon / (2 * rate)
    concentrated = rho_of(epsilon, delta) / rate**2 if delta > 0 else 0.0
    return math.floor(max(pure, concentrated) * (1 + 1e-12))
