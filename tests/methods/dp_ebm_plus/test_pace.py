"""How far functions go that move at once: as far as the slopes of their likelihood say."""

import numpy as np
import pytest
from scipy.special import expit

from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.booster import Answer, Damping
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC
from tests.methods.dp_ebm_plus.stub import booster, gaussian, learn

START = 0.25
"""First pace of sixteen functions."""


def paced(before, after, deviation=0.0, functions=16):
    """Return the pace after a change along which slopes were `before`, and are `after`.

    Two functions, of two bins and of one, share the slopes.
    """
    pace = Damping(functions)
    changes = [np.array([0.5, -0.5]), np.array([2.0])]

    def answers(slope):
        sums = [np.array([slope / 2, -slope / 2]), np.array([slope / 4])]
        return [Answer(each, deviation) for each in sums]

    pace.remember(changes, answers(before))
    pace.follow(answers(after))
    return pace.value


@pytest.mark.parametrize(("functions", "pace"), [(0, 1), (1, 1), (4, 0.5), (100, 0.1)])
def test_the_first_pace_is_between_all_functions_alike_and_none(functions, pace):
    made = Damping(functions)
    made.follow([])
    assert made.value == pytest.approx(pace)


@pytest.mark.parametrize(
    ("after", "factor"),
    [
        (-1.0, 0.5),  # as far beyond the best as it was short of it
        (-0.25, 0.8),
        (0.2, 1.25),
        (0.5, 1.5),  # twice, but for the limit
        (3.0, 1.5),  # still steeper
        (-9.0, 0.3),  # a tenth, but for the limit
        (0.0, 1.0),
    ],
)
def test_the_pace_follows_the_secant(after, factor):
    assert paced(1.0, after) == pytest.approx(START * factor)
    assert paced(100.0, 100 * after) == pytest.approx(START * factor)


def test_a_slope_that_did_not_rise_says_nothing():
    for before in (0.0, -1.0):
        assert paced(before, -5.0) == START


def test_a_slope_that_may_be_noise_hardly_counts():
    """Of two bins moved by a half, and one by 2, the noise in the slope is sqrt(4.5) as large."""
    paces = [paced(1.0, -1.0, noise) for noise in (0.0, 1 / np.sqrt(4.5), 100.0)]
    np.testing.assert_allclose(paces, [START / 2, START / 1.5, START], rtol=1e-3)


def test_noise_that_differs_from_bin_to_bin_counts_where_functions_change():
    pace, changes = Damping(1), [np.array([1.0, 0.0])]
    pace.remember(changes, [Answer(np.array([1.0, 0.0]), 1.0)])
    pace.follow([Answer(np.array([-1.0, 0.0]), np.array([0.0, 1e9]))])
    assert pace.value == 0.5


def test_the_pace_stays_between_a_half_over_the_number_of_functions_and_one():
    slow, fast = Damping(10), Damping(10)
    for _ in range(20):
        for pace, after in ((slow, -1e6), (fast, 1e6)):
            pace.remember([np.ones(1)], [Answer(np.ones(1), 0.0)])
            pace.follow([Answer(np.full(1, after), 0.0)])
    assert (slow.value, fast.value) == (0.05, 1.0)


@pytest.mark.parametrize("ordered", [False, True])
def test_the_slope_is_that_of_the_log_likelihood_along_the_change(ordered):
    """What the booster notes, of rows whose residuals are not clipped and without noise."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 500))
    targets = rng.integers(0, 2, 500)
    learner = booster(codes, targets, LOGISTIC, deviation=1e-6, ordered=ordered)
    learner.bound, start = 50.0, learner.level.values[0]
    learn(learner, 1)
    level = learner.level.values[0]
    changes, before = learner.damping._before
    along = sum(effect.values[code] for effect, code in zip(learner.effects, codes, strict=True))
    assert len(changes) == 2

    def likelihood(part, level):
        return np.log(expit((level + part * along) * (2 * targets - 1))).sum()

    slope = (likelihood(1e-4, start) - likelihood(-1e-4, start)) / 2e-4
    assert before == pytest.approx(slope, rel=1e-2)
    learn(learner, 1)
    after = (likelihood(1 + 1e-4, level) - likelihood(1 - 1e-4, level)) / 2e-4
    first = 1 / np.sqrt(2)
    secant = 1 / max(1 - after / before, 1 / 1.5)
    assert learner.damping.value == pytest.approx(min(first * max(secant, 0.3), 1.0), rel=1e-2)


def in_sum(paced, epochs=24, copies=16):
    """Return what so many copies of a feature add up to after each epoch, (epochs,): a step."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 4000)
    targets = rng.random(4000) < expit(2 * (codes - 1.0))
    copied = np.tile(codes, (copies, 1))
    learner = booster(copied, targets, LOGISTIC, noise=gaussian(1e-3), n_epochs=epochs)
    found = []
    for number in range(epochs):
        if not paced:
            learner.damping.value, learner.damping._before = 1.0, None
        algorithm.epoch(learner.curator, learner, number)
        values = sum(effect.values for effect in learner.effects)
        found.append((values[2] - values[0]) / 2)
    return np.array(found)


def test_copies_of_a_feature_do_not_go_too_far_together():
    steps = in_sum(paced=True)
    # The first pace is 4 times that of one function, over 16.
    assert steps.max() < 1.1 * 4 * 2
    np.testing.assert_allclose(steps[-8:], 2.0, atol=0.2)
    # Without a pace they never come back.
    assert np.abs(in_sum(paced=False)[-8:]).max() > 50
