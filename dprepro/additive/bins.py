"""How the values of a feature become bins and codes, and how bins of two features become cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.additive.units import Powers, on_grid
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

        Raises ValueError if a numeric feature's column holds something that is not a number.
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

    Raises ValueError if the column holds categories; the message names it.
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


MOST_GROUPS = 16
"""Groups of bins along each side of a pair: 16 times 16 cells have a number each in uint8."""

BETWEEN = " & "
"""What stands between the names of two features, or of two bins."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two features whose bins are joined into groups: a pair of groups is a cell.

    Cells are numbered row by row: that of the groups g and h has the number g H + h.

    Attributes
    ----------
    first, second
        Positions of the features, the first one lower.
    first_groups, second_groups : uint8 (B,)
        The group of each bin, from 0 to G - 1 and to H - 1; see `MOST_GROUPS`.
    """

    first: int
    second: int
    first_groups: np.ndarray
    second_groups: np.ndarray

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same features and groups."""
        return isinstance(other, Pair) and self._key == other._key

    def __hash__(self) -> int:
        """Pairs that are equal have the same."""
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int, bytes, bytes]:
        return self.first, self.second, self.first_groups.tobytes(), self.second_groups.tobytes()

    @property
    def shape(self) -> tuple[int, int]:
        """How many groups G and H there are on each side."""
        return int(self.first_groups.max()) + 1, int(self.second_groups.max()) + 1

    @property
    def n_cells(self) -> int:
        """G times H."""
        rows, columns = self.shape
        return rows * columns

    def cells_of(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the cell, uint8 (n,), of rows whose bins in both features, (n,), are known."""
        steps = self.first_groups * np.uint8(self.shape[1])
        return np.asarray(steps[first] + self.second_groups[second])


@dataclass(frozen=True, eq=False)
class PairTerm:
    """A function of two features. It adds up to zero along both sides, up to rounding.

    Attributes
    ----------
    pair
        Its features and cells.
    values : float64 (G, H)
        Log odds for classification, the target's unit for regression.
    counts : float64 (G, H)
        About how many training rows lie in each cell: made of released numbers.
    noise : float64 (G, H), or None
        Standard deviation a posteriori of each value as it was released, where it is known.
    """

    pair: Pair
    values: np.ndarray
    counts: np.ndarray
    noise: np.ndarray | None = None

    def on_grids(self, powers: Powers) -> PairTerm:
        """Return the same function, rounded to the grids of a model's numbers."""
        return PairTerm(
            self.pair,
            on_grid(self.values, powers.functions),
            on_grid(self.counts, powers.counts),
            None if self.noise is None else on_grid(self.noise, powers.functions),
        )

    def at(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the values, float64 (n,), of rows with these bins; 0 where a bin is -1."""
        cells = self.pair.cells_of(np.maximum(first, 0), np.maximum(second, 0))
        return np.where((first < 0) | (second < 0), 0.0, self.values.ravel()[cells])


def pair_name(first: object, second: object) -> str:
    """Return what a function of two features is called.

    Examples
    --------
    >>> pair_name("age", "hours")
    'age & hours'
    """
    return f"{first}{BETWEEN}{second}"


def even_groups(counts: np.ndarray, order: np.ndarray, most: int = MOST_GROUPS) -> np.ndarray:
    """Join bins that are next to each other in `order` into groups of about as many rows.

    Parameters
    ----------
    counts : float64 (B,)
        Rows in each bin, positive.
    order : int (B,)
        The bins in the order in which they may be joined.
    most
        So many groups at most.

    Returns
    -------
    uint8 (B,)
        The group of each bin; every group has at least one.

    Examples
    --------
    >>> even_groups(np.array([1.0, 1.0, 2.0, 4.0]), np.arange(4), 2)
    array([0, 0, 0, 1], dtype=uint8)
    """
    if counts.size <= most:
        groups = np.arange(counts.size)
    else:
        # The middle of a bin decides in which of the equal parts of all rows it lies.
        sizes = counts[order]
        middles = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
        parts = np.minimum((middles * most).astype(int), most - 1)
        groups = np.cumsum(np.diff(parts, prepend=parts[:1]) > 0)
    found = np.empty(counts.size, np.uint8)
    found[order] = groups
    return found


def without_sides(
    values: np.ndarray, first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray
) -> np.ndarray:
    """Take from values, (G, H), what depends on one side alone: the weighted means along both.

    `first`, (G,), and `second`, (H,), are the weights of the groups on each side. Every row then
    has the mean 0 under `second`, and every column under `first`.
    """
    of_rows = np.average(values, axis=1, weights=second)[:, None]
    of_columns = np.average(values, axis=0, weights=first)[None, :]
    level = np.average(of_rows.ravel(), weights=first)
    return np.asarray(values - of_rows - of_columns + level)
