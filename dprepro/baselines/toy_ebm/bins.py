"""The bins of the toy DP-EBM: quantiles of a numeric feature, categories of a categorical one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Feature, category_codes, numbers_of


@dataclass(frozen=True)
class ToyBins:
    """The bins of one feature: `edges`, ascending, of a numeric one, or `categories`.

    A numeric bin holds edge <= x < next edge; values beyond the ends go to the outer bins. Bin 0
    of a categorical feature is for missing and unseen categories.
    """

    edges: np.ndarray | None
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, column: pd.Series, feature: Feature, max_bins: int) -> ToyBins:
        """Return one bin a category, or quantile bins, at most `max_bins`, read from the rows."""
        if isinstance(feature, CategoricalFeature):
            return cls(None, feature.categories)
        return cls(np.unique(np.quantile(_numbers(column), np.linspace(0, 1, max_bins + 1))))

    @property
    def count(self) -> int:
        """The number of bins."""
        return len(self.categories) + 1 if self.edges is None else max(1, len(self.edges) - 1)

    def encode(self, column: pd.Series) -> np.ndarray:
        """Return the bin of each row, int64 (n,)."""
        if self.edges is None:
            return category_codes(column, self.categories) + 1
        return np.searchsorted(self.edges[1:-1], _numbers(column), side="right")


def _numbers(column: pd.Series) -> np.ndarray:
    values = numbers_of(column)
    if np.isnan(values).any():
        raise ValueError(
            f"feature {column.name!r} has missing values (NaN), which the toy DP-EBM cannot take: "
            "fill them in, or choose another method"
        )
    return values
