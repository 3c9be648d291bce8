"""Cells of a feature: what values the splits of all trees can tell apart. They are public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.data.domain import (
    CategoricalFeature,
    Feature,
    category_codes,
    numbers_of,
    refuse_missing,
    refuse_unseen,
)


@dataclass(frozen=True)
class Cells:
    """The cells of one feature.

    Attributes
    ----------
    feature
        The feature, as the domain describes it.
    candidates : float64 (m,)
        Where a numeric feature can be split, ascending. Cell 2j + 1 is candidate j itself, and cell
        2j + 2 lies between it and the next. Empty for a categorical feature, whose cells are its
        categories, and then one for all that is none of them.
    """

    feature: Feature
    candidates: np.ndarray

    @classmethod
    def of(cls, feature: Feature, number: int, border: float | None) -> Cells:
        """Return the cells of so many equidistant candidates.

        They begin at 0 and end below `border`, in the feature's unit; with None they lie between
        the feature's own bounds.
        """
        if isinstance(feature, CategoricalFeature):
            return cls(feature, np.empty(0))
        low, high = (feature.lower, feature.upper) if border is None else (0.0, border)
        return cls(feature, low + (high - low) / number * np.arange(number))

    @property
    def count(self) -> int:
        """The number of cells."""
        if isinstance(self.feature, CategoricalFeature):
            return len(self.feature.categories) + 1
        return 2 * len(self.candidates) + 1

    def encode(self, column: pd.Series, refuse: bool = False) -> np.ndarray:
        """Return the cell of each row, int64 (n,).

        A missing number is in the first cell, a missing or unseen category in the last one.

        Raises
        ------
        ValueError
            With `refuse`, on what the domain rules out. Always, if a numeric feature holds
            something else.
        """
        feature = self.feature
        if isinstance(feature, CategoricalFeature):
            codes = category_codes(column, feature.categories)
            if refuse:
                missing = column.isna().to_numpy()
                refuse_missing(feature, missing)
                refuse_unseen(feature, (codes < 0) & ~missing)
            return np.where(codes < 0, len(feature.categories), codes)
        values = numbers_of(column)
        if refuse:
            refuse_missing(feature, np.isnan(values))
        values = np.where(np.isnan(values), -np.inf, values)
        below = np.searchsorted(self.candidates, values, side="left")
        return below + np.searchsorted(self.candidates, values, side="right")
