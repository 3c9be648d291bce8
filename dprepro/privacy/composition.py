"""How much noise each query needs when k adaptive Gaussian queries share one budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

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

    Raises
    ------
    ValueError
        On an unknown composition, or a share, epsilon or delta out of range.
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
