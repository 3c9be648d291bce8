"""How much noise each query needs when k adaptive Gaussian queries share one budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from dprepro.privacy.gdp import check_epsilon_delta, mu_of


def classic_sigma(queries: int, epsilon: float, delta: float) -> float:
    """Return the noise per query, in units of its sensitivity, by strong composition.

    sigma^2 = 8 k log(e + epsilon/delta) / epsilon^2  (Theorem 2 of Nori et al. 2021, after
    Kairouz, Oh, Viswanath 2017). Valid, and loose, at every epsilon below about 130.
    """
    check_epsilon_delta(epsilon, delta)
    return math.sqrt(8 * queries * math.log(math.e + epsilon / delta)) / epsilon


def gdp_sigma(queries: int, epsilon: float, delta: float) -> float:
    """Return the noise per query, in units of its sensitivity, by Gaussian DP.

    sigma = sqrt(k) / mu(epsilon, delta)  (Theorems 4, 5 and 7 of Nori et al. 2021). Exact.
    """
    return math.sqrt(queries) / mu_of(epsilon, delta)


SIGMA_BY_COMPOSITION: MappingProxyType[str, Callable[[int, float, float], float]] = (
    MappingProxyType({"gdp": gdp_sigma, "classic": classic_sigma})
)


@dataclass(frozen=True)
class TwoPhaseNoise:
    """Noise of the two phases of DP-EBM in units of sensitivity, and the budget each received."""

    binning: float
    boosting: float
    binning_budget: tuple[float, float]
    boosting_budget: tuple[float, float]


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

    Epsilon is split `binning_share` : 1 - `binning_share`, delta in halves (section 4 of Nori et
    al. 2021 and the authors' library); the two guarantees add up by basic composition.

    Raises
    ------
    ValueError
        On an unknown composition, or a share, epsilon or delta out of range.
    """
    if composition not in SIGMA_BY_COMPOSITION:
        allowed = ", ".join(map(repr, SIGMA_BY_COMPOSITION))
        raise ValueError(f"composition must be one of {allowed}, got {composition!r}")
    if not 0 < binning_share < 1:
        raise ValueError(f"binning_share must lie strictly between 0 and 1, got {binning_share!r}")
    check_epsilon_delta(epsilon, delta)
    sigma = SIGMA_BY_COMPOSITION[composition]
    binning = (epsilon * binning_share, delta / 2)
    boosting = (epsilon * (1 - binning_share), delta / 2)
    return TwoPhaseNoise(
        binning=sigma(binning_queries, *binning),
        boosting=sigma(boosting_queries, *boosting),
        binning_budget=binning,
        boosting_budget=boosting,
    )
