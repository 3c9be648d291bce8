"""1-Rules: a Boolean column, its negation or a constant as a classifier (Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprepro.lazybb.literals import Literals


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
