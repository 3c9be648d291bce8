"""Totally random trees of one feature, drawn without a look at any row.

The cells of a feature are what its values can be told apart by, in all trees: public.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Feature, codes_or_numbers


@dataclass(frozen=True)
class Cells:
    """The cells of one feature.

    Attributes
    ----------
    feature
        The feature, as the domain describes it.
    candidates : float64 (m,)
        Where a numeric feature can be split, ascending. Cell 2j + 1 is candidate j itself, and cell
        2j + 2 lies between it and the next. Empty for a categorical feature, whose cells are its
        categories, and then one for all that is none of them.
    """

    feature: Feature
    candidates: np.ndarray

    @classmethod
    def of(cls, feature: Feature, number: int, border: float | None) -> Cells:
        """Return the cells of so many equidistant candidates.

        They begin at 0 and end below `border`, in the feature's unit; with None they lie between
        the feature's own bounds.
        """
        if isinstance(feature, CategoricalFeature):
            return cls(feature, np.empty(0))
        low, high = (feature.lower, feature.upper) if border is None else (0.0, border)
        return cls(feature, low + (high - low) / number * np.arange(number))

    @property
    def count(self) -> int:
        """The number of cells."""
        if isinstance(self.feature, CategoricalFeature):
            return len(self.feature.categories) + 1
        return 2 * len(self.candidates) + 1

    def encode(self, column: pd.Series, refuse: bool = False) -> np.ndarray:
        """Return the cell of each row, int64 (n,).

        A missing number is in the first cell, a missing or unseen category in the last one.

        Raises
        ------
        ValueError
            With `refuse`, on what the domain rules out. Always, if a numeric feature holds
            something else.
        """
        found = codes_or_numbers(self.feature, column, refuse)
        if isinstance(self.feature, CategoricalFeature):
            return np.where(found < 0, len(self.feature.categories), found)
        values = np.where(np.isnan(found), -np.inf, found)
        below = np.searchsorted(self.candidates, values, side="left")
        return below + np.searchsorted(self.candidates, values, side="right")


@dataclass(frozen=True, eq=False)
class RandomTree:
    """The leaf of each cell of a feature, int64 (cells,), for rows that train, and for predictions.

    Both agree, unless the tree was drawn as published. There are `leaves` that a cell can reach.
    """

    trains: np.ndarray
    predicts: np.ndarray
    leaves: int


def draw_tree(
    cells: Cells,
    depth: int,
    generator: np.random.Generator,
    *,
    constrained: bool = False,
    as_published: bool = False,
) -> RandomTree:
    """Draw a tree in which every node splits at a random candidate, or at a random category.

    Rows below or at the candidate, or of the category, go left.

    Parameters
    ----------
    depth
        Splits on a path, at most.
    constrained
        Whether a node splits only at candidates that its parents leave open, and becomes a leaf
        where fewer than two are. The authors' code leaves a category's own side alone, too.
    as_published
        Whether rows that lie at a candidate train on its right side, as in the authors' code,
        which predicts them on its left side.
    """
    is_category = not len(cells.candidates)
    choices = cells.count - 1 if is_category else len(cells.candidates)
    cell = np.arange(cells.count)
    trains, predicts = np.zeros(cells.count, np.int64), np.zeros(cells.count, np.int64)
    first, last = np.zeros(1, np.int64), np.full(1, choices - 1)
    for _ in range(depth):
        splits = first < last if constrained and not is_category else first <= last
        # A draw for every node, whatever it needs: how many are taken depends on the depth alone.
        drawn = first + (generator.random(len(first)) * (last - first + 1)).astype(np.int64)
        if is_category:
            right = cell[:, None] != drawn
            right_when_training = right
        else:
            right = cell[:, None] > 2 * drawn + 1
            right_when_training = cell[:, None] >= 2 * drawn + 1 if as_published else right
        trains = 2 * trains + (right_when_training & splits)[cell, trains]
        predicts = 2 * predicts + (right & splits)[cell, predicts]
        first, last = _ranges(first, last, drawn, splits, constrained, is_category)
    reached, leaf = np.unique(np.concatenate([trains, predicts]), return_inverse=True)
    return RandomTree(leaf[: cells.count], leaf[cells.count :], len(reached))


def _ranges(
    first: np.ndarray,
    last: np.ndarray,
    drawn: np.ndarray,
    splits: np.ndarray,
    constrained: bool,
    is_category: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the children of all nodes may choose from: a left and a right one for each."""
    if not constrained:
        return np.repeat(first, 2), np.repeat(last, 2)
    if is_category:
        left_last, right_first = first - 1, first
    else:
        left_last, right_first = drawn - 1, drawn + 1
    # What did not split has nothing open any more.
    left_last = np.where(splits, left_last, first - 1)
    right_last = np.where(splits, last, right_first - 1)
    children = [np.column_stack(pair).ravel() for pair in
                ((first, right_first), (left_last, right_last))]  # fmt: skip
    return children[0], children[1]
