"""What a round adds to the vote: 1-Rules (Algorithm 3), and trees grown from the top (Algorithm 2).

A 1-Rule is a Boolean column, its negation or a constant. A tree grows by noisy choices of a leaf
and a column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprepro.methods.lazybb.queries import Literals


@dataclass(frozen=True)
class Rule:
    """`sign` where `column` is true and its opposite elsewhere; `sign` everywhere for no column."""

    column: int | None
    sign: int

    @property
    def columns(self) -> set[int]:
        """The columns it reads."""
        return set() if self.column is None else {self.column}

    def outputs(self, literals: Literals) -> np.ndarray:
        """Return -1 or 1 for each row, int64 (n,)."""
        if self.column is None:
            return np.full(literals.rows, self.sign, np.int64)
        outputs = np.full(literals.rows, -self.sign, np.int64)
        outputs[literals.true_rows(self.column)] = self.sign
        return outputs


def errors(literals: Literals, signed_weights: np.ndarray) -> np.ndarray:
    """Return the weighted error of every 1-Rule: columns, negations, constants 1 and -1.

    A column is wrong where it is true of label -1 or not true of label 1. With s the sum of w y
    where it is true, and w- and w+ the weights of the labels, that is w+ - s. Its negation is wrong
    by w- + s: one sparse product for all of them.

    `signed_weights` are weights times labels, int64 (n,); the result is int64 (2 d + 2,), exact.
    """
    in_favour = np.maximum(signed_weights, 0).sum()
    against = in_favour - signed_weights.sum()
    where_true = literals.sums(signed_weights)
    return np.concatenate([in_favour - where_true, against + where_true, [against, in_favour]])


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
        """Return -1 or 1 for each row, int64 (n,)."""
        at = np.zeros(literals.rows, dtype=np.int64)
        for k, (leaf, column) in enumerate(zip(self.leaves, self.splits, strict=True)):
            _split(at, literals, leaf, column, k + 1)
        return self.labels[at]


class LeafWeights:
    """The leaves of a tree that is being grown, by the weights of both labels: exact, private.

    Parameters
    ----------
    literals
        The rows.
    signed_weights
        The weights times the labels -1 and 1, int64 (n,).
    """

    def __init__(self, literals: Literals, signed_weights: np.ndarray) -> None:
        self._literals = literals
        # Weight of label -1 and of label 1, (n, 2).
        self._weights = np.column_stack(
            [np.maximum(-signed_weights, 0), np.maximum(signed_weights, 0)]
        )
        self._at = np.zeros(literals.rows, dtype=np.int64)
        # Of each leaf: weights of both labels, in all and where each column is true.
        self._whole = [self._weights.sum(axis=0)]
        self._inside = [literals.sums(self._weights)]
        self._gains = [split_gains(self._whole[0], self._inside[0])]

    @property
    def leaves(self) -> int:
        """The number of leaves so far."""
        return len(self._whole)

    def gains(self) -> np.ndarray:
        """Return the gain of each column in each leaf, int64 (leaves, d)."""
        return np.array(self._gains)

    def weights(self) -> np.ndarray:
        """Return the weights of labels -1 and 1 in each leaf, int64 (leaves, 2)."""
        return np.array(self._whole)

    def split(self, leaf: int, column: int) -> None:
        """Move the rows of a leaf where a column is true to a new leaf."""
        new = self.leaves
        _split(self._at, self._literals, leaf, column, new)
        moved = self._weights * (self._at == new)[:, None]
        self._whole.append(moved.sum(axis=0))
        self._inside.append(self._literals.sums(moved))
        self._whole[leaf] = self._whole[leaf] - self._whole[new]
        self._inside[leaf] = self._inside[leaf] - self._inside[new]
        self._gains.append(split_gains(self._whole[new], self._inside[new]))
        self._gains[leaf] = split_gains(self._whole[leaf], self._inside[leaf])


def split_gains(whole: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the gain g(leaf) - g(false part) - g(true part) of every column, int64 (d,).

    The leaf weighs `whole`, int64 (2,) for both labels, and `inside`, (d, 2), where each column
    is true. g is weight times Gini, w G(q) = 4 w q (1 - q) = 4 a b / (a + b), as `gini` rounds it.
    """
    return gini(whole) - gini(inside) - gini(whole - inside)


def gini(weights: np.ndarray) -> np.ndarray:
    """Return 4 a b / (a + b), 0 for no weight, of weights, int64 (..., 2): int64, rounded.

    It takes operations alone that IEEE 754 rounds to the nearest double, the same on every machine;
    `sensitivity.GAIN_ROUNDING` bounds by how much they are off.
    """
    total = weights.sum(axis=-1)
    a, b = weights[..., 0].astype(np.float64), weights[..., 1].astype(np.float64)
    rounded = np.divide(4 * a * b, total, out=np.zeros(total.shape), where=total > 0)
    return rounded.astype(np.int64)


def _split(at: np.ndarray, literals: Literals, leaf: int, column: int, new_leaf: int) -> None:
    rows = literals.true_rows(column)
    at[rows[at[rows] == leaf]] = new_leaf
