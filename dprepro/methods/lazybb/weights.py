"""How Lazy-Bregman boosting weighs rows by their margins (Algorithm 1), in whole numbers.

The distributions are smooth: no row gets more than 1 / (kappa n) of the weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np

from dprepro.methods.lazybb.sensitivity import TOTAL, largest_weight

MARGINS = ("signed", "agreements")

_LARGEST = Decimal(2**14)
"""Exponents lambda margin count as this at most, so that numbers stay of some length."""

_BITS = 96
"""A measure is rounded down to this many bits, which is finer than weights are."""

_DECIMAL = Context(prec=40)
"""Its exp is correctly rounded, and so the same on every machine, which that of NumPy is not."""


def smooth_weights(measure: Sequence[int], counts: Sequence[int], density: float) -> list[int]:
    """Return the weight of a row in each group of rows, in units of 1 / `TOTAL`.

    The Bregman projection of a measure m onto those with values in [0, 1] and a sum of at least
    kappa n is min(1, c m): c = 1 if the sum is reached already, and else c > 1 such that it is
    reached exactly (Barak, Hardt, Kale 2009; Asadi et al. 2022, section 2.1). Divided by
    its sum, it is min(cap, a m) for an m of at most 1, in both cases: cap is 1 / (kappa n), and a
    is such that all rows together weigh 1. Here the weights are

        w = min(C, floor(a m)),    C = floor(T / (kappa n)),    T = `TOTAL`,

    where a is the rational number at which min(C, a m) adds up to T, or without limit if the rows
    weigh less than T even so. All of it is integer arithmetic, so it is exact. For
    `sensitivity.smooth_distance` three things are proved:

    - A weight depends on its m and on a alone, besides n and kappa, and grows with a. So of two
      neighbours, one gives all rows that both have at least the weight that the other gives.
    - No weight exceeds C.
    - All n weights add up to at most T, and to more than T - n: rounding down takes less than 1
      from each; and if all are C, then n C > n (T / (kappa n) - 1) >= T - n.

    a is found by capping groups, the largest m first, until the next one needs no cap.

    Parameters
    ----------
    measure
        m of each group, positive, in any unit that all share. Groups may have the same m.
    counts
        The rows in each group, positive Python integers: NumPy's would overflow.
    density
        kappa, in (0, 1].
    """
    cap, left = largest_weight(density, sum(counts)), TOTAL
    mass = sum(n * m for n, m in zip(counts, measure, strict=True))
    weights = [cap] * len(measure)
    falling = sorted(range(len(measure)), key=measure.__getitem__, reverse=True)
    for place, group in enumerate(falling):
        # Here a = left / mass, and a group is capped if its a m exceeds C.
        if left * measure[group] <= cap * mass:
            for free in falling[place:]:
                weights[free] = left * measure[free] // mass
            break
        left -= cap * counts[group]
        mass -= measure[group] * counts[group]
    return weights


@dataclass(frozen=True)
class Weighing:
    """The parameters of Algorithm 1 that weigh rows; see `LazyBBClassifier`.

    ``margin="signed"`` is the paper's sum of y h, "agreements" counts the rounds that were right,
    as the authors' code does: half the sum plus half the rounds, which makes it a `learning_rate`
    half as large, and the projection always active.
    """

    learning_rate: float
    density: float
    margin: str = "signed"

    def weights(self, margins: np.ndarray, turn: int) -> np.ndarray:
        """Return the smooth distribution after `turn` rounds, in units of 1 / `TOTAL`.

        Parameters
        ----------
        margins : int64 (n,)
            From -`turn` to `turn`. Rows of one margin weigh the same, so there are few weights to
            find.

        Returns
        -------
        int64 (n,)
        """
        at = margins + turn
        counts = np.bincount(at)
        present = np.flatnonzero(counts)
        table = np.zeros(counts.size, np.int64)
        table[present] = smooth_weights(
            self._measure(present, turn), counts[present].tolist(), self.density
        )
        return table[at]

    def _measure(self, at: np.ndarray, turn: int) -> list[int]:
        """Return min(1, kappa exp(-lambda margin)) of margins plus `turn`, in one unit."""
        halves = at if self.margin == "agreements" else 2 * (at - turn)
        found = [
            _measure_of(float(self.learning_rate), float(self.density), int(half))
            for half in halves
        ]
        finest = max(shift for _, shift in found)
        return [mantissa << (finest - shift) for mantissa, shift in found]


@lru_cache(maxsize=2**12)
def _measure_of(learning_rate: float, density: float, halves: int) -> tuple[int, int]:
    """Return min(1, kappa exp(-lambda halves / 2)) as m and s: m 2^-s, m of `_BITS` bits or so.

    A function of public parameters and a margin, whatever the other rows are: privacy needs no
    more of it.
    """
    exponent = _DECIMAL.multiply(Decimal(-learning_rate / 2), Decimal(halves))
    bounded = max(min(exponent, _LARGEST), _LARGEST.copy_negate())
    measure = min(Decimal(1), _DECIMAL.multiply(Decimal(density), _DECIMAL.exp(bounded)))
    numerator, denominator = measure.as_integer_ratio()
    shift = _BITS + denominator.bit_length() - numerator.bit_length()
    return (numerator << shift) // denominator, shift
