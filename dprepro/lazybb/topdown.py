"""Trees grown from the top by noisy choices of a leaf and a column (Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprepro.lazybb.literals import Literals
from dprepro.privacy.weighted import WeightedExponential, WeightedNoisyMax


@dataclass(frozen=True)
class Tree:
    """A tree as the splits that made it.

    Attributes
    ----------
    leaves, splits : int64 (t,)
        Split number k cuts leaf ``leaves[k]`` by column ``splits[k]``: rows where it is true move
        to the new leaf k + 1, the others stay. All rows start in leaf 0.
    labels : int64 (t + 1,)
        -1 or 1 of each leaf.
    """

    leaves: np.ndarray
    splits: np.ndarray
    labels: np.ndarray

    @property
    def columns(self) -> set[int]:
        """The columns it reads."""
        return {int(column) for column in self.splits}

    def outputs(self, literals: Literals) -> np.ndarray:
        """Return -1.0 or 1.0 for each row, float64 (n,)."""
        at = np.zeros(literals.rows, dtype=np.int64)
        for k, (leaf, column) in enumerate(zip(self.leaves, self.splits, strict=True)):
            _split(at, literals, leaf, column, k + 1)
        return self.labels[at].astype(np.float64)


@dataclass(frozen=True)
class TopDownLearner:
    """Grows trees of `splits` inner nodes.

    `choice` picks leaf and column of each split by the Gini gain; `label` picks the label of each
    leaf by its weight.
    """

    splits: int
    choice: WeightedExponential
    label: WeightedNoisyMax

    def fit(self, turn: int, literals: Literals, signed_weights: np.ndarray) -> Tree:
        """Return the tree of one round; see `OneRuleLearner.fit`."""
        # Weight of label -1 and of label 1, (n, 2).
        weights = np.column_stack([np.maximum(-signed_weights, 0), np.maximum(signed_weights, 0)])
        at = np.zeros(literals.rows, dtype=np.int64)
        gains = np.empty((self.splits + 1, literals.columns))
        gains[0] = split_gains(literals, weights)
        leaves, columns = np.empty((2, self.splits), dtype=np.int64)
        for k in range(self.splits):
            chosen = self.choice.pick((turn, k), gains[: k + 1].ravel())
            leaves[k], columns[k] = divmod(chosen, literals.columns)
            _split(at, literals, leaves[k], columns[k], k + 1)
            if k + 1 < self.splits:
                for leaf in (leaves[k], k + 1):
                    gains[leaf] = split_gains(literals, weights * (at == leaf)[:, None])
        totals = np.column_stack(
            [np.bincount(at, weights[:, c], minlength=self.splits + 1) for c in (0, 1)]
        )
        return Tree(leaves, columns, 2 * self.label.pick(turn, totals) - 1)


def split_gains(literals: Literals, weights: np.ndarray) -> np.ndarray:
    """Return the gain g(leaf) - g(false part) - g(true part) of every column, float64 (d,).

    `weights`, float64 (n, 2), are those of both labels, 0 outside the leaf. g is weight times
    Gini, w G(q) = 4 w q (1 - q) = 4 a b / (a + b).
    """
    whole = weights.sum(axis=0)
    inside = literals.sums(weights)
    # The difference of sums may round to a little below 0.
    outside = np.maximum(whole - inside, 0.0)
    return gini(whole) - gini(inside) - gini(outside)


def gini(weights: np.ndarray) -> np.ndarray:
    """Return 4 a b / (a + b), 0 for no weight, of weights (..., 2)."""
    a, b = weights[..., 0], weights[..., 1]
    total = a + b
    return np.divide(4 * a * b, total, out=np.zeros_like(total), where=total > 0)


def _split(at: np.ndarray, literals: Literals, leaf: int, column: int, new_leaf: int) -> None:
    rows = literals.true_rows(column)
    at[rows[at[rows] == leaf]] = new_leaf
