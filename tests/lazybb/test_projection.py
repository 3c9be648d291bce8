"""The projection: optimal, exact, and never more than 1 / (kappa n) of the weight on a row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from dprepro.lazybb.projection import project, smooth_weights

CASES = [
    (np.random.default_rng(s).normal(m, spread, n), density)
    for s, (m, spread, n, density) in enumerate(
        [(-1, 1, 50, 0.4), (-5, 3, 17, 0.9), (0, 0, 9, 0.3), (-2, 5, 200, 0.05), (-3, 2, 30, 1.0)]
    )
]
EACH = pytest.mark.parametrize(("log_measure", "density"), CASES)


def divergence(mu: np.ndarray, log_measure: np.ndarray) -> float:
    """KL of unnormalised measures."""
    logs = np.log(mu, out=np.zeros_like(mu), where=mu > 0)
    return float(np.sum(mu * (logs - log_measure) - mu + np.exp(log_measure)))


@EACH
def test_it_is_the_capped_measure_of_the_wanted_density(
    log_measure: np.ndarray, density: float
) -> None:
    projected = project(log_measure, density)
    least = density * log_measure.size
    measure = np.exp(log_measure)
    if np.minimum(measure, 1).sum() >= least:
        np.testing.assert_allclose(projected, np.minimum(measure, 1))
        return
    if density == 1:
        np.testing.assert_allclose(projected, 1.0)
        return
    log_factor = optimize.brentq(
        lambda c: np.exp(np.minimum(log_measure + c, 0)).sum() - least, 0, 100, xtol=1e-14
    )
    np.testing.assert_allclose(projected, np.exp(np.minimum(log_measure + log_factor, 0)))
    assert projected.sum() == pytest.approx(least, rel=1e-12)


@EACH
def test_no_other_dense_measure_is_nearer(log_measure: np.ndarray, density: float) -> None:
    rng = np.random.default_rng(0)
    projected = project(log_measure, density)
    best = divergence(projected, log_measure)
    compared = 0
    for _ in range(200):
        other = np.clip(projected + rng.normal(0, rng.choice([1e-3, 0.1]), projected.size), 0, 1)
        other += (1 - other) * rng.uniform(0, 0.2)
        if other.sum() >= density * other.size:
            assert divergence(other, log_measure) >= best - 1e-9
            compared += 1
    if density == 1:
        # Only one measure is as dense, so there is none to compare with.
        np.testing.assert_array_equal(projected, 1.0)
    else:
        assert compared > 50


@EACH
def test_projecting_again_changes_nothing(log_measure: np.ndarray, density: float) -> None:
    projected = project(log_measure, density)
    again = project(np.log(projected), density)
    np.testing.assert_allclose(again, projected, rtol=1e-12)


@EACH
def test_no_row_outweighs_the_smooth_bound(log_measure: np.ndarray, density: float) -> None:
    weights = smooth_weights(log_measure, density)
    assert weights.sum() == pytest.approx(1.0)
    assert weights.max() <= (1 + 1e-12) / (density * weights.size)


def test_weights_far_below_the_smallest_number_are_told_apart() -> None:
    log_measure = np.array([0.0, -5000.0, -5001.0, -5001.0])
    weights = smooth_weights(log_measure, 0.5)
    share = np.exp([0.0, -1.0, -1.0])
    np.testing.assert_allclose(weights, [0.5, *(0.5 * share / share.sum())])
