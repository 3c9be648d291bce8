"""Totally random trees: splits are drawn before anything is asked of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of splits, drawn from public randomness. Leaves are numbered from left to right.

    Attributes
    ----------
    feature : int64 (nodes,)
        The feature of a split; -1 for a leaf.
    cut : int64 (nodes,)
        Rows in bins up to this one go left. For a leaf, its number.
    threshold : float64 (nodes,)
        The candidate of that number: values up to it go left.
    left, right : int64 (nodes,)
        The children of a split.
    """

    feature: np.ndarray
    cut: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @cached_property
    def leaves(self) -> int:
        """The number of leaves."""
        return int((self.feature < 0).sum())

    @cached_property
    def only_feature(self) -> int | None:
        """The feature of all splits, or None if they have several. Without splits it is 0."""
        used = np.unique(self.feature[self.feature >= 0])
        if used.size > 1:
            return None
        return int(used[0]) if used.size else 0

    def places(self, codes: np.ndarray) -> np.ndarray:
        """Return the leaf of each row, int64 (n,), from the bins of its features, (K, n)."""
        if self.only_feature is None:
            return self._walk(codes, self.cut)
        column = codes[self.only_feature]
        cuts = np.sort(self.cut[self.feature >= 0])
        of_bin = np.searchsorted(cuts, np.arange(np.iinfo(column.dtype).max + 1), side="left")
        return np.take(of_bin, column)

    def places_of(self, values: np.ndarray) -> np.ndarray:
        """Return the leaf of each row, int64 (n,), from the values of its features, (K, n)."""
        if self.only_feature is None:
            return self._walk(values, self.threshold)
        return np.searchsorted(self.thresholds, values[self.only_feature], side="left")

    @cached_property
    def thresholds(self) -> np.ndarray:
        """The thresholds of all splits, ascending."""
        return np.sort(self.threshold[self.feature >= 0])

    def _walk(self, columns: np.ndarray, cuts: np.ndarray) -> np.ndarray:
        places = np.empty(columns.shape[1], np.int64)
        waiting = [(0, np.arange(columns.shape[1], dtype=np.int32))]
        while waiting:
            node, rows = waiting.pop()
            feature = self.feature[node]
            if feature < 0:
                places[rows] = self.cut[node]
                continue
            # A missing value is not above a threshold, and goes right all the same.
            goes_left = np.take(columns[feature], rows) <= cuts[node]
            waiting.append((self.left[node], np.compress(goes_left, rows)))
            waiting.append((self.right[node], np.compress(~goes_left, rows)))
        return places


def draw_tree(
    generator: np.random.Generator,
    candidates: Sequence[np.ndarray],
    features: Iterable[int],
    max_depth: int,
) -> Tree:
    """Draw a tree: each split takes a feature and one of its candidates, all alike likely.

    A feature is left out where no candidate is left. As in the authors' program, the candidate just
    below a split takes no part on its left side.

    Parameters
    ----------
    generator
        Of public choices.
    candidates
        Of all features, ascending.
    features
        Those that may be split on.
    """
    growing = _Growing(generator, candidates, max_depth)
    growing.grow(0, {k: (0, len(candidates[k])) for k in features})
    return Tree(*growing.columns())


class _Growing:
    """A tree that is being drawn: its nodes so far."""

    def __init__(
        self, generator: np.random.Generator, candidates: Sequence[np.ndarray], max_depth: int
    ) -> None:
        self._generator, self._candidates, self._max_depth = generator, candidates, max_depth
        self._nodes: list[list[float]] = []
        self._leaves = 0

    def grow(self, depth: int, left: dict[int, tuple[int, int]]) -> int:
        """Add a node and all below it, return its place; `left` has the candidates that are left.

        They are a range of numbers [first, end) of each feature.
        """
        place = len(self._nodes)
        usable = [k for k, (first, end) in left.items() if first < end]
        if depth == self._max_depth or not usable:
            self._nodes.append([-1, self._leaves, 0.0, -1, -1])
            self._leaves += 1
            return place
        feature = usable[int(self._generator.integers(len(usable)))]
        first, end = left[feature]
        cut = int(self._generator.integers(first, end))
        node = [feature, cut, float(self._candidates[feature][cut]), -1, -1]
        self._nodes.append(node)
        node[3] = self.grow(depth + 1, {**left, feature: (first, cut - 1)})
        node[4] = self.grow(depth + 1, {**left, feature: (cut + 1, end)})
        return place

    def columns(self) -> list[np.ndarray]:
        """Return the attributes of the tree."""
        kinds = (np.int64, np.int64, np.float64, np.int64, np.int64)
        return [
            np.array(values, dtype=kind)
            for values, kind in zip(zip(*self._nodes, strict=True), kinds, strict=True)
        ]


def sum_of_steps(
    trees: Sequence[Tree], values: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return trees of one feature as one function: thresholds (k,) ascending, and k + 1 values.

    The function has value i from above threshold i - 1 up to threshold i.
    """
    thresholds = np.unique(np.concatenate([np.empty(0), *(tree.thresholds for tree in trees)]))
    ends = np.append(thresholds, np.inf)
    steps = np.zeros(len(ends))
    for tree, of_leaves in zip(trees, values, strict=True):
        steps += of_leaves[np.searchsorted(tree.thresholds, ends, side="left")]
    return thresholds, steps
