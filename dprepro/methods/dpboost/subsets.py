"""Which rows train which tree: within an ensemble every row trains at most one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from dprepro.methods.dpboost.sensitivity import leaf_clip
from dprepro.privacy.sampling import ExactSampler
from dprepro.privacy.sampling.bits import fill

_PROBABILITY_BITS = 53
"""Probabilities are rounded to whole multiples of 2^-53."""


Fits = Callable[[np.ndarray], np.ndarray]
"""Takes the rows that were drawn, int64 (m,), and returns which of them fit, bool (m,)."""


class Subsets(Protocol):
    """Deals out the rows of one ensemble, tree after tree.

    `independent`: whether who is drawn does not depend on which other rows there are.
    """

    independent: bool

    def __init__(self, sampler: ExactSampler, n_rows: int, shares: np.ndarray) -> None: ...

    def draw(self, fits: Fits) -> np.ndarray:
        """Return the rows (int64, ascending) that train the next tree.

        `fits` is gradient-based data filtering (Li et al. 2020, section 4.1): a row that is drawn
        but does not fit stays available to later trees.
        """
        ...


def expected_shares(learning_rate: float, n_trees: int, equal: bool = False) -> np.ndarray:
    """Return the share of the rows for each tree of an ensemble, float64 (n_trees,), sum 1.

    |D_k| / n = eta (1 - eta)^k / (1 - (1 - eta)^n_trees)  (Li et al. 2020, section 4.2), or
    1 / n_trees for `equal` parts, the option `balance_partition` of the authors' code.
    """
    if equal:
        # Rounded up, so that floor(share * n) is floor(n / n_trees).
        return np.full(n_trees, np.nextafter(1 / n_trees, 1.0) if n_trees > 1 else 1.0)
    powers = leaf_clip(learning_rate, np.arange(n_trees))
    return powers / math.fsum(powers)


class FixedSizes:
    """As the authors' code: ``floor(share * n)`` rows a tree, uniform among those not yet used.

    Who is drawn depends on how many others there are, so that a row more or less changes every
    subset.
    """

    independent = False

    def __init__(self, sampler: ExactSampler, n_rows: int, shares: np.ndarray) -> None:
        self._sampler = sampler
        self._unused = np.arange(n_rows)
        self._sizes = iter(np.floor(shares * n_rows).astype(int))

    def draw(self, fits: Fits) -> np.ndarray:
        """Return the rows of the next tree; see `Subsets`."""
        size = min(next(self._sizes), self._unused.size)
        drawn = np.zeros(self._unused.size, dtype=bool)
        drawn[self._sampler.permutation(self._unused.size)[:size]] = True
        return _take(self, drawn, fits)


class IndependentRows:
    """Every row draws its tree for itself, with the shares as probabilities.

    A row not used before tree k is drawn with probability share_k / (share_k + share_(k+1) + ...),
    to 53 bits: if a uniform whole number of 53 bits is below that many.
    No row has a part in the fate of another, which is what parallel composition needs when
    neighbours differ in one row more or less.
    """

    independent = True

    def __init__(self, sampler: ExactSampler, n_rows: int, shares: np.ndarray) -> None:
        self._sampler = sampler
        self._unused = np.arange(n_rows)
        rest = np.cumsum(shares[::-1])[::-1]
        # Shares of the last of a thousand trees round to 0.
        hazards = np.divide(shares, rest, out=np.zeros_like(shares), where=rest > 0)
        self._hazards = iter(np.rint(hazards * 2.0**_PROBABILITY_BITS).astype(np.uint64))

    def draw(self, fits: Fits) -> np.ndarray:
        """Return the rows of the next tree; see `Subsets`."""
        words = np.empty(self._unused.size, np.uint64)
        fill(self._sampler.state, words)
        words >>= np.uint64(64 - _PROBABILITY_BITS)
        return _take(self, words < next(self._hazards), fits)


def _take(subsets: FixedSizes | IndependentRows, drawn: np.ndarray, fits: Fits) -> np.ndarray:
    """Take the drawn rows that fit out of the unused ones; `drawn` is bool, one an unused row."""
    places = np.flatnonzero(drawn)
    rows = subsets._unused[places]
    fitting = fits(rows)
    subsets._unused = np.delete(subsets._unused, places[fitting])
    return rows[fitting]
