"""A public grid that suits skewed features: the cells of a number, and of categories."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pandas as pd

from dprepro.additive.bins import (
    cell_codes,
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
from dprepro.rows.partition import count_rows
from dprepro.runtime.kernels import kernel

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
