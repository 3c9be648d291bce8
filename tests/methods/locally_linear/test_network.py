"""What moves a network's score: gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPClassifier

from dprepro.methods.locally_linear.network import (
    input_gradients,
    integrated_gradients,
    smoothed_gradients,
)


def network(classes):
    X, y = load_iris(return_X_y=True)
    kept = y < classes
    fitted = MLPClassifier((8, 6), max_iter=30, random_state=0)
    return fitted.fit(X[kept], y[kept]), X[kept][::20], y[kept][::20]


def score(fitted, X, codes):
    log_p = fitted.predict_log_proba(X)
    if log_p.shape[1] == 2:
        odds = log_p[:, 1] - log_p[:, 0]
        return np.where(codes == 1, odds, -odds)
    return _logits(fitted, X)[np.arange(len(X)), codes]


def _logits(fitted, X):
    values = X
    for k, (weights, offsets) in enumerate(zip(fitted.coefs_, fitted.intercepts_, strict=True)):
        values = values @ weights + offsets
        if k < len(fitted.coefs_) - 1:
            values = np.maximum(values, 0)
    return values


@pytest.fixture(params=[2, 3])
def fitted(request, recwarn):
    return network(request.param)


def test_gradients_equal_finite_differences(fitted):
    model, X, codes = fitted
    for column in range(4):
        moved = [X.copy(), X.copy()]
        moved[0][:, column] += 1e-6
        moved[1][:, column] -= 1e-6
        expected = (score(model, moved[0], codes) - score(model, moved[1], codes)) / 2e-6
        found = input_gradients(model, X, codes)[:, column]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_integrated_gradients_times_x_are_the_difference_from_zero(fitted):
    model, X, codes = fitted
    total = (integrated_gradients(model, X, codes, steps=2000) * X).sum(axis=1)
    expected = score(model, X, codes) - score(model, np.zeros_like(X), codes)
    np.testing.assert_allclose(total, expected, atol=5e-3)


def test_without_noise_the_smoothed_gradient_is_the_gradient(fitted):
    model, X, codes = fitted
    rng = np.random.default_rng(0)
    same = smoothed_gradients(model, X, codes, rng, samples=2, sd=0.0)
    np.testing.assert_allclose(same, input_gradients(model, X, codes))
    other = smoothed_gradients(model, X, codes, rng, samples=2, sd=2.0)
    assert not np.allclose(other, same)
