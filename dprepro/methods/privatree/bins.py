"""Bins of features, where a tree may be cut, and a released tree of such cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Feature, codes_or_numbers


@dataclass(frozen=True)
class Bins:
    """The bins of one feature; missing values have one of their own, the last, if there may be any.

    Attributes
    ----------
    feature
        The feature, as the domain describes it.
    edges : float64 (m,)
        Of a numeric feature, ascending: a value is in the first bin whose edge it does not exceed,
        and in the last one above all edges. Empty for a categorical feature, whose bins are its
        categories.
    """

    feature: Feature
    edges: np.ndarray

    @classmethod
    def of(cls, feature: Feature, number: int) -> Bins:
        """Return so many bins of equal width between the bounds of the feature."""
        if isinstance(feature, CategoricalFeature):
            return cls(feature, np.empty(0))
        return cls.between(feature, feature.lower, feature.upper, number)

    @classmethod
    def between(cls, feature: Feature, lower: float, upper: float, number: int) -> Bins:
        """Return so many bins of equal width between two numbers."""
        return cls(feature, np.unique(np.linspace(lower, upper, number + 1)[1:]))

    @property
    def count(self) -> int:
        """The number of bins."""
        known = len(self.edges)
        if isinstance(self.feature, CategoricalFeature):
            known = len(self.feature.categories)
        return max(known + self.feature.missing, 1)

    def encode(self, column: pd.Series, refuse: bool = False) -> np.ndarray:
        """Return the bin of each row, int64 (n,). Missing and unseen values are in the last one.

        Raises
        ------
        ValueError
            With `refuse`, on what the domain rules out. Always, if a numeric feature holds
            something else.
        """
        found = codes_or_numbers(self.feature, column, refuse)
        if isinstance(self.feature, CategoricalFeature):
            return np.where(found < 0, self.count - 1, found)
        codes = np.searchsorted(self.edges, np.minimum(found, self.edges[-1]), side="left")
        return np.where(np.isnan(found), self.count - 1, codes).astype(np.int64)


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
