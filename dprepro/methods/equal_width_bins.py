"""Bins of equal width of one feature, made of a public domain, and values that stand for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def decode(self, codes: np.ndarray) -> Any:
        """Return a value of each bin, (n,): the middle of a number's, float64, or the category.

        The bin of missing values has NaN, and so has a categorical feature without categories.
        """
        if isinstance(self.feature, CategoricalFeature):
            known = np.where(codes < len(self.feature.categories), codes, -1)
            return pd.Categorical.from_codes(known, pd.Index(list(self.feature.categories)))
        lower = np.append(self.feature.lower, self.edges[:-1])
        # Not the middle of a sum, which could overflow.
        return np.append(lower / 2 + self.edges / 2, np.nan)[codes]
