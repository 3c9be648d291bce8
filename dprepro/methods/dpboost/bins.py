"""Where trees may cut a feature, and the codes that the cuts give to values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.additive.bins import numeric_values
from dprepro.data.domain import CategoricalFeature, Feature, category_codes
from dprepro.runtime.kernels import kernel

MAX_BINS = 255
"""Codes are uint8, and the last one is kept for missing values."""

ZERO = 1e-35
"""LightGBM takes numbers of at most this size for zero."""

MIN_ROWS_IN_BIN = 3
"""LightGBM's min_data_in_bin."""


_BLOCK = 1024
"""Numbers a block: what is held of them stays in the first-level cache."""


@dataclass(frozen=True)
class FeatureCuts:
    """Codes 0 .. n_bins - 1 of one feature; categories count as their position in the domain.

    Attributes
    ----------
    feature
        The feature as its domain describes it.
    cuts
        float64, ascending. The code of x is ``sum(cuts < x)``: a value equal to a cut lies left.
    missing
        Whether missing values have a bin of their own, the last one.
    """

    feature: Feature
    cuts: np.ndarray
    missing: bool

    @property
    def n_bins(self) -> int:
        """The number of bins, that of missing values included."""
        return len(self.cuts) + 1 + self.missing

    def encode(self, numbers: np.ndarray) -> np.ndarray:
        """Return uint8 codes of `as_numbers` (n,). Missing values get the last bin."""
        codes = np.empty(len(numbers), np.uint8)
        _count_cuts(_full(self.cuts), np.ascontiguousarray(numbers), self.n_bins - 1, codes)
        return codes


def _full(cuts: np.ndarray) -> np.ndarray:
    """Return the cuts and then NaN, which is below nothing: a power of two less one in all."""
    full = np.full(2 ** len(cuts).bit_length() - 1, np.nan)
    full[: len(cuts)] = cuts
    return full


@kernel("(float64[::1], const(float64[::1]), int64, uint8[::1])")
def _count_cuts(cuts, numbers, missing, codes):  # type: ignore[no-untyped-def]
    """Write how many cuts lie below each number, or `missing` for NaN; `cuts` are `_full`.

    What `numpy.searchsorted` finds, step by step for a block of numbers: none waits for another,
    and no branch depends on one.
    """
    found = np.empty(_BLOCK, np.int64)
    for start in range(0, numbers.size, _BLOCK):
        block = numbers[start : start + _BLOCK]
        found[:] = 0
        step = (cuts.size + 1) // 2
        while step > 0:
            for i in range(block.size):
                found[i] += step * np.int64(cuts[found[i] + step - 1] < block[i])
            step //= 2
        for i in range(block.size):
            codes[start + i] = found[i] if block[i] == block[i] else missing


def as_numbers(column: pd.Series, feature: Feature) -> np.ndarray:
    """Return a column as float64 (n,): a category becomes its position in the domain.

    Missing values and unknown categories become NaN.

    Raises
    ------
    ValueError
        If a numeric feature's column holds something that is not a number.
    """
    if isinstance(feature, CategoricalFeature):
        codes = category_codes(column, feature.categories)
        return np.where(codes < 0, np.nan, codes)
    return numeric_values(column)


def public_cuts(feature: Feature, max_bins: int) -> FeatureCuts:
    """Return cuts made from the domain alone: they reveal nothing of the rows.

    Categories are cut from one another; numbers, and categories beyond `max_bins`, into `max_bins`
    bins of equal width.
    """
    if isinstance(feature, CategoricalFeature):
        lower, upper = -0.5, len(feature.categories) - 0.5
        bins = min(max(len(feature.categories), 1), max_bins)
    else:
        lower, upper = feature.lower, feature.upper
        bins = max_bins if lower < upper else 1
    return FeatureCuts(feature, np.linspace(lower, upper, bins + 1)[1:-1], feature.missing)


def observed_cuts(numbers: np.ndarray, feature: Feature, max_bins: int) -> FeatureCuts:
    """Return LightGBM's cuts of about equal counts, read from the rows: not covered by epsilon.

    Zero is always a bin of its own; the negative numbers get their share of the other bins, the
    positive ones the rest. Missing values take one bin, if there are any.
    """
    known = numbers[~np.isnan(numbers)]
    missing = known.size < numbers.size
    available = max_bins - missing
    distinct, counts = np.unique(known, return_counts=True)
    negative, positive = distinct < -ZERO, distinct > ZERO
    cuts = np.empty(0)
    if negative.any():
        share = counts[negative].sum() / counts[negative | positive].sum()
        quota = max(1, int(share * (available - 1)))
        cuts = np.append(_greedy_cuts(distinct[negative], counts[negative], quota), -ZERO)
    if positive.any():
        quota = available - 1 - cuts.size
        right = _greedy_cuts(distinct[positive], counts[positive], quota) if quota > 0 else []
        cuts = np.concatenate([cuts, [ZERO], right])
    return FeatureCuts(feature, cuts, missing)


@kernel("(float64[::1], int64[::1], int64)")
def _greedy_cuts(distinct, counts, quota):  # type: ignore[no-untyped-def]
    """Cut ascending distinct values, with their counts, into at most `quota` bins."""
    last = distinct.size - 1
    cuts = np.empty(last)
    found, rows = 0, 0
    if distinct.size <= quota:
        for i in range(last):
            rows += counts[i]
            if rows >= MIN_ROWS_IN_BIN:
                cuts[found] = distinct[i] / 2 + distinct[i + 1] / 2
                found, rows = found + 1, 0
        return cuts[:found]
    quota = min(quota, max(1, counts.sum() // MIN_ROWS_IN_BIN))
    rest_rows, rest_bins = counts.sum(), quota
    big = counts >= rest_rows / quota
    rest_bins -= big.sum()
    rest_rows -= counts[big].sum()
    target = rest_rows / rest_bins if rest_bins > 0 else np.inf
    for i in range(last):
        if found == quota - 1:
            break
        if not big[i]:
            rest_rows -= counts[i]
        rows += counts[i]
        # Half a bin will do before a value that fills one by itself.
        if big[i] or rows >= target or (big[i + 1] and rows >= max(1.0, target / 2)):
            cuts[found] = distinct[i] / 2 + distinct[i + 1] / 2
            found, rows = found + 1, 0
            if not big[i]:
                rest_bins -= 1
                target = rest_rows / rest_bins if rest_bins > 0 else np.inf
    return cuts[:found]
