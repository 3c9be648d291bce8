"""Steps: what they ask for has the sensitivity that is paid for, and they learn."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import expit

from dprepro.ebm.batch_boosting import MAGNITUDES, BatchBooster, Function, query_shares
from dprepro.ebm.histogram_kernel import magnitude_counts

LOGISTIC = pytest.mark.parametrize("logistic", [True, False])


def booster(codes, targets, *, logistic, bins=3, deviation=1e-3, start=0.0):
    functions = [
        Function(
            code.astype(np.uint8),
            np.bincount(code, minlength=bins) + 0.5,
            np.zeros(bins),
            ordered=False,
        )
        for code in codes
    ]
    return BatchBooster(
        targets.astype(np.float32), functions, rows=float(max(len(targets), 1)), start=start,
        deviation=deviation, logistic=logistic,
    )  # fmt: skip


@LOGISTIC
@pytest.mark.parametrize("features", [1, 14, 300])
def test_the_shares_of_an_epoch_add_up(features, logistic):
    feature, intercept, magnitude = query_shares(features, logistic=logistic)
    assert features * feature + intercept + magnitude == pytest.approx(1.0)
    assert (magnitude == 0) == logistic


def answers(codes, targets, state, *, logistic, bound):
    """Return all queries of an epoch in one released state, weighted as they are in the ledger."""
    learner = booster(codes, targets, logistic=logistic, start=state[0])
    for function, values in zip(learner.functions, state[1:], strict=True):
        learner._move(function, np.array(values))
        learner._sums(learner.intercept)
    shares = query_shares(len(codes), logistic=logistic)
    learner.bound = learner._largest_residual() if logistic else bound
    asked = [learner._sums(learner.intercept) / learner.bound * math.sqrt(shares[1])]
    for function in learner.functions:
        asked.append(learner._sums(function) / learner.bound * math.sqrt(shares[0]))
    if not logistic:
        counts = magnitude_counts(learner._scores, learner.targets, *learner._pending, MAGNITUDES)
        asked.append(counts * math.sqrt(shares[2]))
    return np.concatenate(asked)


@LOGISTIC
def test_no_row_moves_the_queries_of_an_epoch_by_more_than_one(logistic):
    """Brute force: every possible extra row, in many released states, on top of some rows."""
    rng, largest = np.random.default_rng(0), 0.0
    codes, targets = rng.integers(0, 3, (2, 2)), np.array([0.0, 1.0]) - (not logistic) / 2
    extremes = (0.0, 1.0) if logistic else (-0.5, 0.0, 0.5)
    for _ in range(10):
        state = [float(rng.normal(0, 2)), *rng.normal(0, 3, (2, 3))]
        asked = answers(codes, targets, state, logistic=logistic, bound=0.2)
        for a, b, target in itertools.product(range(3), range(3), extremes):
            more = np.column_stack([codes, [a, b]]), np.append(targets, target)
            moved = answers(*more, state, logistic=logistic, bound=0.2) - asked
            largest = max(largest, float(np.linalg.norm(moved)))
    assert 0.99 < largest <= 1 + 1e-6


@LOGISTIC
def test_every_query_gets_the_noise_of_its_share(logistic, monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 400))
    learner = booster(codes, np.zeros(400), logistic=logistic, deviation=7.0)
    monkeypatch.setattr(learner, "_sums", lambda f: np.zeros(f.counts.size))
    unit = np.full(learner.noise_size(), 7.0)
    share = query_shares(2, logistic=logistic)[0]
    learner.functions[0].values[:] = learner.intercept.values[:] = 0.0
    learner.bound = 0.25
    before = learner._curvature(learner.functions[0])
    learner._step(learner.functions[0], 1.0, unit[:3])
    expected = (0.25 * 7.0 / math.sqrt(share) / before) ** 2
    np.testing.assert_allclose(learner.functions[0].noise, expected)


def test_it_learns_an_additive_function():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 3000))
    f, g = np.array([-0.1, 0.0, 0.1]), np.array([0.1, -0.05, -0.05])
    targets = f[codes[0]] + g[codes[1]] + 0.02
    learner = booster(codes, targets, logistic=False)
    learner.learn(rng.normal(0, 1e-3, (16, learner.noise_size())))
    fitted = learner.intercept.values[0] + sum(
        function.values[code] for function, code in zip(learner.functions, codes, strict=True)
    )
    assert np.abs(fitted - targets).max() < 0.01


def test_it_learns_log_odds():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 40_000))
    f, g = np.array([-1.5, 0.0, 1.5]), np.array([1.0, -1.0, 0.0])
    odds = f[codes[0]] + g[codes[1]] - 1
    targets = (rng.random(40_000) < expit(odds)).astype(float)
    learner = booster(codes, targets, logistic=True)
    learner.learn(rng.normal(0, 1e-3, (16, learner.noise_size())))
    for function, truth in zip(learner.functions, (f, g), strict=True):
        np.testing.assert_allclose(function.values, truth - truth.mean(), atol=0.12)
    assert learner.intercept.values[0] == pytest.approx(-1, abs=0.1)


def test_residuals_of_labels_are_bounded_by_the_released_functions():
    learner = booster(np.array([[0, 1], [1, 2]]), np.array([0, 1]), logistic=True, start=0.3)
    learner.functions[0].values[:] = [-1.0, 0.5, 0.2]
    learner.functions[1].values[:] = [0.0, 2.0, -0.5]
    assert learner._largest_residual() == pytest.approx(expit(0.3 + 0.5 + 2.0))


def test_little_noise_clips_little_and_much_noise_clips_much():
    rng = np.random.default_rng(0)
    codes, targets = rng.integers(0, 3, (1, 5000)), np.clip(rng.normal(0, 0.05, 5000), -0.5, 0.5)
    bounds = []
    for deviation in (1e-3, 1e2, 1e3):
        learner = booster(codes, targets, logistic=False, deviation=deviation)
        learner._epochs = 1
        learner._set_bound(np.zeros(MAGNITUDES))
        bounds.append(learner.bound)
    assert 0.5 >= bounds[0] > bounds[1] > bounds[2]
    assert bounds[0] > 0.12
