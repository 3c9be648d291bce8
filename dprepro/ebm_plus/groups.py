"""Histograms in two levels: cells of a number are counted one by one and in groups of neighbours.

The noise of a sum over many cells grows with their number, and a number has many, most of them
nearly empty. With counts of groups, asked beside those of cells, it grows with the number of groups
instead. What both say of a group is made to agree by least squares, which is post-processing.
Groups of about 16 serve ranges of one number best (Qardaji, Yang and Li 2013, "Understanding
hierarchical methods for differentially private histograms").
"""

from __future__ import annotations

import math

import numpy as np

from dprepro.data.domain import Feature, NumericFeature
from dprepro.privacy.query import Whole

GROUP = 16
"""Cells in a group; the last one may have fewer."""

MISSING_DEVIATION = math.sqrt(0.5)
"""Noise in the count of a number's missing values, which no group has, where a cell's own has 1."""


def exact_answers(feature: Feature, counts: np.ndarray) -> Whole:
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
        return Whole(counts)
    cells, missing = counts[:-1], counts[-1:]
    groups = np.add.reduceat(cells, np.arange(0, cells.size, GROUP))
    units = np.full(counts.size + groups.size, math.sqrt(0.5))
    units[cells.size] = 1.0
    return Whole(np.concatenate([cells, missing, groups]), units)


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
