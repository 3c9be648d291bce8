"""Bins merged from noisy histograms, and random cuts: Algorithm 2, lines 7 and 14."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.random import Generator

from dprepro.additive.bins import (
    FeatureBins,
    category_bins,
    cell_codes,
    largest,
    numeric_bins,
    numeric_values,
)
from dprepro.data.domain import (
    CategoricalFeature,
    Feature,
    NumericFeature,
    category_codes,
    refuse_missing,
    refuse_unseen,
)
from dprepro.methods.dp_ebm.kernel import NEVER
from dprepro.rows.partition import MAX_BINS, count_rows
from dprepro.runtime.kernels import kernel

_NARROWEST = 1e-290
"""Bounds nearer to each other have a reciprocal that could overflow."""

_DRAWN = 2**16
"""Draws at a time: the same as all at once."""


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
        cells = _cells(numeric_values(column), edges, edges.size == 2 * max_bins + 1)
        return cells, count_rows(cells, edges.size)
    codes = category_codes(column, feature.categories)
    refuse_unseen(feature, (codes < 0) & ~missing)
    cells = cell_codes(codes, len(feature.categories))
    return cells, count_rows(cells, len(feature.categories) + 1)


def cell_edges(feature: NumericFeature, max_bins: int) -> np.ndarray:
    """Return the edges of a numeric feature's ``2 * max_bins`` cells, float64, ascending.

    Edges that coincide, as of bounds a few floating-point numbers apart, are one: there are fewer
    cells then. A feature that is constant by its bounds has one cell.
    """
    lower, upper = float(feature.lower), float(feature.upper)
    if lower == upper:
        return np.array([lower, upper])
    return np.unique(np.clip(np.linspace(lower, upper, 2 * max_bins + 1), lower, upper))


def _cells(values: np.ndarray, edges: np.ndarray, is_uniform: bool) -> np.ndarray:
    """Return the cell of each value, uint16 (n,): ``sum(edges[1:-1] <= x)``; NaN is in the last."""
    if is_uniform and edges[-1] - edges[0] > _NARROWEST:
        found: np.ndarray = _uniform_cells(values, edges)
        return found
    # Where edges coincide, no division says which cell it is.
    cells = np.searchsorted(edges[1:-1], values, side="right")
    return np.where(np.isnan(values), edges.size - 1, cells).astype(np.uint16)


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
        The bins and their noisy counts, each positive; whole numbers if `noisy` holds such.
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
    return bins, np.where(counts > 0, counts, max(1.0, np.rint(target))), bin_of_cell


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


def random_cuts(
    generator: Generator,
    n_bins: np.ndarray,
    n_epochs: int,
    max_leaves: int,
    empty_first_bin: bool = False,
) -> np.ndarray:
    """Draw the cuts of every step: Algorithm 2, line 14. Reads no data.

    Each step on a feature of B bins draws min(max_leaves, B) - 1 of its B - 1 gaps, uniformly and
    without replacement.

    With `empty_first_bin` it draws as if one more bin, without rows, came before the first. The
    authors' library did so in 2021: its first bin was that of missing values. A cut behind that bin
    parts no rows, and is left out.

    Returns
    -------
    uint8 (n_epochs * K, C)
        Step t is on feature t mod K. First bins of the leaves after the first, ascending, padded
        with `NEVER` to an even C >= max(2, max_leaves - 1).

    Raises
    ------
    ValueError
        With `empty_first_bin`, if a feature has more than 255 bins: `NEVER` would then be a cut.
    """
    if empty_first_bin and n_bins.max(initial=0) > NEVER:
        raise ValueError("empty_first_bin allows at most 255 bins; choose a smaller max_bins")
    width = max(2, max_leaves - 1 + (max_leaves - 1) % 2)
    cuts = np.full((n_epochs, n_bins.size, width), NEVER, dtype=np.uint8)
    for k, bins in enumerate(n_bins):
        drawn_from = int(bins) + empty_first_bin
        wanted = min(max_leaves, drawn_from) - 1
        chosen = _distinct_gaps(generator, drawn_from - 1, wanted, n_epochs)
        if empty_first_bin:
            chosen = np.where(chosen == 1, NEVER, chosen - 1)  # its gap is the first
            chosen = np.sort(chosen, axis=1)[:, : int(bins) - 1]
        cuts[:, k, : chosen.shape[1]] = chosen
    return cuts.reshape(n_epochs * n_bins.size, width)


def _distinct_gaps(generator: Generator, gaps: int, wanted: int, size: int) -> np.ndarray:
    """Return 1 plus the numbers of gaps, int16 (size, wanted), ascending."""
    chosen = np.empty((size, wanted), dtype=np.int16)
    for taken in range(wanted):
        for start in range(0, size, _DRAWN):
            block = chosen[start : start + _DRAWN]
            # The d-th of the gaps that are still free, found by stepping over those already chosen.
            draw = generator.integers(0, gaps - taken, len(block))
            for earlier in block[:, :taken].T:
                draw += draw >= earlier
            block[:, taken] = draw
            block[:, : taken + 1].sort(axis=1)
    return chosen + np.int16(1)
