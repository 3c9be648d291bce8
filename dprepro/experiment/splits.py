"""Random splits and folds: which rows train, which test. All rows of a unit are on one side."""

from __future__ import annotations

import math
from typing import NamedTuple

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
        raise ValueError(f"too few rows for test_share {test_share}: one part is empty")
    order = split_generator(seed, dataset, split).permutation(n)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def stratified_rows(
    labels: np.ndarray, test_share: float, seed: int | None, dataset: str, split: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw one split that holds out a share of each label, up to a row.

    Parameters
    ----------
    labels
        Of all rows, (n,).
    test_share
        As `split_rows`.

    Returns
    -------
    train, test
        As `split_rows`.

    Raises
    ------
    ValueError
        If a label has fewer than two rows, or one part would lack a label.
    """
    from sklearn.model_selection import train_test_split  # for tasks alone: it takes half a second

    state = int(split_generator(seed, dataset, split).integers(2**32))
    try:
        train, test = train_test_split(
            np.arange(len(labels)), test_size=test_share, stratify=labels, random_state=state
        )
    except ValueError:  # its message counts rows
        raise ValueError(
            "stratified splits need rows of every label in both parts: use random splits"
        ) from None
    return np.sort(train), np.sort(test)


def fold_rows(
    n: int, folds: int, seed: int | None, dataset: str, fold: int, partition: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return one fold of a random partition into equal parts (up to one row), unstratified.

    Parameters
    ----------
    fold
        From 0 on, within the partition.
    partition
        Each number stands for another one.

    Returns
    -------
    train, test
        Sorted int64 row numbers; the test rows of all `folds` folds are ``0 .. n-1``, each once.

    Raises
    ------
    ValueError
        If there are fewer rows than folds, fewer than two folds, or no such fold.
    """
    if not (2 <= folds <= n and 0 <= fold < folds):
        raise ValueError(
            f"cannot take fold {fold} of {folds}: too few rows, or there is no such fold"
        )
    parts = np.array_split(split_generator(seed, dataset, partition).permutation(n), folds)
    train = np.concatenate(parts[:fold] + parts[fold + 1 :])
    return np.sort(train), np.sort(parts[fold])


class Units(NamedTuple):
    """Units in the order of their names, and whose row each one is.

    Attributes
    ----------
    number
        How many units there are.
    of_rows : int64 (n,)
        The place of each row's unit in that order.
    """

    number: int
    of_rows: np.ndarray

    @classmethod
    def of(cls, names: np.ndarray | None, rows: int) -> Units:
        """Return the units of rows by their names, object (n,); each row its own without any."""
        if names is None:
            return cls(rows, np.arange(rows))
        found, of_rows = np.unique(names.astype(str), return_inverse=True)
        return cls(len(found), of_rows)

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Return the ascending row numbers, int64, of all rows of the units with these places."""
        is_chosen = np.zeros(self.number, dtype=bool)
        is_chosen[chosen] = True
        return np.flatnonzero(is_chosen[self.of_rows])
