"""Epochs: what they ask for has the sensitivity that is charged, and what is learned of it."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dprepro.methods.dp_ebm_plus.booster import (
    Average,
    Effect,
    averaging,
    noise_of_average,
)
from dprepro.methods.dp_ebm_plus.clipping import MAGNITUDES
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, CodedResiduals, Magnitudes, Start
from tests.methods.dp_ebm_plus.stub import (
    BOTH,
    Stub,
    ask_for_bound,
    booster,
    exact_answers,
    gaussian,
    learn,
)

COUNTS = np.array([700.0, 40.0, 5.0])

# --- sensitivity --------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("features", [0, 1, 14, 300])
def test_the_shares_of_an_epoch_add_up(features, loss):
    learner = booster(np.zeros((features, 4), int), np.zeros(4), loss)
    query = learner.coded_residuals()
    shares = [query.share, learner.level_share, learner.sizes_share]
    assert sum(shares) == pytest.approx(1, rel=1e-12)
    assert sum(shares) <= 1 + 1e-15
    assert (shares[1] == shares[2] == 0) == (loss is LOGISTIC)
    assert min(shares) > 0 or loss is LOGISTIC
    assert len(query.codes) == features + 1


@BOTH
def test_every_epoch_spends_its_shares(loss):
    codes = np.random.default_rng(0).integers(0, 3, (2, 500))
    targets = (codes[0] == 1) * 1.0 - (loss is SQUARED) * 0.5
    learner = booster(codes, targets, loss, noise=gaussian(1e-3), n_epochs=5)
    learn(learner)
    queries = [query for query, *_ in learner.curator.asked]
    spent = np.reshape([query.share for query in queries], (5, -1))
    np.testing.assert_allclose(spent.sum(axis=1), 1.0, rtol=1e-12)
    assert spent.shape[1] == (1 if loss is LOGISTIC else 3)


def in_state(learner, table, state, loss):
    """Let a learner have released functions, and ask about a table: return what an epoch brings.

    Each answer is over the noise that a draw of one adds to it.
    """
    start, values, bound = state
    learner.curator = Stub(exact_answers(*table, loss), None, 1e-3)
    learner.curator.tell(Start(start))
    for effect, f in zip(learner.effects, values, strict=True):
        effect.move(np.zeros(3))
        learner.curator.tell(effect.move(f))
    learner.bound = bound
    queries = [learner.coded_residuals()]
    if loss is SQUARED:
        queries += [learner.of_level(), Magnitudes(1.0, learner.sizes_share)]
    for query in queries:
        learner.curator.answer(query)
    return np.concatenate(
        [
            exact * math.sqrt(query.share) / query.charged
            for query, exact, _ in learner.curator.asked
        ]
    )


@BOTH
@pytest.mark.parametrize("ordered", [False, True])
def test_no_row_moves_the_answers_of_an_epoch_by_more_than_one(loss, ordered):
    """Brute force: every possible extra row, in many released states, on top of some rows."""
    rng, moves = np.random.default_rng(0), []
    codes, targets = rng.integers(0, 3, (2, 2)), np.array([0.0, 1.0]) - (loss is SQUARED) / 2
    learner = booster(codes, targets, loss, counts=COUNTS, ordered=ordered)
    extremes = (0.0, 1.0) if loss is LOGISTIC else (-0.5, 0.0, 0.5)
    for _ in range(12):
        state = (
            int(2**24 * rng.normal(0, 2)),
            rng.normal(0, 3, (2, 3)),
            float(rng.choice([0.02, 0.2, 0.5])),
        )
        answers = in_state(learner, (codes, targets), state, loss)
        for a, b, target in itertools.product(range(3), range(3), extremes):
            more = np.column_stack([codes, [a, b]]), np.append(targets, target)
            moved = in_state(learner, more, state, loss) - answers
            moves.append(np.linalg.norm(moved))
    assert 0.99 < max(moves) <= 1 + 1e-6


@BOTH
def test_the_bound_is_that_of_a_row_whose_code_is_of_typical_length(loss):
    codes = np.array([[0] * 70 + [1] * 25 + [2] * 5] * 2)
    learner = booster(codes, np.zeros(100), loss, counts=np.array([70.0, 25.0, 5.0]))
    learner.bound = 0.4
    query = learner.coded_residuals()
    bins = {INTERCEPT: np.zeros(100, int), 0: codes[0], 1: codes[1]}
    norms = sum(code.squared_norms()[bins[code.feature]] for code in query.codes)
    assert query.bound == query.charged == pytest.approx(0.4 * math.sqrt(norms.mean()))
    # Rows in bins that many share have shorter codes: their residuals may be larger.
    allowed = query.bound / np.sqrt(norms)
    assert allowed[0] > 0.4 > 0.3 > allowed[-1]


def test_a_function_moves_by_no_more_than_a_score_can():
    """From the least value to the largest the change would overflow int32 with a score."""
    effect = Effect(0, np.ones(3))
    effect.move(np.full(3, -1e9))
    assert (effect.move(np.full(3, 1e9)).change == 2**30 - 1).all()


# --- noise --------------------------------------------------------------------------------------


def test_nothing_but_the_noisy_counts_say_how_large_residuals_are():
    """Noise that cancels the counts of a table, and puts others there, hides it altogether."""
    noisy = {low: np.where(np.arange(MAGNITUDES) == low, 745.0, 0.0) for low in (3, 9)}
    found = {low: [] for low in noisy}
    for low, (spread, rows) in itertools.product(noisy, ((0.01, 40), (0.1, 7), (0.4, 900))):
        targets = np.random.default_rng(0).uniform(-spread, spread, rows)
        learner = booster(np.zeros((1, rows), int), targets, SQUARED, counts=COUNTS, deviation=10.0)
        learner.start = replace(learner.start, residual=0.2)  # by the totals
        counts = learner.curator.exact.answer(Magnitudes(1.0, 1.0)).value
        root = math.sqrt(learner.sizes_share)
        learner.curator.noise = lambda _, n=noisy[low], c=counts, r=root: (n - c) * r
        ask_for_bound(learner)
        found[low].append((learner.bound, learner.mean_square, learner.within))
    for answers in found.values():
        np.testing.assert_allclose(answers[1:], answers[:1] * 2)
    assert found[3][0][0] > found[9][0][0]
    assert found[3][0][1] > found[9][0][1]


def test_an_average_knows_its_noise():
    average = Average()
    assert average.deviation == np.inf
    average.add(np.array([1.0, 2.0]), 3.0, 1.0)
    average.add(np.array([5.0, 4.0]), 1.0, 3.0)
    np.testing.assert_allclose(average.mean, [4.0, 3.5])
    assert average.deviation == pytest.approx(np.sqrt(3**2 + 3**2) / 4)


def test_the_less_is_lost_in_noise_the_less_do_early_epochs_count():
    shares = [averaging(64, lost)[:32].sum() for lost in (1e9, 0.005, 0.0)]
    assert shares == pytest.approx([0.5**2.5, 0.5**3.75, 0.5**5], rel=0.1)
    for lost in (1e9, 0.0):
        weights = averaging(64, lost)
        assert weights.sum() == pytest.approx(1)
        assert noise_of_average(weights) == pytest.approx(np.sqrt((weights**2).sum()))
    np.testing.assert_array_equal(averaging(5), averaging(5, np.inf))


def test_little_noise_clips_little_and_much_noise_clips_much():
    rng = np.random.default_rng(0)
    codes, targets = rng.integers(0, 3, (1, 5000)), np.clip(rng.normal(0, 0.05, 5000), -0.5, 0.5)
    bounds = []
    for deviation in (1e-3, 1e3, 1e4):
        learner = booster(codes, targets, SQUARED, deviation=deviation)
        ask_for_bound(learner)
        bounds.append(learner.bound)
    assert 0.5 >= bounds[0] > bounds[1] > bounds[2]
    assert bounds[0] > 0.12


# --- what is learned ----------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [False, True])
def test_an_additive_function_of_numbers_is_learned(ordered):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 3000))
    f, g = np.array([-0.1, 0.0, 0.1]), np.array([0.1, -0.05, -0.05])
    targets = f[codes[0]] + g[codes[1]] + 0.02
    learner = booster(codes, targets, SQUARED, noise=gaussian(1e-3), ordered=ordered)
    learn(learner)
    found = learner.level.values[0] + sum(
        effect.values[code] for effect, code in zip(learner.effects, codes, strict=True)
    )
    assert np.abs(found - targets).max() < 0.01


@pytest.mark.parametrize(("alike", "within"), [(0.0, 0.12), (0.6, 0.25)])
def test_log_odds_are_learned(alike, within):
    """Also of features that go together, which takes more epochs: early answers are off."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 40_000))
    codes[1] = np.where(rng.random(40_000) < alike, codes[0], codes[1])
    f, g = np.array([-1.5, 0.0, 1.5]), np.array([1.0, -1.0, 0.0])
    odds = f[codes[0]] + g[codes[1]] - 1
    targets = (rng.random(40_000) < expit(odds)).astype(float)
    learner = booster(codes, targets, LOGISTIC, noise=gaussian(1e-3), n_epochs=32)
    learn(learner)
    for effect, truth in zip(learner.effects, (f, g), strict=True):
        np.testing.assert_allclose(effect.values, truth - truth.mean(), atol=within)
    assert learner.level.values[0] == pytest.approx(-1, abs=0.1)


@BOTH
def test_without_a_function_the_intercept_is_learned_alone(loss):
    targets = np.repeat([0.0, 1.0], [30, 10]) - (loss is SQUARED) * 0.5
    learner = booster(np.zeros((0, 40), int), targets, loss)
    learn(learner)
    assert isinstance(learner.curator.asked[-1][0], CodedResiduals)
    expected = math.log(10.5 / 30.5) if loss is LOGISTIC else -0.25
    assert learner.level.values[0] == pytest.approx(expected, abs=0.1)


def test_what_all_bins_share_is_left_to_the_intercept():
    """Bins of few rows would shrink it more than others, and then differ from them."""
    codes = np.repeat([[0, 1, 2]], COUNTS.astype(int), axis=1)
    learner = booster(codes, np.full(codes.size, 0.002), SQUARED, deviation=3.0)
    learner.level.move(np.zeros(1))
    learner.middle.move(np.zeros(1))
    learner.curator.tell(Start(0))
    query = learner.coded_residuals()
    _, *moves = learner.learn(learner.curator.answer(query), 1)
    assert len(moves) == 1
    np.testing.assert_allclose(moves[0].change / 2**24, 0, atol=2e-5)


@BOTH
@pytest.mark.parametrize("ordered", [False, True])
def test_functions_go_as_far_as_the_pace_towards_what_is_inferred(loss, ordered):
    codes = np.stack([np.repeat([0, 1, 2], 200), np.arange(600) % 3])
    targets = np.tile([0.0, 0.0, 1.0, 0.0, 1.0, 1.0], 100) - (loss is SQUARED) * 0.5
    learner = booster(codes, targets, loss, noise=gaussian(3), deviation=3.0, ordered=ordered)
    learn(learner, 1)
    before = [effect.values for effect in learner.effects]
    learn_one = learner._infer
    goals = []

    def inferring(*told):
        goals.append(learn_one(*told))
        return goals[-1]

    learner._infer = inferring
    learner.learn(learner.curator.answer(learner.coded_residuals()), 1)
    pace = learner.damping.value
    assert 0 < pace <= 1
    for effect, old, goal in zip(learner.effects, before, goals, strict=True):
        to = goal.mean - np.average(goal.mean, weights=effect.counts)
        assert np.abs(to - old).max() > 1e-4
        np.testing.assert_allclose(effect.values, old + pace * (to - old), atol=1e-6)
        np.testing.assert_allclose(effect.band, np.sqrt(goal.variance))


def test_the_mean_of_two_peaks_is_found_though_residuals_are_clipped():
    targets = np.repeat([-0.2, 0.25], [3500, 1500])
    learner = booster(np.zeros((1, 5000), int), targets, SQUARED, deviation=400.0)
    learn(learner)
    assert learner.bound < 0.4
    assert learner.level.values[0] == pytest.approx(targets.mean(), abs=0.005)
