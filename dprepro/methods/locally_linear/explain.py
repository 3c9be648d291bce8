"""What locally linear maps say about a row, and about a class. Post-processing: costs nothing.

Which inputs move a network's score: the methods that the paper sets its maps beside.

For scikit-learn's fully connected networks (rectifiers), whose gradients are a product of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.neural_network import MLPClassifier


@dataclass(frozen=True)
class LocalExplanation:
    """Why rows get the score of a class, by the maps of that class alone.

    Attributes
    ----------
    classes : ndarray (n,)
        The class explained, one a row.
    order : ndarray, int64 (n, M)
        The maps of that class, the heaviest first.
    weights : ndarray, float32 (n, M)
        Their weights s, in that order; they add up to 1.
    filters : ndarray, float32 (n, M, D)
        Their filters, in that order.
    """

    classes: np.ndarray
    order: np.ndarray
    weights: np.ndarray
    filters: np.ndarray

    @property
    def weighted(self) -> np.ndarray:
        """The weighted filter of each row, sum over m of s_m w_m, float32 (n, D)."""
        return np.einsum("nm,nmd->nd", self.weights, self.filters)


@dataclass(frozen=True)
class GlobalExplanation:
    """The maps of every class.

    Attributes
    ----------
    classes : ndarray (K,)
        The labels.
    filters, offsets : ndarray, float32 (K, M, D) and (K, M)
        w and b of eq. (4).
    """

    classes: np.ndarray
    filters: np.ndarray
    offsets: np.ndarray


def explain_rows(
    weights: np.ndarray, codes: np.ndarray, classes: np.ndarray, filters: np.ndarray
) -> LocalExplanation:
    """Sort the maps of one class a row by weight.

    `weights` is s, float32 (n, M, K); `codes` (n,) the class of each row as a position in
    `classes` (K,); `filters` (K, M, D).
    """
    rows = np.arange(len(codes))
    of_class = weights[rows, :, codes]
    order = np.argsort(-of_class, axis=1, kind="stable")
    return LocalExplanation(
        classes=classes[codes],
        order=order,
        weights=np.take_along_axis(of_class, order, axis=1),
        filters=filters[codes[:, None], order],
    )


def input_gradients(network: MLPClassifier, X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the gradient of a class's score with respect to the inputs, float64 (n, D).

    The score is what goes into the last softmax (two classes: the log odds of the second).

    Parameters
    ----------
    X
        Inputs (n, D).
    codes
        The class of each row, as a position in ``classes_``, (n,).
    """
    *hidden, (last, _) = zip(network.coefs_, network.intercepts_, strict=True)
    active = []
    values = X
    for weights, offsets in hidden:
        values = np.maximum(values @ weights + offsets, 0)
        active.append(values > 0)
    if last.shape[1] == 1:
        gradient = np.where(codes[:, None] == 1, last[:, 0], -last[:, 0]).astype(np.float64)
    else:
        gradient = last[:, codes].T.astype(np.float64)
    for (weights, _), mask in zip(reversed(hidden), reversed(active), strict=True):
        gradient = (gradient * mask) @ weights.T
    return gradient


def integrated_gradients(
    network: MLPClassifier, X: np.ndarray, codes: np.ndarray, steps: int = 100
) -> np.ndarray:
    """Return the mean gradient on the way from 0 to x, float64 (n, D), at midpoints of `steps`.

    Sundararajan, Taly, Yan 2017, without the product with x, as in the paper: times x it adds up to
    the score's difference between x and 0.
    """
    shares = (np.arange(steps) + 0.5) / steps
    found = [input_gradients(network, X * share, codes) for share in shares]
    return np.mean(found, axis=0)


def smoothed_gradients(
    network: MLPClassifier,
    X: np.ndarray,
    codes: np.ndarray,
    generator: np.random.Generator,
    samples: int = 100,
    sd: float = 0.15,
) -> np.ndarray:
    """Return the mean gradient around x, float64 (n, D): at x + N(0, sd^2), `samples` times.

    Smilkov et al. 2017.
    """
    found = [
        input_gradients(network, X + generator.normal(0, sd, X.shape), codes)
        for _ in range(samples)
    ]
    return np.mean(found, axis=0)
