"""Choices about weighted rows, where a neighbour may also move the weights.

A boosting round hands its learner a dataset and a distribution over it. Neighbouring datasets then
come with distributions of total variation distance at most zeta, and what a utility can move by
over both is its *robust sensitivity* (Asadi et al. 2022, section 2.4). Sensitivities here are
robust ones: zeta is in them, and nothing divides by it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.privacy.mechanisms import NoiseSource


@dataclass(frozen=True)
class WeightedExponential:
    """Choices with probability proportional to exp(eta * quality).

    Attributes
    ----------
    eta
        The rate; infinite for the best candidate, without privacy.
    uniforms
        One draw in [0, 1) a choice, of any shape.
    """

    eta: float = math.inf
    uniforms: np.ndarray | None = None

    def pick(self, use: tuple[int, ...], quality: np.ndarray) -> int:
        """Return the candidate of choice number `use` among those with `quality`, float64 (k,)."""
        if self.uniforms is None:
            return int(np.argmax(quality))
        sums = np.cumsum(np.exp(self.eta * (quality - quality.max())))
        chosen = np.searchsorted(sums, self.uniforms[use] * sums[-1], side="right")
        return min(int(chosen), quality.size - 1)


def weighted_exponential(
    source: NoiseSource,
    shape: tuple[int, ...],
    *,
    releases: str,
    eta: float,
    robust_sensitivity: float,
) -> WeightedExponential:
    """Return choices of the given shape by the Weighted Exponential Mechanism.

    Each is (2 eta Delta, 0, zeta)-DP, Delta the robust sensitivity at zeta (Theorem 3). A constant
    added to all qualities changes no probability, so Delta may be half the largest difference
    between the moves of two candidates. One ledger entry covers all choices.
    """
    _, uniforms = source.exponential_by_inversion(
        shape,
        releases=releases,
        epsilon=2 * eta * robust_sensitivity,
        sensitivity=robust_sensitivity,
        uses=math.prod(shape),
    )
    return WeightedExponential(eta, uniforms)


@dataclass(frozen=True)
class WeightedNoisyMax:
    """The index of the largest of some noisy values, for each group of values.

    `noise` has shape (uses, groups, values); None for the largest value, without privacy.
    """

    noise: np.ndarray | None = None

    def pick(self, use: int, values: np.ndarray) -> np.ndarray:
        """Return the index, int64 (groups,), of the largest noisy value; float64 (groups, k)."""
        noisy = values if self.noise is None else values + self.noise[use]
        return np.asarray(np.argmax(noisy, axis=1))


def weighted_noisy_max(
    source: NoiseSource,
    shape: tuple[int, int, int],
    *,
    releases: str,
    eta: float,
    robust_sensitivity: float,
) -> WeightedNoisyMax:
    """Return Weighted Return Noisy Max with noise Laplace(1 / eta), uses by groups by values.

    `robust_sensitivity` is the L1 norm of what all values of a use can move by together: the
    noisy values might as well be released, and a use is (eta * robust_sensitivity, 0, zeta)-DP.
    For one group of two values that move by Delta each that is Theorem 4's 2 eta Delta. Groups of
    disjoint rows do not compose in parallel (section 9 says so): normalising moves the weights of
    all of them.
    """
    noise = source.laplace(
        shape,
        releases=releases,
        epsilon=eta * robust_sensitivity,
        sensitivity=robust_sensitivity,
        uses=shape[0],
    )
    return WeightedNoisyMax(noise)
