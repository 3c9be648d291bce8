"""Cuts between bins of features, and a released tree of such cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.methods.equal_width_bins import Bins


@dataclass(frozen=True)
class Cuts:
    """All cuts of all features: rows of a feature in bins up to a cut go left.

    The last bin is a cut, too, as in the authors' code: all rows go left.

    Attributes
    ----------
    counts : int64 (K,)
        Bins of each feature.
    feature, last : int64 (m,)
        Of each cut, the feature, and its last bin on the left.
    """

    counts: np.ndarray
    feature: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, bins: Sequence[Bins]) -> Cuts:
        """Return the cuts of some features."""
        counts = np.array([each.count for each in bins], np.int64)
        last = np.concatenate([np.arange(count) for count in counts])
        return cls(counts, np.repeat(np.arange(len(bins)), counts), last)

    @property
    def starts(self) -> np.ndarray:
        """The first cut of each feature, int64 (K,)."""
        return np.cumsum(self.counts) - self.counts

    def __len__(self) -> int:
        return len(self.feature)


def below(
    places: np.ndarray, feature: np.ndarray, last: np.ndarray, codes: np.ndarray
) -> np.ndarray:
    """Return the places of rows one level deeper, int64 (n,): node i has children 2i and 2i + 1.

    Parameters
    ----------
    places
        Of each row on its level, int64 (n,).
    feature, last
        Of the cut of each node of the level, int64 (nodes,).
    codes : (K, n)
        The bins of the rows.
    """
    rows = np.arange(codes.shape[1])
    return 2 * places + (codes[feature[places], rows] > last[places])


@dataclass(frozen=True, eq=False)
class Tree:
    """A complete tree, level by level from the root, and from left to right on each.

    Attributes
    ----------
    feature, last : int64 (2^depth - 1,)
        The cut of each node; see `Cuts`.
    label : int64 (2^depth,)
        The code of the label of each leaf.
    """

    feature: np.ndarray
    last: np.ndarray
    label: np.ndarray

    def labels_of(self, codes: np.ndarray) -> np.ndarray:
        """Return the code of the label of each row, int64 (n,), from its bins (K, n)."""
        places, first = np.zeros(codes.shape[1], np.int64), 0
        while first < len(self.feature):
            level = slice(first, 2 * first + 1)
            places = below(places, self.feature[level], self.last[level], codes)
            first = 2 * first + 1
        return self.label[places]
