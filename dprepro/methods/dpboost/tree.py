"""A released tree, and the size and budget of a model of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.methods.dpboost.kernel import add_trees, pack_tree, whole
from dprepro.methods.dpboost.variants import Variant


@dataclass(frozen=True)
class Tree:
    """A released tree. `kernel.grow` has the arrays; none holds a count or an exact sum.

    Attributes
    ----------
    feature, cut, left : int64 (nodes,)
        Rows with ``codes[feature] <= cut`` go to node `left`, others to ``left + 1``. Feature -1
        marks a leaf.
    value : float64 (nodes,)
        The learning rate times the noisy value of each leaf, a multiple of `kernel.UNIT`; 0 at
        inner nodes.
    """

    feature: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    value: np.ndarray


class Forest:
    """Released trees, and the scores of rows, which get the trees that they lack when asked for.

    Parameters
    ----------
    codes : uint8 (n, K)
        Bin of every row.
    start
        The score from which all rows start, in units of `kernel.UNIT`.
    """

    def __init__(self, codes: np.ndarray, start: int = 0) -> None:
        self._codes = codes
        self._scores = np.full(len(codes), start, np.int64)
        self._added = np.zeros(len(codes), np.int64)
        self._nodes, self._trees = np.empty((2, 0), np.int64), np.empty((2, 0), np.int64)

    def add(self, *trees: Tree) -> None:
        """Add trees, in this order."""
        nodes, first, places = [self._nodes], self._nodes.shape[1], []
        for tree in trees:
            packed = np.stack([np.empty_like(tree.feature), whole(tree.value)])
            places.append((first, pack_tree(tree.feature, tree.cut, tree.left, first, packed[0])))
            nodes.append(packed)
            first += tree.feature.size
        self._nodes = np.hstack(nodes)
        self._trees = np.hstack([self._trees, np.array(places, np.int64).reshape(-1, 2).T])

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores of `rows`, int64 (m,), each once: int64 (m,), of `kernel.UNIT`."""
        add_trees(self._scores, self._added, self._codes, rows, self._nodes, self._trees)
        return self._scores[rows]


@dataclass(frozen=True)
class FitSettings:
    """The size of the model and its budget, all public; see `DPBoostClassifier` for the fields."""

    epsilon: float
    n_trees: int
    trees_per_ensemble: int
    learning_rate: float
    max_depth: int
    ridge: float

    @property
    def n_ensembles(self) -> int:
        """Ensembles, which share the budget equally: ceil(n_trees / trees_per_ensemble)."""
        return math.ceil(self.n_trees / self.trees_per_ensemble)


def max_leaves(params: FitSettings, variant: Variant) -> int:
    """Return the most leaves that a tree can have."""
    return 2**params.max_depth if variant.complete else variant.max_leaves
