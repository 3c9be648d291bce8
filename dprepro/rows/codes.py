"""Numbers of bins as bytes, and rows in each."""

from __future__ import annotations

import numpy as np

from dprepro.compiled import kernel

MAX_BINS = 256
"""Bins that a feature can have, those of missing values and of other categories included: codes are
uint8."""


def as_codes(bins: np.ndarray) -> np.ndarray:
    """Return numbers of bins as uint8.

    Raises
    ------
    ValueError
        If one is not from 0 to 255: as a byte it would be another bin's.
    """
    if bins.size and not 0 <= bins.min() <= bins.max() < MAX_BINS:
        raise ValueError(
            f"bins {bins.min()} to {bins.max()} of a feature do not fit into a byte: a feature has "
            f"at most {MAX_BINS} bins, numbered from 0. Merge cells into fewer bins"
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
    "(uint8[::1], uint8[::1], int64[::1], uint8[::1])",
    "(uint16[::1], uint8[::1], int64[::1], uint8[::1])",
    "(uint32[::1], uint8[::1], int64[::1], uint8[::1])",
)
def _recode(cells, bin_of_cell, order, codes):  # type: ignore[no-untyped-def]
    for i in range(codes.size):
        codes[i] = bin_of_cell[cells[order[i]]]


@kernel("(uint8[::1], int64)", "(uint16[::1], int64)", "(uint32[::1], int64)")
def count_rows(codes, size):  # type: ignore[no-untyped-def]
    """Return how many rows have each code below `size`, int64 (size,).

    As ``np.bincount``, without its copy of the codes as int64. Other threads run meanwhile.
    """
    counts = np.zeros(size, np.int64)
    for code in codes:
        counts[code] += 1
    return counts
