"""The level of a regression: nearly as precise as an average if it stays, and followed if not."""

import math

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer
from dprepro.methods.dp_ebm_plus.low_signal import (
    InterceptTracking,
    LowSignalBooster,
    TrackedIntercept,
)
from dprepro.methods.dp_ebm_plus.smoothing import CURVE, JUMPS, WALK

from dprepro.methods.dp_ebm_plus import low_signal
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from tests.methods.dp_ebm_plus.stub import booster
from tests.methods.dp_ebm_plus.test_smoothing import prior_precision

EPOCHS, PRIOR, USUAL = 32, 0.25, 0.2
STILL = np.full(EPOCHS, 0.03)
DRIFT, JUMP = np.linspace(-0.1, 0.1, EPOCHS), np.repeat([0.0, 0.1], EPOCHS // 2)


def last(found, deviation, prior=PRIOR, usual=USUAL):
    """Return the level after all epochs."""
    followed = TrackedIntercept(prior)
    return [
        followed.follow(float(x), float(s), usual)
        for x, s in zip(found, np.broadcast_to(deviation, len(found)), strict=True)
    ][-1]


def size(errors):
    return math.sqrt(np.mean(np.square(errors)))


def errors_of(levels, deviation, seeds=200):
    """Return how far the last level, and the average of the epochs, lie off."""
    off, average = [], []
    for seed in range(seeds):
        found = levels + np.random.default_rng(seed).normal(0, deviation, EPOCHS)
        off.append(last(found, deviation) - levels[-1])
        average.append(found.mean() - levels[-1])
    return size(off), size(average)


@pytest.mark.parametrize("deviation", [0.01, 0.03, 0.1])
def test_a_level_that_stays_is_found_about_as_precisely_as_by_the_average(deviation):
    off, average = errors_of(STILL, deviation)
    assert 0.8 * average < off < 1.25 * average


@pytest.mark.parametrize(("levels", "part"), [(DRIFT, 0.1), (JUMP, 0.15)])
def test_a_level_that_moves_is_followed(levels, part):
    off, average = errors_of(levels, 0.01, seeds=100)
    assert off < part * average


def test_jumps_and_curves_are_each_worth_having_among_the_priors(monkeypatch):
    with_all = [errors_of(levels, 0.03, seeds=100)[0] for levels in (DRIFT, JUMP)]
    without = []
    for levels, left_out in ((DRIFT, CURVE), (JUMP, JUMPS)):
        monkeypatch.setattr(
            low_signal, "_KINDS", np.array([k for k in (JUMPS, WALK, CURVE) if k != left_out])
        )
        without.append(errors_of(levels, 0.03, seeds=100)[0])
    assert with_all[0] < 0.8 * without[0]
    assert with_all[1] < 0.95 * without[1]


def test_what_is_lost_in_noise_is_no_level():
    for seed in range(20):
        found = np.random.default_rng(seed).normal(0.03, 50.0, EPOCHS)
        assert abs(last(found, 50.0)) < 0.3 * PRIOR < 0.05 * size(found)


def test_a_level_without_noise_is_the_last_one():
    found = np.array([0.1, 0.1, 0.1, -0.15, 0.05, 0.2])
    assert last(found, 1e-6) == pytest.approx(0.2, abs=1e-5)


def test_the_first_two_levels_are_the_mean_by_precision_shrunk_towards_zero():
    followed = TrackedIntercept(0.3)
    value = followed.follow(0.2, 0.1, USUAL)
    assert value == pytest.approx(0.2 * 100 / (100 + 1 / 0.09), rel=1e-12)
    value = followed.follow(-0.1, 0.2, USUAL)
    assert value == pytest.approx((0.2 * 100 - 0.1 * 25) / (125 + 1 / 0.09), rel=1e-12)
    mean = (0.2 * 100 - 0.1 * 25 + 0.5 * 100) / (225 + 1 / 0.09)
    assert followed.follow(0.5, 0.1, USUAL) > mean + 0.01


def test_walks_and_curves_are_weighed_as_dense_algebra_does(monkeypatch):
    """Around the shrunk mean; jumps have no such formula."""
    monkeypatch.setattr(low_signal, "_KINDS", np.array([WALK, CURVE]))
    rng = np.random.default_rng(1)
    deviations = rng.uniform(0.02, 0.06, 12)
    found = np.linspace(0, 0.1, 12) + rng.normal(0, deviations)
    precision = (deviations**-2.0).sum()
    centre = (found / deviations**2).sum() / (precision + 1 / PRIOR**2)
    means, evidence = [], []
    for kind in (WALK, CURVE):
        for drift in (1 / 81, 1 / 27, 1 / 9, 1 / 3):
            covariance = np.linalg.inv(prior_precision(12, drift * USUAL, kind))
            total, gap = covariance + np.diag(deviations**2), found - centre
            gain = covariance[-1] @ np.linalg.inv(total)
            means.append(centre + gain @ gap)
            misfit = gap @ np.linalg.solve(total, gap) + np.linalg.slogdet(total)[1]
            evidence.append(-0.5 * misfit)
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    assert weights.max() < 0.6  # several of them count
    assert last(found, deviations) == pytest.approx(weights @ means, rel=1e-8)


def test_it_grows_with_the_unit_of_the_targets():
    found = STILL + np.random.default_rng(0).normal(0, 0.05, EPOCHS) + JUMP
    small = last(found, 0.05)
    large = last(8 * found, 8 * 0.05, 8 * PRIOR, 8 * USUAL)
    assert large == pytest.approx(8 * small, rel=1e-9)
    # How far levels move is counted in the usual deviation.
    assert abs(last(found, 0.05, usual=USUAL / 64) - small) > 0.01


def test_where_zero_is_does_not_matter_beyond_the_prior():
    found = STILL + np.random.default_rng(0).normal(0, 0.05, EPOCHS) + DRIFT
    near, far = last(found, 0.05, prior=1e9), last(found + 7, 0.05, prior=1e9)
    assert far == pytest.approx(near + 7, rel=1e-9)


# --- the intercept of a coarse booster ----------------------------------------------------------

ROWS = 500.0


def coarse(loss, features=2):
    """Return a coarse booster of so many features, which starts at 0.1."""
    functions = booster(np.zeros((features, 9), int), np.zeros(9), loss).functions
    return LowSignalBooster(functions, loss, ROWS, 0.1, USUAL, 20.0, n_epochs=EPOCHS)


@pytest.mark.parametrize(("features", "kind"), [(0, TrackedIntercept), (2, InterceptTracking)])
def test_the_intercept_is_the_level_of_all_epochs(features, kind):
    """Without features it is the only one; else there is also that of the middle."""
    learner, expected = coarse(SQUARED, features), kind(SQUARED.intercept_prior)
    for number, found in enumerate([5.0, -30.0, 12.0, 60.0, 55.0]):
        learner._usual = USUAL / (number + 1)  # residuals become smaller
        level_now = learner.intercept.values[0] + found / ROWS
        noise = 15.0 + number
        value = expected.follow(level_now, noise / ROWS, learner.usual)
        answer = Answer(np.array([found]), np.array([noise]))
        moved = learner.learn(learner.intercept, answer, 0.3, number)
        assert moved.shape == (1,)
        assert moved[0] == pytest.approx(value, rel=1e-12)
        learner.intercept.move(moved)


def test_an_intercept_that_has_to_move_does():
    learner, rng = coarse(SQUARED), np.random.default_rng(0)
    for number, needed in enumerate(DRIFT):
        residual = needed - learner.intercept.values[0]
        answer = Answer(np.array([ROWS * (residual + rng.normal(0, 0.01))]), 0.01 * ROWS)
        learner.intercept.move(learner.learn(learner.intercept, answer, 0.3, number))
    assert abs(learner.intercept.values[0] - DRIFT[-1]) < 0.02
    assert abs(DRIFT.mean() - DRIFT[-1]) == pytest.approx(0.1)


def test_the_intercept_of_labels_is_an_average():
    learner, plain = coarse(LOGISTIC), Booster([], LOGISTIC, ROWS, 0.1, USUAL, 20.0, EPOCHS)
    for number in range(3):
        answer = Answer(np.array([30.0]), np.array([5.0]))
        moved = [b.learn(b.intercept, answer, 0.1, number) for b in (learner, plain)]
        np.testing.assert_allclose(*moved)
        for b, values in zip((learner, plain), moved, strict=True):
            b.intercept.move(values)
