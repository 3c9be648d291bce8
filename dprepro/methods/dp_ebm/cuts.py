"""The random cuts of DP-EBM's steps: public, drawn before any row is read."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from dprepro.methods.dp_ebm.kernel import NEVER

_DRAWN = 2**16
"""Draws at a time: the same as all at once."""


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
