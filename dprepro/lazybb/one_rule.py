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
        """Return -1.0 or 1.0 for each row, float64 (n,)."""
        if self.column is None:
            return np.full(literals.rows, float(self.sign))
        outputs = np.full(literals.rows, float(-self.sign))
        outputs[literals.true_rows(self.column)] = self.sign
        return outputs


def errors(literals: Literals, signed_weights: np.ndarray) -> np.ndarray:
    """Return the weighted error of every 1-Rule: columns, negations, constants 1 and -1.

    err = (1 - sum_i w_i y_i h(x_i)) / 2 for weights of sum 1, and h = 2 x - 1 for a column x:
    one sparse product for all of them. float64 (2 d + 2,).
    """
    total = signed_weights.sum()
    agreement = 2 * literals.sums(signed_weights) - total
    return (1 - np.concatenate([agreement, -agreement, [total, -total]])) / 2
