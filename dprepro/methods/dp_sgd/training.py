"""Training by Adam on noisy sums. No row comes here, and no number of rows.

Adam divides the running mean of the sums by the root of the running mean of their squares, so that
a public factor of all sums changes nothing: they need not be divided by the size of a sample, which
is private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_MEAN, _SQUARE, _FLOOR = 0.9, 0.999, 1e-12


@dataclass(frozen=True)
class Shape:
    """How many weights there are.

    Attributes
    ----------
    columns, parts
        Inputs, and how many of them a row has that are about 1.
    width, outputs
        Hidden values, and scores.
    """

    columns: int
    parts: int
    width: int
    outputs: int

    @property
    def length(self) -> float:
        """The norm of a row's inputs and hidden values together, where all are about 1."""
        return math.sqrt(self.parts + self.width + 1)


def scales(shape: Shape) -> np.ndarray:
    """Return one over the root of how many weights are added up with each, float64 (P,).

    Weights that move by so much at random change what a layer passes on by about 1, whatever its
    size.
    """
    first = np.full(shape.columns * shape.width, 1 / math.sqrt(shape.parts))
    last = np.full((shape.width + 1) * shape.outputs, 1 / math.sqrt(shape.width + 1))
    return np.concatenate([first, last])


def trained(
    weights: np.ndarray, steps: int, rates: np.ndarray, largest: float,
    answer: Callable[[int, np.ndarray], np.ndarray],
) -> np.ndarray:  # fmt: skip
    """Return the mean of the weights in the second half of the steps, float64 (P,).

    Parameters
    ----------
    weights
        To start from.
    rates
        Adam's, of each weight, float64 (P,).
    largest
        Weights stay within this distance of 0.
    answer
        (step, weights) -> the noisy sum of gradients there, float64 (P,).
    """
    mean, square, total = np.zeros((3, weights.size))
    first = steps // 2
    for step in range(steps):
        found = answer(step, weights)
        mean += (1 - _MEAN) * (found - mean)
        square += (1 - _SQUARE) * (found**2 - square)
        size = np.sqrt(square / (1 - _SQUARE ** (step + 1))) + _FLOOR
        weights = weights - rates / (1 - _MEAN ** (step + 1)) * mean / size
        weights = np.clip(weights, -largest, largest)
        if step >= first:
            total += weights
    return total / (steps - first)
