"""A released tree, and the size and budget of a model of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.dpboost.grid import whole
from dprepro.dpboost.kernel import add_values
from dprepro.dpboost.variants import Variant


@dataclass(frozen=True)
class Tree:
    """A released tree. `kernel.grow` has the arrays; none holds a count or an exact sum.

    Attributes
    ----------
    feature, cut, left : int64 (nodes,)
        Rows with ``codes[feature] <= cut`` go to node `left`, others to ``left + 1``. Feature -1
        marks a leaf.
    value : float64 (nodes,)
        The learning rate times the noisy value of each leaf, a multiple of `grid.UNIT`; 0 at inner
        nodes.
    """

    feature: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    value: np.ndarray

    def add_to(self, scores: np.ndarray, codes: np.ndarray) -> None:
        """Add the tree's values to the scores of rows with `codes`, uint8 (n, K).

        `scores` are int64 (n,), in units of `grid.UNIT`.
        """
        add_values(scores, codes, self.feature, self.cut, self.left, whole(self.value))


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
