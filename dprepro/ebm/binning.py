"""Bins made of private histograms (DP-EBM), and the codes that bins give to values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.compiled import kernel
from dprepro.data.domain import (
    CategoricalFeature,
    Feature,
    NumericFeature,
    category_codes,
    is_categorical,
    refuse_missing,
    refuse_unseen,
)

MAX_BINS = 256
"""Bins that a feature can have, those of missing values and of other categories included: codes are
uint8."""

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
    return np.ascontiguousarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def histogram(column: pd.Series, feature: Feature, max_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows into the public cells from which a feature's bins will be merged.

    Numeric: ``2 * max_bins`` cells of equal width over the feature's bounds; values outside fall
    into the outermost ones. Categorical: one cell a category. A last cell takes missing values.
    A row lies in exactly one cell.

    Returns
    -------
    cells : uint16 (n,)
        Cell of every row; uint32 where there are more categories than uint16 can number.
    counts : int64 (cells,)
        Rows per cell, exact: private until noise is added.

    Raises
    ------
    ValueError
        On a category outside the domain, or a missing value where the domain allows none.
    """
    missing = column.isna().to_numpy()
    refuse_missing(feature, missing)
    if isinstance(feature, NumericFeature):
        edges = cell_edges(feature, max_bins)
        cells = _uniform_cells(numeric_values(column), edges)
        return cells, _count(cells, edges.size)
    codes = category_codes(column, feature.categories)
    refuse_unseen(feature, (codes < 0) & ~missing)
    cells = cell_codes(codes, len(feature.categories))
    return cells, np.bincount(cells, minlength=len(feature.categories) + 1)


def cell_edges(feature: NumericFeature, max_bins: int) -> np.ndarray:
    """Return the edges (float64) of a numeric feature's ``2 * max_bins`` cells.

    A feature that is constant by its bounds has one cell.
    """
    if feature.lower == feature.upper:
        return np.array([feature.lower - 0.5, feature.upper + 0.5])
    return np.linspace(feature.lower, feature.upper, 2 * max_bins + 1)


@kernel("(const(float64[:]), float64[::1])")
def _uniform_cells(values, edges):  # type: ignore[no-untyped-def]
    last = edges.size - 2
    per_unit = (last + 1) / (edges[-1] - edges[0])
    cells = np.empty(values.size, np.uint16)
    for i in range(values.size):
        value = values[i]
        if np.isnan(value):
            cells[i] = last + 1
            continue
        position = (min(max(value, edges[0]), edges[-1]) - edges[0]) * per_unit
        cell = min(int(position), last)
        # The division rounds; the edges decide, here as in `FeatureBins.encode`.
        if value < edges[cell] and cell > 0:
            cell -= 1
        elif cell < last and value >= edges[cell + 1]:
            cell += 1
        cells[i] = cell
    return cells


@kernel("(uint16[::1], int64)")
def _count(cells, n_cells):  # type: ignore[no-untyped-def]
    """What ``np.bincount`` does, without its copy of the cells as int64."""
    counts = np.zeros(n_cells, np.int64)
    for cell in cells:
        counts[cell] += 1
    return counts


def cell_codes(codes: np.ndarray, n_categories: int) -> np.ndarray:
    """Return cells as integers (n,) in which every cell has a number: that of missing values last.

    `codes` are those of categories, -1 for missing values.
    """
    cells = np.where(codes < 0, n_categories, codes)
    return cells.astype(np.uint16 if n_categories < 2**16 else np.uint32)


def as_codes(bins: np.ndarray) -> np.ndarray:
    """Return numbers of bins as uint8.

    Raises
    ------
    ValueError
        If one is not from 0 to 255: as a byte it would be another bin's.
    """
    if bins.size and not 0 <= bins.min() <= bins.max() < MAX_BINS:
        raise ValueError(
            f"bins {bins.min()} to {bins.max()} of a feature do not fit into a byte: it can have "
            f"{MAX_BINS}, numbered from 0. Merge cells until it has"
        )
    return bins.astype(np.uint8)


def recode(
    cells: np.ndarray, bin_of_cell: np.ndarray, order: np.ndarray, codes: np.ndarray
) -> None:
    """Write the bin of every row's cell to `codes`, uint8 (n,), rows in `order`.

    Raises
    ------
    ValueError
        If a cell's bin does not fit into uint8.
    """
    _recode(cells, as_codes(bin_of_cell), order, codes)


@kernel(
    "(uint16[::1], uint8[::1], int64[::1], uint8[::1])",
    "(uint32[::1], uint8[::1], int64[::1], uint8[::1])",
)
def _recode(cells, bin_of_cell, order, codes):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        codes[i] = bin_of_cell[cells[order[i]]]


def merge_cells(
    feature: Feature, noisy: np.ndarray, target: float, max_bins: int
) -> tuple[FeatureBins, np.ndarray, np.ndarray]:
    """Merge noisy cells into bins of at least `target` rows. Post-processing: reads no data.

    Numeric cells join from left to right until a bin reaches `target`; what is left over joins the
    last bin. Categories below `target` join one "other" bin, which takes in the smallest kept
    category if it is itself below `target`. (As in the authors' library.) Missing values, where
    the domain allows them, count as one more category; below `target` those of a numeric feature
    join its largest bin.

    No feature gets more than `MAX_BINS` bins. Noise lifts empty cells over `target`, so that of
    many categories, or of more than 255 cells, more could reach it: then the largest of the
    categories are kept, and numeric cells join into bins of at least an even share of all.

    Parameters
    ----------
    feature, max_bins
        As given to `histogram`.
    noisy : float64 (cells,)
        Noisy counts; negative ones count as 0. The last one is of missing values.
    target
        Rows a bin should hold.

    Returns
    -------
    bins, counts : FeatureBins, float64 (n_bins,)
        The bins and their noisy counts, each positive.
    bin_of_cell : int64 (cells,)
        The bin into which each cell went, below `MAX_BINS`.
    """
    noisy = np.clip(noisy, 0.0, None)
    if not feature.missing:
        noisy[-1] = 0.0
    if isinstance(feature, NumericFeature):
        bins, bin_of_cell = _merge_numeric(feature, noisy, target, max_bins)
    else:
        bins, bin_of_cell = _merge_categories(feature, noisy, target)
    counts = np.bincount(bin_of_cell, weights=noisy, minlength=bins.n_bins)
    # With a lone bin the noise can leave less than one bin's worth: any positive count will do.
    return bins, np.where(counts > 0, counts, target), bin_of_cell


def _merge_numeric(
    feature: NumericFeature, noisy: np.ndarray, target: float, max_bins: int
) -> tuple[FeatureBins, np.ndarray]:
    most = MAX_BINS - feature.missing
    bin_of_cell = _join_neighbours(noisy[:-1], target)
    if bin_of_cell[-1] >= most:
        # As many bins as hold a share of 1 / most each there can be, and no more.
        bin_of_cell = _join_neighbours(noisy[:-1], noisy[:-1].sum() / most)
    inner = cell_edges(feature, max_bins)[1:-1]
    cuts = inner[np.diff(bin_of_cell) > 0]
    own_bin = feature.missing and noisy[-1] >= target
    if own_bin:
        missing_bin = cuts.size + 1
    elif feature.missing:
        missing_bin = int(np.bincount(bin_of_cell, weights=noisy[:-1]).argmax())
    else:
        missing_bin = -1
    return numeric_bins(feature, cuts, missing_bin), np.append(bin_of_cell, max(missing_bin, 0))


def _join_neighbours(counts: np.ndarray, target: float) -> np.ndarray:
    """Return the bin of each cell, int64, ascending: see `merge_cells`."""
    bin_of_cell = np.zeros(counts.size, dtype=np.int64)
    current, weight = 0, 0.0
    for cell, count in enumerate(counts):
        bin_of_cell[cell] = current
        weight += count
        if weight >= target:
            current, weight = current + 1, 0.0
    if weight < target and current > 0:
        bin_of_cell[bin_of_cell == current] = current - 1
    return bin_of_cell


def _merge_categories(
    feature: CategoricalFeature, noisy: np.ndarray, target: float
) -> tuple[FeatureBins, np.ndarray]:
    weights = noisy[: len(feature.categories) + feature.missing]
    kept = weights >= target
    if kept.sum() + (not kept.all()) > MAX_BINS:
        kept = largest(weights, kept, MAX_BINS - 1)
    if kept.any() and not kept.all() and weights[~kept].sum() < target:
        kept[np.flatnonzero(kept)[np.argmin(weights[kept])]] = False
    return category_bins(feature, kept)


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


def numeric_bins(feature: NumericFeature, cuts: np.ndarray, missing_bin: int) -> FeatureBins:
    """Return the bins between `cuts`; a `missing_bin` beyond them becomes a bin of its own."""
    ends = [f"{cut:.6g}" for cut in cuts]
    labels = [
        f"[{start}, {end})" for start, end in zip(["-inf", *ends], [*ends, "inf"], strict=True)
    ]
    if missing_bin == len(labels):
        labels.append(MISSING)
    return FeatureBins(feature, cuts, np.empty(0, dtype=np.int64), tuple(labels), missing_bin)
