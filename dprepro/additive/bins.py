"""How the values of a feature become bins, and the codes that bins give to values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.data.domain import (
    CategoricalFeature,
    Feature,
    NumericFeature,
    as_floats,
    category_codes,
    is_categorical,
)

OTHER = "(other)"

MISSING = "(missing)"


@dataclass(frozen=True)
class FeatureBins:
    """How the values of one feature become bins 0 .. n_bins - 1.

    Attributes
    ----------
    feature
        The feature as its domain describes it.
    cuts
        Numeric: float64, ascending; a value x lies in bin ``sum(cuts <= x)``. Categorical: empty.
    groups
        Categorical: int64, the bin of each category in the domain's order. Numeric: empty.
    labels
        A name for each bin.
    missing_bin
        The bin of missing values (possibly shared), or -1 if the domain has none.
    """

    feature: Feature
    cuts: np.ndarray
    groups: np.ndarray
    labels: tuple[str, ...]
    missing_bin: int = -1

    @property
    def n_bins(self) -> int:
        """The number of bins, those for missing values and for other categories included."""
        return len(self.labels)

    def encode(self, column: pd.Series) -> np.ndarray:
        """Return int64 codes (n,). Unseen categories get the "other" bin; -1 where there is none.

        Raises
        ------
        ValueError
            If a numeric feature's column holds something that is not a number.
        """
        if isinstance(self.feature, CategoricalFeature):
            codes = category_codes(column, self.feature.categories)
            unseen = self.labels.index(OTHER) if OTHER in self.labels else -1
            bins = np.append(self.groups, unseen)[codes]
            return np.where(column.isna(), self.missing_bin, bins)
        values = numeric_values(column)
        bins = np.searchsorted(self.cuts, values, side="right")
        return np.where(np.isnan(values), self.missing_bin, bins)


def numeric_values(column: pd.Series) -> np.ndarray:
    """Return a numeric column as contiguous float64 (n,).

    Raises
    ------
    ValueError
        If the column holds categories; the message names it.
    """
    if is_categorical(column):
        raise ValueError(
            f"feature {column.name!r} is numeric in the domain but holds {column.dtype} values"
        )
    return np.ascontiguousarray(as_floats(column))


def cell_codes(codes: np.ndarray, n_categories: int) -> np.ndarray:
    """Return cells as integers (n,) in which every cell has a number: that of missing values last.

    `codes` are those of categories, -1 for missing values.
    """
    cells = np.where(codes < 0, n_categories, codes)
    return cells.astype(np.uint16 if n_categories < 2**16 else np.uint32)


def largest(weights: np.ndarray, kept: np.ndarray, most: int) -> np.ndarray:
    """Return which of those kept, bool (categories,), are the `most` largest, first ones first."""
    chosen = np.zeros_like(kept)
    candidates = np.flatnonzero(kept)
    chosen[candidates[np.argsort(-weights[candidates], kind="stable")[:most]]] = True
    return chosen


def category_bins(feature: CategoricalFeature, kept: np.ndarray) -> tuple[FeatureBins, np.ndarray]:
    """Return a bin for each category that is kept, bool (categories,), and one for all others.

    Where the domain allows missing values, they count as one more category. The second result is
    the bin of each cell, int (categories + 1,), the last of missing values.
    """
    names = [*feature.categories, *([MISSING] if feature.missing else [])]
    labels = [name for name, keep in zip(names, kept, strict=True) if keep]
    groups = np.where(kept, np.cumsum(kept) - 1, len(labels))
    if len(labels) < len(names) or not names:
        labels.append(OTHER)
    missing_bin = int(groups[-1]) if feature.missing else -1
    bins = FeatureBins(
        feature, np.empty(0), groups[: len(feature.categories)], tuple(labels), missing_bin
    )
    return bins, np.append(groups, 0)[: len(feature.categories) + 1]


def finest_bins(feature: Feature, cuts: np.ndarray, most: int) -> FeatureBins:
    """Return as many bins, up to `most`, as a fit may leave of a feature; read off its domain.

    `cuts` are those that a number may have, float64 (C,). Of more categories than there may be bins
    those with the longest names have one each.
    """
    if isinstance(feature, CategoricalFeature):
        names = [*feature.categories, *([MISSING] if feature.missing else [])]
        lengths = np.array([len(name) for name in names])
        kept = lengths >= 0
        if len(names) > most:
            kept = largest(lengths, kept, most - 1)
        return category_bins(feature, kept)[0]
    cuts = cuts[: most - 1 - feature.missing]
    return numeric_bins(feature, cuts, cuts.size + 1 if feature.missing else -1)


def numeric_bins(feature: NumericFeature, cuts: np.ndarray, missing_bin: int) -> FeatureBins:
    """Return the bins between `cuts`; a `missing_bin` beyond them becomes a bin of its own."""
    ends = [f"{cut:.6g}" for cut in cuts]
    labels = [
        f"[{start}, {end})" for start, end in zip(["-inf", *ends], [*ends, "inf"], strict=True)
    ]
    if missing_bin == len(labels):
        labels.append(MISSING)
    return FeatureBins(feature, cuts, np.empty(0, dtype=np.int64), tuple(labels), missing_bin)
