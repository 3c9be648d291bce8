"""Empirical Bayes smoothing against dense linear algebra, and what it does in the limits."""

import numpy as np
import pytest

from dprepro.ebm.smoothing import smooth


def prior_precision(size, scale, walk):
    if not walk:
        return np.eye(size) / scale**2
    steps = np.diff(np.eye(size), axis=0)
    return ((size - 1) * steps.T @ steps + 0.3 * np.eye(size)) / scale**2


def dense(z, v, scales, ordered):
    """Mean and variance of the mixture of Gaussian posteriors, weighed by N(z; 0, Q^-1 + V)."""
    means, squares, evidence = [], [], []
    for walk in (True, False) if ordered and z.size > 2 else (False,):
        for scale in scales:
            covariance = np.linalg.inv(prior_precision(z.size, scale, walk))
            total = covariance + np.diag(v)
            gain = covariance @ np.linalg.inv(total)
            means.append(gain @ z)
            squares.append(np.diag(covariance - gain @ covariance) + means[-1] ** 2)
            evidence.append(-0.5 * (np.linalg.slogdet(total)[1] + z @ np.linalg.solve(total, z)))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    return mean, weights @ np.array(squares) - mean**2


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 17])
def test_it_is_the_average_of_exact_posteriors(size, ordered):
    rng = np.random.default_rng(size)
    z, v = rng.normal(size=size), rng.uniform(0.01, 2, size)
    scales = 2.0 ** np.arange(-3, 3)
    mean, variance = smooth(z, v, scales, ordered=ordered)
    expected_mean, expected_variance = dense(z, v, scales, ordered)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-10)
    np.testing.assert_allclose(variance, expected_variance, atol=1e-10)


def test_what_is_certain_stays_and_what_is_noise_goes():
    z, scales = np.array([1.0, -2.0, 0.5, 3.0]), 2.0 ** np.arange(-8, 4)
    np.testing.assert_allclose(smooth(z, np.full(4, 1e-8), scales, ordered=True)[0], z, atol=1e-3)
    assert np.abs(smooth(z, np.full(4, 1e8), scales, ordered=True)[0]).max() < 1e-3


def test_a_smooth_function_gains_from_its_neighbours():
    rng = np.random.default_rng(0)
    truth = np.sin(np.linspace(0, 3, 60))
    z = truth + rng.normal(0, 0.5, 60)
    scales = 2.0 ** np.arange(-8, 4)
    errors = [
        np.mean((smooth(z, np.full(60, 0.25), scales, ordered=ordered)[0] - truth) ** 2)
        for ordered in (True, False)
    ]
    assert errors[0] < errors[1] / 3
    assert errors[1] < 0.25
