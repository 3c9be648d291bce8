"""Choices about weighted rows, where a neighbour may also move the weights.

A boosting round hands its learner a dataset and a distribution over it. Neighbouring datasets then
come with distributions of total variation distance at most zeta, and what a utility can move by
over both is its *robust sensitivity* (Asadi et al. 2022, section 2.4). Sensitivities here are
robust ones: zeta is in them, and nothing divides by it again.
"""

from __future__ import annotations

import math

from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.uses import ExponentialUses, LaplaceUses


def weighted_choices(
    source: NoiseSource,
    shape: tuple[int, ...],
    *,
    releases: str,
    eta: float,
    robust_sensitivity: float,
) -> ExponentialUses:
    """Return choices of a given shape by the Weighted Exponential Mechanism, P ~ exp(eta utility).

    Each is (2 eta Delta, 0, zeta)-DP, Delta the robust sensitivity at zeta (Theorem 3). A constant
    added to all utilities changes no probability, so Delta may be half the largest difference
    between the moves of two candidates. One ledger entry covers all choices. A choice is drawn
    exactly, from utilities in whole numbers; see `NoiseSource.choose`.
    """
    return ExponentialUses(
        source,
        shape,
        releases=releases,
        epsilon=2 * eta * robust_sensitivity,
        sensitivity=robust_sensitivity,
        uses=math.prod(shape),
    )


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
