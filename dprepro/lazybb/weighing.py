"""How Lazy-Bregman boosting weighs rows by their margins (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np

from dprepro.lazybb.projection import smooth_weights

MARGINS = ("signed", "agreements")

_LARGEST = Decimal(2**14)
"""Exponents lambda margin count as this at most, so that numbers stay of some length."""

_BITS = 96
"""A measure is rounded down to this many bits, which is finer than weights are."""

_DECIMAL = Context(prec=40)
"""Its exp is correctly rounded, and so the same on every machine, which that of NumPy is not."""


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
