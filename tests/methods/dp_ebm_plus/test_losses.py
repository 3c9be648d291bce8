"""What is expected of a bin's labels, where residuals are clipped, and of levels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED, chances
from tests.methods.dp_ebm_plus.plus_table import FEATURES

RNG = np.random.default_rng(5)


def test_rates_of_the_bins_add_up_to_the_released_one():
    start = LOGISTIC.start(1000.0, 1.0, np.array([-450.0]), np.array([1.0]))
    shares = np.array([0.5, 0.3, 0.2])
    values = np.array([-2.0, 0.0, 3.0])
    rates, slopes = LOGISTIC.response(values, shares, start, 0.0, others=0.0)
    assert (shares * rates).sum() == pytest.approx(start.rate) == 0.05
    np.testing.assert_allclose(slopes, rates * (1 - rates))
    # With other functions, by drawing them.
    rates, slopes = LOGISTIC.response(values, shares, start, 0.0, others=1.5)
    assert (shares * rates).sum() == pytest.approx(start.rate)
    drawn = np.sqrt(1.5) * RNG.normal(size=100_000)
    level = brentq(lambda a: expit(a + drawn).mean() - rates[1], -9, 9)
    expected = [expit(level + value + drawn).mean() for value in values]
    np.testing.assert_allclose(rates, expected, rtol=0.02)


@pytest.mark.parametrize("bound", [0.5, 0.7, 0.9, 1.0])
def test_clipped_labels_say_of_chances_what_unclipped_ones_say(bound):
    start = replace(
        LOGISTIC.start(1000.0, 1.0, np.array([-200.0]), np.array([1.0])), residual=bound
    )
    shares, values = np.array([0.5, 0.3, 0.2]), np.array([-3.0, 0.5, 3.0])
    expected, slopes = LOGISTIC.response(values, shares, start, 0.0, others=0.0)
    p = chances(values, shares, start, 0.0, 0.0)[0]

    def mean_residual(truth):
        return truth * np.minimum(bound, 1 - p) - (1 - truth) * np.minimum(bound, p)

    # Along the way from 0 to p, a step of the truth moves the clipped mean by k.
    grid = np.linspace(0, 1, 100_001) * p[:, None]
    counted = np.minimum(bound, 1 - grid) + np.minimum(bound, grid)
    gained = np.trapezoid(counted, grid, axis=1)
    np.testing.assert_allclose(expected, gained - mean_residual(p), atol=1e-8)
    # Slightly other effects move the clipped sums by the slope.
    truth = expit(np.log(p / (1 - p)) + 1e-5)
    moved = (mean_residual(truth) - mean_residual(p)) / 1e-5
    np.testing.assert_allclose(slopes, moved, rtol=1e-4)
    if bound == 1.0:
        np.testing.assert_allclose(expected, p)
        np.testing.assert_allclose(mean_residual(p), 0, atol=1e-12)


def test_a_level_is_expected_to_leave_what_clipping_leaves():
    start = replace(LOGISTIC.start(1000.0, 1.0, np.array([-300.0]), np.array([1.0])), residual=0.6)
    scores = -1.0 + 1.3 * RNG.normal(size=200_000)
    p = expit(scores)
    left = p * np.minimum(0.6, 1 - p) - (1 - p) * np.minimum(0.6, p)
    expected, slope = LOGISTIC.of_level(-1.0, 1.3**2, start)
    below = LOGISTIC.of_level(-1.0 - 1e-6, 1.3**2, start)[0]
    area = np.where(p <= 0.6, p**2 / 2, 0.6 * (p - 0.3))
    other = np.where(1 - p <= 0.6, (1 - p) ** 2 / 2, 0.6 * (0.7 - p))
    assert expected == pytest.approx((0.42 + area - other - left).mean(), abs=0.006)
    assert slope > 0
    assert expected > below
    assert SQUARED.of_level(0.2, 1.0, start) == (0.2, 1.0)


@pytest.mark.parametrize(("lost", "bound"), [(0.0, 1.0), (1.0, 0.75), (1e9, 0.5)])
def test_the_more_is_lost_in_noise_the_lower_is_the_bound(lost, bound):
    start = LOGISTIC.start(1000.0, 1.0, np.array([0.0]), np.array([1.0]))
    assert LOGISTIC.bound(start, lost) == pytest.approx(bound)
    assert SQUARED.bound(replace(start, residual=0.3), lost) == 0.3


def test_scaled_targets_stay_in_the_unit_that_is_charged():
    rounding = Domain(FEATURES, (1e16, 1e16 + 2))
    targets = SQUARED.targets(np.repeat([1e16, 1e16 + 2], 25), rounding)
    assert np.abs(targets).max() == 2**23
