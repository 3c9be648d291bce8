"""The fully connected network beside locally linear maps, and which inputs move its score.

The methods are those that the paper sets its maps beside, for scikit-learn's networks of
rectifiers, whose gradients are a product of matrices.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from dprepro.estimators.inputs import check_rows


class Network(MLPClassifier):
    """scikit-learn's fully connected network; that it stops after its epochs is the point."""

    def fit(self, X: Any, y: Any) -> Network:
        """Fit without warning of slow convergence."""
        check_rows(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().fit(X, y)


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
