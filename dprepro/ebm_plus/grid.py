"""A public grid that suits skewed features, and bins merged by what the noise lets one see."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pandas as pd

from dprepro.additive.bins import (
    FeatureBins,
    category_bins,
    cell_codes,
    largest,
    numeric_bins,
    numeric_values,
)
from dprepro.compiled import kernel
from dprepro.data.domain import (
    CategoricalFeature,
    Feature,
    NumericFeature,
    category_codes,
    refuse_missing,
    refuse_unseen,
)
from dprepro.ebm_plus.groups import MISSING_DEVIATION, sum_deviations, variance_steps
from dprepro.rows.codes import count_rows

_BLOCK = 512
"""Values that are sorted into cells at a time."""

_EVEN_CELLS = 128
_DECADES = 5
_CELLS_PER_DECADE = 12

# In decimals, since the last bit of a power in floating point depends on the machine.
_FRACTIONS = np.array(
    [
        float(10 ** (Decimal(-k) / _CELLS_PER_DECADE))
        for k in range(_DECADES * _CELLS_PER_DECADE + 1)
    ]
)
"""Powers of ten, 12 a decade, from 1 down over five decades."""

FINEST = 250
"""No bin aims at fewer rows than this share of all. Codes are uint8: more categories are joined; of
cells a number has 249 at most, and missing values."""

_COARSEST = 24
"""A numeric bin that holds one in so many of all rows is closed, whatever the noise."""

_MISSING_SEEN = 4.0
"""Deviations of noise above which missing values are taken to be there."""


def grid_edges(feature: NumericFeature) -> np.ndarray:
    """Return the edges between a numeric feature's cells, float64 ascending (C,).

    128 cells of equal width, overlaid where the public bounds span orders of magnitude with 12 a
    decade: five decades down from the larger bound towards 0 and 0 itself where it is within the
    bounds (both signs), from bound to bound where both have one sign and are a decade apart. Edges
    nearer to each other than a billionth of the range are one. Only the bounds are read. A value x
    lies in cell ``sum(edges <= x)``.
    """
    lower, upper = feature.lower, feature.upper
    if lower == upper:
        return np.empty(0)
    # Not a difference of the bounds, which could overflow.
    parts = np.arange(1, _EVEN_CELLS) / _EVEN_CELLS
    found = [lower * (1 - parts) + upper * parts]
    if lower <= 0 <= upper:
        found += [bound * _FRACTIONS for bound in (lower, upper) if bound != 0] + [np.zeros(1)]
    else:
        found.append(_geometric(lower, upper))
    edges = np.unique(np.concatenate(found))
    edges = edges[(edges > lower) & (edges < upper)]
    apart = np.diff(edges / 2) > 1e-9 * (upper / 2 - lower / 2)
    return edges[np.append(np.ones(min(edges.size, 1), dtype=bool), apart)]


def possible_cuts(feature: Feature) -> np.ndarray:
    """Return what can be a cut of a number, float64; of categories none."""
    return np.empty(0) if isinstance(feature, CategoricalFeature) else grid_edges(feature)


@lru_cache(maxsize=4096)
def _geometric(lower: float, upper: float) -> np.ndarray:
    """Return edges between bounds of one sign, 12 a decade; none within a decade."""
    ratio = Decimal(upper) / Decimal(lower)
    decades = abs(ratio.log10())
    cells = math.ceil(_CELLS_PER_DECADE * decades) if decades > 1 else 0
    return np.array(
        [float(Decimal(lower) * ratio ** (Decimal(k) / cells)) for k in range(1, cells)]
    )


def cell_extents(feature: Feature) -> np.ndarray:
    """Return each cell's share of the public range, float64 (cells,), as `fine_cells` counts them.

    A cell's width over that of the bounds; one over the number of categories; 0 for missing values.
    """
    if isinstance(feature, CategoricalFeature):
        categories = len(feature.categories)
        return np.append(np.full(categories, 1 / max(categories, 1)), 0.0)
    edges = np.concatenate([[feature.lower], grid_edges(feature), [feature.upper]]) / 2
    width = edges[-1] - edges[0]
    # Bounds next to each other may have halves that are one: their cells count alike.
    even = np.full(edges.size - 1, 1 / (edges.size - 1))
    return np.append(np.diff(edges) / width if width > 0 else even, 0.0)


def fine_cells(column: pd.Series, feature: Feature) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows into public cells; as `dprepro.ebm.binning.histogram`, on `grid_edges`.

    Returns
    -------
    cells : uint16 (n,)
        Cell of every row; the last one takes missing values. uint32 where there are more categories
        than uint16 can number.
    counts : int64 (cells,)
        Rows per cell, exact: private until noise is added. A row lies in exactly one.

    Raises
    ------
    ValueError
        On a category outside the domain, or a missing value where the domain allows none.
    """
    missing = column.isna().to_numpy()
    refuse_missing(feature, missing)
    if isinstance(feature, NumericFeature):
        edges = grid_edges(feature)
        return _count_cells(_cells(numeric_values(column), edges), edges.size + 2)
    codes = category_codes(column, feature.categories)
    refuse_unseen(feature, (codes < 0) & ~missing)
    cells = cell_codes(codes, len(feature.categories))
    return _count_cells(cells, len(feature.categories) + 1)


def _count_cells(cells: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    return cells, count_rows(cells, size)


@kernel("(const(float64[:]), float64[::1])")
def _cells(values, edges):  # type: ignore[no-untyped-def]
    """Do what ``np.searchsorted(edges, values, "right")`` does; NaN goes one cell beyond.

    All values of a block take a step of the search, then the next one: there is no branch that
    depends on a value, so that many are compared at a time.
    """
    cells, low = np.empty(values.size, np.uint16), np.empty(_BLOCK, np.uint64)
    zero, one, two = np.uint64(0), np.uint64(1), np.uint64(2)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        found = low[: block.size]
        found[:] = zero
        left = np.uint64(edges.size)
        while left > zero:
            half = (left + one) // two
            for i in range(block.size):
                found[i] += half if edges[found[i] + half - one] <= block[i] else zero
            left -= half
        for i in range(block.size):
            cells[start + i] = edges.size + 1 if np.isnan(block[i]) else found[i]
    return cells


def merge_fine(
    feature: Feature,
    noisy: np.ndarray,
    deviation: float,
    rows: float,
    *,
    seen: float,
    fewest: float = 0.0,
) -> tuple[FeatureBins, np.ndarray, np.ndarray]:
    """Merge noisy cells into bins, by the noise in them. Post-processing: reads no data.

    Numeric: cells join from left to right until a bin holds
    `seen` deviations of the noise of its cells, so that more budget buys finer bins; or a 24th
    of the rows if that is less, so that little budget still buys a few. Categorical: a category
    below one deviation (or that share, if smaller) joins one "other" bin. Missing values, where the
    domain allows them, count as one more category; those of a numeric feature join its
    largest bin where they do not reach four deviations.

    Parameters
    ----------
    noisy, deviation
        Noisy counts, float64 (cells,), the last one of missing values, and the noise that each
        had, as `dprepro.ebm_plus.groups.agreeing_counts` returns them.
    rows
        How many rows there are, about.
    seen
        Deviations of noise above which a numeric bin is taken to be there.
    fewest
        Rows that a numeric bin is to hold whatever the noise, unless they are over a 24th.

    Returns
    -------
    bins, counts, bin_of_cell
        As `dprepro.ebm.binning.merge_cells` returns them.
    """
    if isinstance(feature, CategoricalFeature):
        bins, bin_of_cell = _merge_categories(feature, noisy, min(deviation, rows / _COARSEST))
    else:
        bins, bin_of_cell = _merge_numeric(feature, noisy, deviation, rows, seen, fewest)
    # The cell of missing values is empty, and known to be, where the domain allows none.
    used = slice(None) if feature.missing else slice(-1)
    counts = np.bincount(bin_of_cell[used], weights=noisy[used], minlength=bins.n_bins)
    uncertainty = sum_deviations(feature, bin_of_cell, bins.n_bins, deviation)
    # A count lost in the noise is as likely half a deviation as anything, and never above average.
    least = np.minimum(uncertainty / 2, rows / bins.n_bins / 4)
    counts = np.maximum(counts, least)
    # Bins end where noise lifts them over a threshold: together they count too many rows.
    return bins, counts * (rows / counts.sum()), bin_of_cell


def _merge_numeric(
    feature: NumericFeature,
    noisy: np.ndarray,
    deviation: float,
    rows: float,
    seen: float,
    fewest: float,
) -> tuple[FeatureBins, np.ndarray]:
    most = rows / _COARSEST
    least = min(max(rows / FINEST, fewest), most)
    steps = variance_steps(noisy.size - 1)
    bin_of_cell = _merge_neighbours(noisy[:-1], steps, seen * deviation, least, most)
    cuts = grid_edges(feature)[np.diff(bin_of_cell) > 0]
    if not feature.missing:
        missing_bin = -1
    elif noisy[-1] >= _MISSING_SEEN * MISSING_DEVIATION * deviation:
        missing_bin = cuts.size + 1
    else:
        missing_bin = int(np.bincount(bin_of_cell, weights=noisy[:-1]).argmax())
    bins = numeric_bins(feature, cuts, missing_bin)
    return bins, np.append(bin_of_cell, max(missing_bin, 0))


@kernel("(float64[::1], float64[:, ::1], float64, float64, float64)")
def _merge_neighbours(counts, steps, seen, least, most):  # type: ignore[no-untyped-def]
    bins = np.zeros(counts.size, np.int64)
    current, weight, variance, together = 0, 0.0, 0.0, 0
    for i in range(counts.size):
        if i % steps.shape[1] == 0:
            together = 0
        bins[i] = current
        weight += counts[i]
        variance += steps[i, together]
        together += 1
        if weight >= max(min(seen * math.sqrt(variance), most), least):
            current, weight, variance, together = current + 1, 0.0, 0.0, 0
    if current > 0:
        bins[bins == current] = current - 1
    return bins


def _merge_categories(
    feature: CategoricalFeature, noisy: np.ndarray, target: float
) -> tuple[FeatureBins, np.ndarray]:
    weights = noisy[: len(feature.categories) + feature.missing]
    return category_bins(feature, largest(weights, weights >= target, FINEST))
