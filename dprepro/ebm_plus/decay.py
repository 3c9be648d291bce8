"""Sums over neighbouring bins with decaying weights, for functions that change slowly.

If each bin is asked about by itself, all functions are learned equally precisely. But most effects
change slowly from bin to bin. Sums over neighbouring bins tell more of these, for the same
sensitivity, and less of what jumps up and down. Where rows are few, `coarse.smooth_sums` does the
same with bins that are alike: there which bins are rare is lost in noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.ebm_plus.queries import CENTRE_UNIT

REACH = 0.3
"""Over which part of all bins, or of all rows, effects are alike: see `decaying`."""

_EVEN = 0.5
"""Weight of a distance in bins. That of a distance in rows is the rest, to 1."""

LEAST_SHARE = 2.0**-8
"""Bins with a smaller share of the rows are weighed as if they had this one. So for `Loss.rare`
no number in a mix exceeds 4, the root of the root of 256."""


@dataclass(frozen=True)
class Decay:
    """How the numbers that are asked for follow from sums in the bins, and the sums from numbers.

    Number c is sum_(b >= c) M_cb S_b, with M_cc = 1 and M_cb = k_c ... k_(b-1). So
    S_c = number_c - k_c number_(c+1).

    Attributes
    ----------
    mix : int64 (B, B)
        M, in `CENTRE_UNIT`.
    fresh : float64 (B,)
        What the weight of a number is to be multiplied by: it is small where the number before it
        tells nearly the same.
    following : float64 (B,)
        k; the last one is 0.
    """

    mix: np.ndarray
    fresh: np.ndarray
    following: np.ndarray

    def sums(self, numbers: np.ndarray) -> np.ndarray:
        """Return the sums in the bins, float64 (B,), given the released numbers, float64 (B,).

        M is rounded, so a sum is off by at most (1 + k) / 512 times the sum of all |S_b|.
        """
        return np.asarray(numbers - self.following * np.append(numbers[1:], 0.0))

    def along(self, change: np.ndarray) -> np.ndarray:
        """Return the weights of the numbers that add up to sum_b change_b S_b, float64 (B,)."""
        return np.asarray(change - np.append(0.0, (self.following * change)[:-1]))

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """Return the noise of `sums`, as `smooth` takes it, float64 (2, B).

        `variances`, float64 (B,), are those of the noise in the numbers.
        """
        deviations = np.sqrt(variances)
        return np.stack([deviations, self.following * np.append(deviations[1:], 0.0)])


def decaying(counts: np.ndarray, extents: np.ndarray, rare: float) -> Decay | None:
    r"""Return the decay of an ordered function, None if it has fewer than three intervals.

    Let L be M with each row c times `fresh`_c. Then L' L is the covariance that effects are assumed
    to have where bins are weighed alike: exp(-d / `REACH`) for bins at the distance d. That is an
    autoregression, so L has this simple form. The distance is the mean of two: the bins between
    both, as a share of all bins, and the rows between both, as a share of all rows. If rare bins
    are asked about more precisely, the covariance is multiplied by the roots of both bins' weights.

    Parameters
    ----------
    counts : float64 (B,)
        About how many rows each bin has, positive.
    extents : float64 (B,)
        See `Function`; 0 for missing values, which have a number of their own.
    rare
        See `coding.code`.
    """
    intervals = np.flatnonzero(extents > 0)
    n = intervals.size
    if n < 3:
        return None
    shares = counts[intervals] / counts[intervals].sum()
    apart = _EVEN / n + (1 - _EVEN) * (shares[1:] + shares[:-1]) / 2
    alike = np.array([math.exp(-d / REACH) for d in apart])
    roots = np.maximum(counts / counts.sum(), LEAST_SHARE) ** (-rare / 2)
    following, fresh = np.zeros(counts.size), np.ones(counts.size)
    following[intervals[:-1]] = alike * roots[intervals[1:]] / roots[intervals[:-1]]
    fresh[intervals[1:]] = np.sqrt(1 - alike**2)
    mix = np.eye(counts.size)
    for c in intervals[:-1]:
        mix[c, c + 1 : intervals[-1] + 1] = np.cumprod(following[c : intervals[-1]])
    return Decay(np.rint(mix / CENTRE_UNIT).astype(np.int64), fresh, following)
