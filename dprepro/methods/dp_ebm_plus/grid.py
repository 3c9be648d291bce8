"""A public grid that suits skewed features, and bins merged by what the noise lets one see.

Cells of a number are counted one by one and in groups of neighbours. The noise of a sum over many
cells grows with their number, and a number has many, most of them nearly empty. With counts of
groups, asked beside those of cells, it grows with the number of groups instead. What both say of a
group is made to agree by least squares, which is post-processing. Groups of about 16 serve ranges
of one number best (Qardaji, Yang and Li 2013, "Understanding hierarchical methods for
differentially private histograms").
"""

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
from dprepro.data.domain import (
    CategoricalFeature,
    Feature,
    NumericFeature,
    category_codes,
    refuse_missing,
    refuse_unseen,
)
from dprepro.privacy.query import ScaledInteger
from dprepro.rows.partition import count_rows
from dprepro.runtime.kernels import kernel

GROUP = 16
"""Cells in a group; the last one may have fewer."""

MISSING_DEVIATION = math.sqrt(0.5)
"""Noise in the count of a number's missing values, which no group has, where a cell's own has 1."""

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


def exact_answers(feature: Feature, counts: np.ndarray) -> ScaledInteger:
    """Return what is asked of a feature, A whole numbers: private until noise is added.

    Of a category its counts. Of a number its counts, then those of groups, all but that of missing
    values in units of 1 / sqrt(2): a row adds 1 to one cell and 1 to one group, or 1 to the missing
    values. Either way, in these units, a row adds a vector of norm 1.

    Parameters
    ----------
    counts : int64 (C,)
        Rows per cell, as `fine_cells` returns them; the last are those with missing values.
    """
    if not isinstance(feature, NumericFeature):
        return ScaledInteger(counts)
    cells, missing = counts[:-1], counts[-1:]
    groups = np.add.reduceat(cells, np.arange(0, cells.size, GROUP))
    units = np.full(counts.size + groups.size, math.sqrt(0.5))
    units[cells.size] = 1.0
    return ScaledInteger(np.concatenate([cells, missing, groups]), units)


def agreeing_counts(
    feature: Feature, answers: np.ndarray, deviation: float
) -> tuple[np.ndarray, float]:
    """Return rows per cell, float64 (C,), as likely as can be given noisy answers.

    A group of m cells that holds g by its own count and s by those of its cells gives each cell
    (g - s) / (m + 1) more.

    Parameters
    ----------
    answers : float64 (A,)
        `exact_answers` and noise.
    deviation
        Standard deviation of the noise in each.

    Returns
    -------
    counts, deviation
        The second is the noise that a cell's own count had, for `sum_deviations`.
    """
    if not isinstance(feature, NumericFeature):
        return answers, deviation
    # n cells and their groups are n + ceil(n / GROUP) answers; one more is of missing values.
    cells = (answers.size - 1) * GROUP // (GROUP + 1)
    counts = math.sqrt(2) * answers[:cells]
    group = np.arange(cells) // GROUP
    gaps = math.sqrt(2) * answers[cells + 1 :] - np.bincount(group, counts)
    counts += (gaps / (np.bincount(group) + 1))[group]
    return np.append(counts, answers[cells]), math.sqrt(2) * deviation


def variance_steps(cells: int) -> np.ndarray:
    """Return what the k-th neighbour from one group adds to the variance of a sum, (cells, GROUP).

    Errors within a group of m cells have covariance I - 1/(m + 1): k of them have the variance
    k - k^2 / (m + 1), in units of that of a cell's own count. Row i is for cell i's group; column
    k - 1 is for the k-th cell.
    """
    group = np.arange(cells) // GROUP
    members = np.bincount(group)[group] if cells else group
    return 1 - (2 * np.arange(1, GROUP + 1) - 1) / (members[:, None] + 1)


def sum_deviations(
    feature: Feature, bin_of_cell: np.ndarray, n_bins: int, deviation: float
) -> np.ndarray:
    """Return the standard deviation of the noise in the sums over bins of cells, float64 (B,).

    Parameters
    ----------
    bin_of_cell : int (C,)
        The last one is of missing values, which are known to be none where the domain allows none.
    deviation
        As `agreeing_counts` returns it.
    """
    is_numeric = isinstance(feature, NumericFeature)
    missing = np.zeros(n_bins)
    missing[bin_of_cell[-1]] = feature.missing * (MISSING_DEVIATION**2 if is_numeric else 1.0)
    own = bin_of_cell[:-1].astype(np.int64)
    if not is_numeric:
        return deviation * np.sqrt(missing + np.bincount(own, minlength=n_bins))
    group = np.arange(own.size) // GROUP
    members = np.bincount(group)
    shared = np.bincount(own * members.size + group, minlength=n_bins * members.size)
    shared = shared.reshape(n_bins, members.size)
    return deviation * np.sqrt(missing + (shared - shared**2 / (members + 1)).sum(axis=1))


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
    """Sort rows into public cells; as `dprepro.methods.dp_ebm.binning.histogram`, on `grid_edges`.

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
        had, as `dprepro.methods.dp_ebm_plus.grid.agreeing_counts` returns them.
    rows
        How many rows there are, about.
    seen
        Deviations of noise above which a numeric bin is taken to be there.
    fewest
        Rows that a numeric bin is to hold whatever the noise, unless they are over a 24th.

    Returns
    -------
    bins, counts, bin_of_cell
        As `dprepro.methods.dp_ebm.binning.merge_cells` returns them.
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
