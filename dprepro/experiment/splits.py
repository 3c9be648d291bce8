"""Which rows of a dataset train and which test, and which of a unit's rows train at all.

All rows of a unit are on one side of a split or fold.
"""

from __future__ import annotations

import hmac
import math
import secrets
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from dprepro.data.dataset import Dataset, bounding_key, kept_rows
from dprepro.experiment.config import Evaluation
from dprepro.experiment.plan import split_generator
from dprepro.experiment.record import Task
from dprepro.privacy.budget import ROW

_ALL = "all rows"
"""The part of a dataset that is no side of a split: the key of which rows train follows from it."""


def split_rows(
    n: int, test_share: float, seed: int | None, dataset: str, split: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw one split: a uniform permutation cut in two, without stratification.

    Raises ValueError if either part would be empty.

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

    Raises ValueError if a label has fewer than two rows, or one part would lack a label.

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

    Raises ValueError if there are fewer rows than folds, fewer than two folds, or no such fold.

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

    def __repr__(self) -> str:
        return "Units(...)"  # whose row each one is, and how many there are, is private

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


def held_out_rows(units: np.ndarray | None, rows: int, share: float) -> np.ndarray:
    """Return which rows are held out, bool (rows,): each unit with the probability `share`.

    A unit is held out by an HMAC-SHA256 of its name, under a key of the operating system that is
    not kept; without `units`, object (rows,), each row is by random bits of its own. So which side
    a unit is on follows from chance and this unit, whatever other units there are.
    """
    if units is None:
        drawn = np.frombuffer(secrets.token_bytes(8 * rows), dtype="<u8")
    else:
        key = bounding_key()
        names, of_rows = np.unique(units.astype(str), return_inverse=True)
        digests = [hmac.digest(key, name.encode(), "sha256")[:8] for name in names]
        drawn = np.array([int.from_bytes(each, "big") for each in digests], np.uint64)[of_rows]
    return np.asarray(drawn < np.uint64(share * 2.0**64))


@dataclass(frozen=True)
class SplitKey:
    """The part of a task that decides which rows are where, and what is known of them."""

    dataset: str
    seed: int | None
    split: int
    test_share: float
    domain: str
    evaluation: Evaluation
    unit: str
    rows_per_unit: int

    @classmethod
    def of(cls, task: Task) -> SplitKey:
        """Return that of a task."""
        return cls(
            task.dataset, task.seed, task.split, task.test_share, task.domain, task.evaluation,
            task.unit, task.rows_per_unit,
        )  # fmt: skip


def train_test_rows(
    dataset: Dataset, key: SplitKey
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return X and y of the training rows, then of the test rows.

    Raises ValueError as `row_numbers`, and if a column has numbers on one side of a published test
    set and texts on the other.
    """
    train, test = row_numbers(dataset, key)
    held_out = dataset
    if key.evaluation == "test-set" and dataset.test is not None:
        held_out = dataset.test
        _check_kinds(dataset.X, held_out.X)
    return dataset.X.iloc[train], dataset.y[train], held_out.X.iloc[test], held_out.y[test]


def row_numbers(dataset: Dataset, key: SplitKey) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that train, and those that test, by their numbers from 0, int64, ascending.

    All rows of a unit are on one side. Of those that train, each unit keeps as many as the task
    allows. Those that test are all there are: a model meets new units with all their rows. With
    `evaluation: test-set` these are the rows of `dataset.test`.

    Raises ValueError if one part is empty, if splits cannot be stratified, if there is no test set
    where one is asked for, or if units have rows on both sides of it.
    """
    y, units = dataset.y, Units.of(dataset.units, len(dataset.y))
    match key.evaluation:
        case "test-set":
            if dataset.test is None:
                raise ValueError(f"the card of {key.dataset} names no test set")
            _check_apart(dataset, dataset.test)
            every = np.arange(len(y))
            return _bounded(dataset, key, every, key.split), np.arange(len(dataset.test.y))
        case "folds":
            folds = round(1 / key.test_share)
            partition, fold = divmod(key.split, folds)
            train, test = fold_rows(units.number, folds, key.seed, key.dataset, fold, partition)
        case "stratified":
            _check_strata(dataset)
            train, test = stratified_rows(y, key.test_share, key.seed, key.dataset, key.split)
        case "random":
            train, test = split_rows(units.number, key.test_share, key.seed, key.dataset, key.split)
    return _bounded(dataset, key, units.rows(train), key.split), units.rows(test)


def all_rows_of(dataset: Dataset, key: SplitKey) -> tuple[pd.DataFrame, np.ndarray]:
    """Return X and y of all rows that may train: of each unit as many as the task allows."""
    rows = _bounded(dataset, key, np.arange(len(dataset.y)), _ALL)
    return dataset.X.iloc[rows], dataset.y[rows]


def key_of_all_rows(key: SplitKey) -> bytes | None:
    """Return the key by which `all_rows_of` chooses; None if the operating system has to draw it.

    So a table that is read in chunks trains on the same rows.
    """
    return None if key.seed is None else _key_of(key, _ALL)


def _key_of(key: SplitKey, part: int | str) -> bytes:
    return bounding_key(*([] if key.seed is None else [key.seed, key.dataset, part]))


def _bounded(dataset: Dataset, key: SplitKey, rows: np.ndarray, part: int | str) -> np.ndarray:
    """Return those of `rows` that train.

    Which these are follows from a key: derived from the config's seed, or secret if that is null.
    """
    if key.unit == ROW:
        return rows
    if dataset.units is None:
        raise ValueError(f"the card of {key.dataset} names no unit of privacy")
    secret = _key_of(key, part)
    X, y, units = dataset.X.iloc[rows], dataset.y[rows], dataset.units[rows]
    return rows[kept_rows(X, y, units, key.rows_per_unit, secret)]


def _check_strata(dataset: Dataset) -> None:
    """Refuse stratified splits where rows have no labels, or several rows have one owner."""
    if dataset.task == "regression":
        raise ValueError("stratified splits are for labels, and this is a regression dataset")
    if dataset.units is not None:
        raise ValueError(
            "stratified splits would put rows of one unit on both sides: use random splits or folds"
        )


def _check_kinds(train: pd.DataFrame, test: pd.DataFrame) -> None:
    """Refuse columns that a file was read for as numbers and the other as texts: none would match.

    A column without any value fits either.
    """
    for name in train.columns.intersection(test.columns):
        columns = (train[name], test[name])
        one, other = (pd.api.types.is_numeric_dtype(column.dtype) for column in columns)
        if one != other and all(column.notna().any() for column in columns):
            raise ValueError(
                f"column {name!r} holds numbers on one side of the published test set and texts on "
                "the other: write it alike in both files, or name its kind under `features`"
            )


def _check_apart(dataset: Dataset, test: Dataset) -> None:
    """Refuse published test rows of units that also train."""
    if dataset.units is None or test.units is None:
        return
    if not set(dataset.units).isdisjoint(test.units):
        raise ValueError(
            f"units of {dataset.name} have rows on both sides of the published test set, so scores "
            "would be too good: use random splits or folds, which keep the rows of a unit together"
        )
