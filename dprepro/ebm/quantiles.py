"""Bins of about equal counts, read from the rows without privacy (EBM)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dprepro.additive.bins import (
    MISSING,
    FeatureBins,
    category_bins,
    cell_codes,
    largest,
    numeric_bins,
    numeric_values,
)
from dprepro.data.domain import CategoricalFeature, Feature, category_codes
from dprepro.rows.codes import MAX_BINS


def quantile_bins(column: pd.Series, feature: Feature, max_bins: int) -> FeatureBins:
    """Return bins of about equal counts, read from the rows without privacy.

    Numeric: cuts midway between neighbouring distinct values, at every gap if there are at most
    `max_bins` distinct values, else nearest to the quantiles. Categorical: a bin a category; of
    more than `MAX_BINS` the rarest share one.
    """
    missing = bool(column.isna().any())
    if isinstance(feature, CategoricalFeature):
        labels = [*feature.categories, *([MISSING] if missing else [])]
        if len(labels) > MAX_BINS:
            return _frequent_bins(column, feature)
        groups = np.arange(len(feature.categories))
        missing_bin = len(labels) - 1 if missing else -1
        return FeatureBins(feature, np.empty(0), groups, tuple(labels), missing_bin)
    values = numeric_values(column)
    cuts = _quantile_cuts(values[~np.isnan(values)], max_bins - missing)
    return numeric_bins(feature, cuts, cuts.size + 1 if missing else -1)


def _frequent_bins(column: pd.Series, feature: CategoricalFeature) -> FeatureBins:
    size = len(feature.categories) + 1
    cells = cell_codes(category_codes(column, feature.categories), size - 1)
    counts = np.bincount(cells, minlength=size)[: size - 1 + feature.missing]
    bins, _ = category_bins(feature, largest(counts, counts >= 0, MAX_BINS - 1))
    return bins


def _quantile_cuts(values: np.ndarray, max_bins: int) -> np.ndarray:
    ordered = np.sort(values)
    is_new = np.ones(ordered.size, dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    distinct = ordered[is_new]
    if distinct.size > max_bins:
        # What `np.quantile(..., method="inverted_cdf")` picks, without putting the rows in order
        # once more: the first row of which a share q comes no later.
        shares = np.arange(1, max_bins) / max_bins
        chosen = ordered[np.maximum(np.ceil(ordered.size * shares - 1), 0).astype(int)]
        after = np.unique(np.searchsorted(distinct, chosen, side="right"))
        after = after[after < distinct.size]
    else:
        after = np.arange(1, distinct.size)
    # Midpoints can round onto the lower neighbour; the upper one separates just as well.
    middle = distinct[after - 1] / 2 + distinct[after] / 2
    return np.where(middle > distinct[after - 1], middle, distinct[after])
