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
        # Of each leaf so far: weights of both labels, in all and where each column is true.
        whole = np.zeros((self.splits + 1, 2))
        inside = np.zeros((self.splits + 1, literals.columns, 2))
        gains = np.empty((self.splits + 1, literals.columns))
        whole[0], inside[0] = weights.sum(axis=0), literals.sums(weights)
        gains[0] = split_gains(whole[0], inside[0])
        leaves, columns = np.empty((2, self.splits), dtype=np.int64)
        for k in range(self.splits):
            chosen = self.choice.pick((turn, k), gains[: k + 1].ravel())
            leaf, columns[k] = divmod(chosen, literals.columns)
            leaves[k] = leaf
            _split(at, literals, leaf, columns[k], k + 1)
            moved = weights * (at == k + 1)[:, None]
            whole[k + 1], inside[k + 1] = moved.sum(axis=0), literals.sums(moved)
            # What stays is the difference, which may round to a little below 0.
            whole[leaf] = np.maximum(whole[leaf] - whole[k + 1], 0.0)
            inside[leaf] = np.maximum(inside[leaf] - inside[k + 1], 0.0)
            for part in (leaf, k + 1):
                gains[part] = split_gains(whole[part], inside[part])
        return Tree(leaves, columns, 2 * self.label.pick(turn, whole) - 1)


def split_gains(whole: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the gain g(leaf) - g(false part) - g(true part) of every column, float64 (d,).

    The leaf weighs `whole`, float64 (2,) for both labels, and `inside`, (d, 2), where each column
    is true. g is weight times Gini, w G(q) = 4 w q (1 - q) = 4 a b / (a + b).
    """
    return gini(whole) - gini(inside) - gini(np.maximum(whole - inside, 0.0))


def gini(weights: np.ndarray) -> np.ndarray:
    """Return 4 a b / (a + b), 0 for no weight, of weights (..., 2)."""
    a, b = weights[..., 0], weights[..., 1]
    total = a + b
    return np.divide(4 * a * b, total, out=np.zeros_like(total), where=total > 0)


def _split(at: np.ndarray, literals: Literals, leaf: int, column: int, new_leaf: int) -> None:
    rows = literals.true_rows(column)
    at[rows[at[rows] == leaf]] = new_leaf
