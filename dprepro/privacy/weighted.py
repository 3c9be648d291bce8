"""Choices about weighted rows, where a neighbour may also move the weights.

A boosting round hands its learner a dataset and a distribution over it. Neighbouring datasets then
come with distributions of total variation distance at most zeta, and what a utility can move by
over both is its *robust sensitivity* (Asadi et al. 2022, section 2.4). Sensitivities here are
robust ones: zeta is in them, and nothing divides by it again.
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.release import Query, Release
from dprepro.privacy.uses import ExponentialUses, LaplaceUses


class WeightedExponential:
    """Choices of a given shape by the Weighted Exponential Mechanism: P ~ exp(eta * quality).

    Each is (2 eta Delta, 0, zeta)-DP, Delta the robust sensitivity at zeta (Theorem 3). A constant
    added to all qualities changes no probability, so Delta may be half the largest difference
    between the moves of two candidates. One ledger entry covers all choices.
    """

    def __init__(
        self,
        source: NoiseSource,
        shape: tuple[int, ...],
        *,
        releases: str,
        eta: float,
        robust_sensitivity: float,
    ) -> None:
        self._eta, self._sensitivity = eta, robust_sensitivity
        self._uses = ExponentialUses(
            source,
            shape,
            releases=releases,
            epsilon=2 * eta * robust_sensitivity,
            sensitivity=robust_sensitivity,
            uses=math.prod(shape),
        )

    def pick(self, use: tuple[int, ...], quality: np.ndarray, query: Query) -> Release:
        """Return the candidate of choice number `use` among those with `quality`, float64 (k,).

        Raises
        ------
        BudgetError
            If the choice was made before.
        """
        _, uniform = self._uses.hand_to_kernel(use, query)
        eta = self._sensitivity / query.charged * self._eta
        sums = np.cumsum(np.exp(eta * (quality - quality.max())))
        chosen = np.searchsorted(sums, uniform * sums[-1], side="right")
        return Release(np.minimum(chosen, quality.size - 1), 1 / eta)


def weighted_noisy_max(
    source: NoiseSource,
    shape: tuple[int, int, int],
    *,
    releases: str,
    eta: float,
    robust_sensitivity: float,
) -> LaplaceUses:
    """Return Weighted Return Noisy Max with noise Laplace(1 / eta), uses by groups by values.

    Of what it answers, the index of each group's largest value is released.
    `robust_sensitivity` is the L1 norm of what all values of a use can move by together: the
    noisy values might as well be released, and a use is (eta * robust_sensitivity, 0, zeta)-DP.
    For one group of two values that move by Delta each that is Theorem 4's 2 eta Delta. Groups of
    disjoint rows do not compose in parallel (section 9 says so): normalising moves the weights of
    all of them.
    """
    return LaplaceUses(
        source,
        shape,
        releases=releases,
        epsilon=eta * robust_sensitivity,
        sensitivity=robust_sensitivity,
        uses=shape[0],
    )
