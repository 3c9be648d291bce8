"""A network of one hidden layer in whole numbers: what it says of a row depends on no other row.

Floating-point sums over rows depend on their order, and a matrix product may round a row otherwise
where other rows stand beside it. Here inputs, weights, hidden values, errors and gradients are
whole numbers of public units, so that products and sums are exact, and all else is computed for
each number by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import exp2, expit

from dprepro.methods.bounded_norm_encoding import BITS
from dprepro.privacy.query import SensitivityError

WEIGHT_BITS, ERROR_BITS = 16, 20
WEIGHT_UNIT = 2.0**-WEIGHT_BITS
ERROR_UNIT = 2.0**-ERROR_BITS
"""Of weights, and of errors: derivatives of the loss by what enters a layer's end."""

ONE = 2**BITS
"""1 in units of inputs and hidden values."""

LARGEST_WEIGHT = 2**20
"""Weights are at most 16: then no product or sum comes near 2^63. See `clipped_sum`."""

MOST_WIDTH = 1024

TARGET_SPAN = 4.0
"""Numbers to be predicted lie between -4 and 4, and errors of more than 1 count as 1."""

GRADIENT_UNIT = 2.0 ** -(BITS + ERROR_BITS)
"""Of gradients, which are products of an input and an error."""

_BELOW = 1 - 2.0**-40
"""Three roundings of doubles, at most 2^-52 each, do not make a clipped row longer than stated."""


@dataclass(frozen=True, eq=False)
class Network:
    """Weights of scores: a hidden layer of hyperbolic tangents, and an output layer.

    Attributes
    ----------
    first : int64 (columns, width)
        From inputs to hidden values, in units of `WEIGHT_UNIT`. The last input is a constant.
    last : int64 (width + 1, outputs)
        From hidden values, and a 1 after them, to scores.

    Raises
    ------
    SensitivityError
        If weights are no whole numbers, or too large: sums could then overflow.
    """

    first: np.ndarray
    last: np.ndarray

    def __post_init__(self) -> None:
        for weights in (self.first, self.last):
            if weights.dtype != np.int64 or (np.abs(weights) > LARGEST_WEIGHT).any():
                raise SensitivityError(
                    f"weights must be int64 and at most {LARGEST_WEIGHT} from 0, got "
                    f"{weights.dtype}: round and clip them"
                )

    @classmethod
    def of(cls, weights: np.ndarray, columns: int, width: int) -> Network:
        """Return the network of all weights in one array, float64 (P,), rounded and clipped."""
        whole = np.rint(np.clip(weights / WEIGHT_UNIT, -LARGEST_WEIGHT, LARGEST_WEIGHT))
        first, last = np.split(whole.astype(np.int64), [columns * width])
        return cls(first.reshape(columns, width), last.reshape(width + 1, -1))

    def hidden(self, inputs: sparse.csr_matrix) -> np.ndarray:
        """Return hidden values and a 1 after them, int64 (n, width + 1), in units of 1 / `ONE`.

        Inputs are int64 (n, columns) in the same units.
        """
        values = _tanh((inputs @ self.first) * (WEIGHT_UNIT / ONE))
        whole = np.rint(values * ONE).astype(np.int64)
        return np.column_stack([whole, np.full(len(whole), ONE)])

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        """Return scores of rows, float64 (n, outputs)."""
        return np.asarray((hidden @ self.last) * (WEIGHT_UNIT / ONE))


def _tanh(values: np.ndarray) -> np.ndarray:
    """Return hyperbolic tangents by SciPy's function, which takes one number after the other.

    NumPy's takes several at a time, and how it rounds may depend on their places.
    """
    return np.asarray(2.0 * expit(2.0 * values) - 1.0)


def label_errors(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the derivatives of the log loss, int64 (n, outputs) in units of `ERROR_UNIT`.

    Of two classes there is one score, the log odds of the second; of more the probabilities are the
    softmax of all scores. `codes` are int64 (n,).
    """
    if scores.shape[1] == 1:
        chances, labels = expit(scores), codes[:, None]
    else:
        powers = exp2((scores - scores.max(axis=1, keepdims=True)) * math.log2(math.e))
        total = powers[:, 0].copy()
        for column in powers.T[1:]:
            total += column
        chances, labels = powers / total[:, None], np.eye(scores.shape[1], dtype=np.int64)[codes]
    return _in_units(chances) - labels * 2**ERROR_BITS


def number_errors(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the derivatives of half the squared error, clipped to [-1, 1], int64 (n, 1).

    Targets are int64 (n,), within `TARGET_SPAN`, in units of `ERROR_UNIT`, as is what is returned.
    """
    errors = _in_units(np.clip(scores, -64.0, 64.0)) - targets[:, None]
    return np.clip(errors, -(2**ERROR_BITS), 2**ERROR_BITS)


def _in_units(values: np.ndarray) -> np.ndarray:
    whole: np.ndarray = np.rint(values / ERROR_UNIT).astype(np.int64)
    return whole


def clipped_sum(
    network: Network, inputs: Any, hidden: np.ndarray, errors: np.ndarray, clip: float
) -> np.ndarray:
    """Return the sum of rows' gradients, each no longer than `clip`: int64 (P,) of `GRADIENT_UNIT`.

    A row's gradient of a layer is the outer product of what enters the layer and of the error at
    its end, so its norm is the product of theirs. The errors of a row are multiplied by one factor,
    at most 1, and rounded towards 0, so that the norm of all of the gradient is at most `clip`.

    Errors are at most 2 in all, weights at most 16: those of a hidden value are at most 2^25 units,
    times 2^28 in between, and their squares add up to less than 2^61 at a width of 1024.
    """
    behind = (errors @ network.last[:-1].T) >> WEIGHT_BITS
    slopes = ONE**2 - hidden[:, :-1] ** 2
    before = (behind * slopes) >> (2 * BITS)
    squares = _squares(inputs.multiply(inputs).sum(axis=1)) * _squares((before**2).sum(axis=1))
    squares += _squares((hidden**2).sum(axis=1)) * _squares((errors**2).sum(axis=1))
    longest = clip / GRADIENT_UNIT * _BELOW
    factors = (longest / np.maximum(np.sqrt(squares), longest))[:, None]
    parts = inputs.T @ _shortened(before, factors), hidden.T @ _shortened(errors, factors)
    return np.concatenate([np.asarray(part).ravel() for part in parts])


def _squares(sums: Any) -> np.ndarray:
    return np.asarray(sums, dtype=np.float64).ravel()


def _shortened(errors: np.ndarray, factors: np.ndarray) -> np.ndarray:
    whole: np.ndarray = np.trunc(errors * factors).astype(np.int64)
    return whole
