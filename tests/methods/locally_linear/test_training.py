"""Adam and its schedule, and what sums of gradients are divided by."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.methods.locally_linear.estimator import exact_mean, released_mean
from dprepro.methods.locally_linear.gradients import ExactGradients
from dprepro.methods.locally_linear.training import Adam, train
from dprepro.privacy.curator_base import listening
from tests.methods.locally_linear.lab import PARAMS, ROWS, curator, rows, theta


def test_adam_moves_by_the_learning_rate_at_first_and_finds_the_minimum():
    values = np.array([[[3.0, -2.0]]], dtype=np.float32)
    adam = Adam(values.shape)
    adam.step(values, 2 * values, 0.1)
    np.testing.assert_allclose(values, [[[2.9, -1.9]]], rtol=1e-5)
    for _ in range(2000):
        adam.step(values, 2 * values, 0.01)
    np.testing.assert_allclose(values, 0, atol=1e-3)


def test_a_step_of_adam_has_the_bits_of_numpy():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(3, 2, 41)).astype(np.float32)
    values, expected, adam = start.copy(), start.copy(), Adam(start.shape)
    mean, square = np.zeros((2, *start.shape), np.float32)
    for step in range(1, 30):
        gradient = rng.normal(size=start.shape).astype(np.float32) ** 3
        gradient[0, 0] = 0
        adam.step(values, gradient, 0.01)
        mean += np.float32(1 - 0.9) * (gradient - mean)
        square += np.float32(1 - 0.999) * (gradient * gradient - square)
        root = np.sqrt(square) * np.float32(1 / math.sqrt(1 - 0.999**step)) + np.float32(1e-8)
        expected -= mean / root * np.float32(0.01 / (1 - 0.9**step))
        np.testing.assert_array_equal(values, expected)


def test_every_step_asks_once():
    asked = []

    def mean(values):
        asked.append(values.copy())
        return np.ones_like(values)

    train(theta(), PARAMS, ROWS, mean)
    assert len(asked) == PARAMS.steps(ROWS) == 12
    np.testing.assert_allclose(asked[1], -PARAMS.learning_rate, rtol=1e-5)


def test_the_learning_rate_falls_and_adam_starts_anew():
    # Two steps at 0.1; then, without memory, -0.05 and about 0.
    gradients = iter([1, 1, -1, 1])
    trained = theta()
    params = replace(PARAMS, batch_size=ROWS)
    train(trained, params, ROWS, lambda t: np.full_like(t, next(gradients)))
    fresh = np.zeros((1, 1, 1), dtype=np.float32)
    for rate, values in ((0.1, (1, 1)), (0.05, (-1, 1))):
        adam = Adam(fresh.shape)
        for value in values:
            adam.step(fresh, np.full_like(fresh, value), rate)
    np.testing.assert_allclose(trained, fresh.item(), rtol=1e-6)


class Heard:
    """Keeps the values of all releases."""

    def __init__(self):
        self.values, self.asked_at = [], []

    def asked(self, query, release):
        self.values.append(release.value)
        self.asked_at.append(query.theta)

    def told(self, instruction):
        pass


def test_released_sums_are_divided_by_the_expected_size_of_a_sample():
    heard = Heard()
    with listening(heard):
        mean = released_mean(curator(), PARAMS)
    found = [mean(theta()) for _ in range(PARAMS.steps(ROWS))]
    np.testing.assert_array_equal(found, np.divide(heard.values, np.float32(20)))


def test_exact_sums_are_divided_by_the_size_of_their_batch():
    exact, twin = (ExactGradients(rows(), PARAMS, np.random.default_rng(0)) for _ in range(2))
    mean, sizes = exact_mean(exact, PARAMS), set()
    for _ in range(PARAMS.steps(ROWS)):
        total, size = twin.next_sum(theta(), PARAMS.clip)
        sizes.add(size)
        np.testing.assert_allclose(mean(theta()), total / size, atol=1e-8)
    assert len(sizes) > 4


def test_an_empty_batch_moves_nothing():
    exact = ExactGradients(rows(0), replace(PARAMS, sampling="shuffle"), np.random.default_rng(0))
    assert not exact_mean(exact, PARAMS)(theta()).any()


def test_a_query_that_a_listener_keeps_does_not_change_with_training():
    heard = Heard()
    with listening(heard):
        mean = released_mean(curator(), PARAMS)
    trained = theta()
    train(trained, PARAMS, ROWS, mean)
    assert len(heard.asked_at) == 12
    np.testing.assert_array_equal(heard.asked_at[0], theta())
    assert np.abs(heard.asked_at[-1] - heard.asked_at[-2]).max() > 0


@pytest.mark.parametrize("start", [0.0, 0.3])
def test_theta_is_trained_in_place(start):
    trained = theta() + np.float32(start)
    train(trained, replace(PARAMS, epochs=1, batch_size=ROWS), ROWS, np.ones_like)
    np.testing.assert_allclose(trained, start - 0.1, rtol=1e-5)
