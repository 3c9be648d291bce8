"""Random splits into training and test rows."""

from __future__ import annotations

import math

import numpy as np

from dprepro.experiment.seeds import split_generator


def split_rows(
    n: int, test_share: float, seed: int | None, dataset: str, split: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw one split: a uniform permutation cut in two, without stratification.

    Parameters
    ----------
    n
        Number of rows.
    test_share
        Share of rows to hold out, in (0, 1); their number is rounded up.

    Returns
    -------
    train, test
        Sorted int64 row numbers; disjoint, together ``0 .. n-1``.

    Raises
    ------
    ValueError
        If either part would be empty.
    """
    n_test = math.ceil(n * test_share)
    if not 0 < n_test < n:
        raise ValueError(f"cannot split {n} rows with test_share {test_share}: one part is empty")
    order = split_generator(seed, dataset, split).permutation(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])
