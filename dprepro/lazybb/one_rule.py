"""1-Rules: a Boolean column, its negation or a constant as a classifier (Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprepro.lazybb.literals import Literals
from dprepro.privacy.weighted import WeightedExponential


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


@dataclass(frozen=True)
class OneRuleLearner:
    """Picks the 1-Rule of little weighted error, by noisy choice or the very best."""

    choice: WeightedExponential

    def fit(self, turn: int, literals: Literals, signed_weights: np.ndarray) -> Rule:
        """Return the rule of one round.

        `signed_weights` are the weights times the labels -1 and 1, float64 (n,). Candidates are
        columns, negations and constants: 2 d + 2, whatever the rows.
        """
        chosen = self.choice.pick((turn,), -errors(literals, signed_weights))
        d = literals.columns
        if chosen < 2 * d:
            return Rule(chosen % d, 1 if chosen < d else -1)
        return Rule(None, 1 if chosen == 2 * d else -1)


def errors(literals: Literals, signed_weights: np.ndarray) -> np.ndarray:
    """Return the weighted error of every 1-Rule: columns, negations, constants 1 and -1.

    err = (1 - sum_i w_i y_i h(x_i)) / 2 for weights of sum 1, and h = 2 x - 1 for a column x:
    one sparse product for all of them. float64 (2 d + 2,).
    """
    total = signed_weights.sum()
    agreement = 2 * literals.sums(signed_weights) - total
    return (1 - np.concatenate([agreement, -agreement, [total, -total]])) / 2
