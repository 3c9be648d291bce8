"""Lazy-Bregman boosting (Algorithm 1): reweight, smooth, ask the learner, vote."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dprepro.lazybb.literals import Literals
from dprepro.lazybb.projection import smooth_weights

MARGINS = ("signed", "agreements")


class Hypothesis(Protocol):
    """What a round adds to the vote."""

    @property
    def columns(self) -> set[int]:
        """The columns it reads."""
        ...

    def outputs(self, literals: Literals) -> np.ndarray:
        """Return -1.0 or 1.0 for each row, float64 (n,)."""
        ...


class Learner(Protocol):
    """Makes the hypothesis of a round from weighted rows."""

    def fit(self, turn: int, literals: Literals, signed_weights: np.ndarray) -> Hypothesis:
        """Return the hypothesis of round `turn`; the weights times the labels -1, 1 are (n,)."""
        ...


@dataclass(frozen=True)
class Boosting:
    """The parameters of Algorithm 1, and how it weighs rows.

    ``margin="signed"`` is the paper's sum of y h, "agreements" counts the rounds that were right,
    as the authors' code does: half the sum plus half the rounds, which makes it a `learning_rate`
    half as large, and the projection always active.
    """

    rounds: int
    learning_rate: float
    density: float
    margin: str = "signed"

    def run(
        self, literals: Literals, signs: np.ndarray, learner: Learner
    ) -> tuple[list[Hypothesis], np.ndarray]:
        """Return the hypotheses, and the advantage of each over its weights, float64 (rounds,).

        `signs` are the labels -1.0 and 1.0, (n,). The advantages, 1/2 less the weighted error,
        read the rows exactly: whoever releases them has to say so.
        """
        margins = np.zeros(literals.rows)
        hypotheses: list[Hypothesis] = []
        edges = np.empty(self.rounds)
        for turn in range(self.rounds):
            signed_weights = signs * self.weights(margins, turn)
            hypothesis = learner.fit(turn, literals, signed_weights)
            outputs = hypothesis.outputs(literals)
            edges[turn] = signed_weights @ outputs / 2
            margins += signs * outputs
            hypotheses.append(hypothesis)
        return hypotheses, edges

    def weights(self, margins: np.ndarray, turn: int) -> np.ndarray:
        """Return the smooth distribution after `turn` rounds with these margins, float64 (n,)."""
        exponent = margins if self.margin == "signed" else (margins + turn) / 2
        return smooth_weights(math.log(self.density) - self.learning_rate * exponent, self.density)
