"""Steps: what they ask for has the sensitivity that is paid for."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from dprepro.ebm_plus.booster import BatchBooster, Function, query_shares
from dprepro.ebm_plus.clipping import MAGNITUDES
from dprepro.ebm_plus.kernel import magnitude_counts

LOGISTIC = pytest.mark.parametrize("logistic", [True, False])
COUNTS = np.array([700.0, 40.0, 5.0])


def booster(codes, targets, *, logistic, counts=None, deviation=1e-3, start=0.0):
    bins = 3
    functions = [
        Function(
            code.astype(np.uint8),
            np.bincount(code, minlength=bins) + 0.5 if counts is None else counts,
            np.zeros(bins),
            np.full(bins, 1 / bins),
            ordered=False,
        )
        for code in codes
    ]
    rows = float(max(len(targets), 1)) if counts is None else counts.sum()
    return BatchBooster(
        targets.astype(np.float32), functions, rows=rows, start=start, typical=0.2,
        deviation=deviation, logistic=logistic,
    )  # fmt: skip


def settle(learner):
    """Let the scores follow the last function that has moved."""
    learner._sums(learner.intercept, 1.0)
    learner._pending = (learner.intercept.codes, np.zeros(1, np.float32))


def in_state(codes, targets, state, *, logistic):
    """Return a learner that has released functions: the same for every table."""
    start, values, deviations, bound = state
    learner = booster(codes, targets, logistic=logistic, counts=COUNTS, start=start)
    for function, f, deviation in zip(learner.functions, values, deviations, strict=True):
        function.deviations = deviation
        learner._pending = (function.codes, function.move(f))
        settle(learner)
    learner.bound = learner._largest_residual() if logistic else bound
    return learner


def some_state(rng, features=2):
    values, deviations = rng.normal(0, 3, (features, 3)), rng.gamma(0.5, 2, (features, 3))
    return float(rng.normal(0, 2)), values, deviations, float(rng.choice([0.02, 0.2, 0.5]))


# --- sensitivity --------------------------------------------------------------------------------


@LOGISTIC
@pytest.mark.parametrize("features", [0, 1, 14, 300])
def test_the_shares_of_an_epoch_add_up(features, logistic):
    all_features, intercept, magnitude = query_shares(features, logistic=logistic)
    assert all_features + intercept + magnitude == pytest.approx(1.0)
    assert (magnitude == 0) == logistic
    assert (all_features == 0) == (features == 0)


SIZES = st.floats(0, 1e6) | st.just(0.0)


@LOGISTIC
@given(st.lists(st.tuples(SIZES, SIZES, st.floats(0, 1e3)), max_size=6))
def test_the_shares_of_an_epoch_add_up_in_any_state(logistic, sizes):
    learner = booster(np.zeros((len(sizes), 1), int), np.zeros(1), logistic=logistic)
    for function, (first, second, deviation) in zip(learner.functions, sizes, strict=True):
        function.values[:] = first, second, 0.0
        function.deviations = np.full(3, deviation)
    shares = learner._feature_shares()
    assert len(shares) == len(sizes)
    assert sum(shares) + learner.shares[1] + learner.shares[2] == pytest.approx(1, abs=1e-12)
    assert all(share > 0 for share in shares)


@LOGISTIC
def test_shares_follow_what_is_released_and_nothing_else(logistic):
    rng = np.random.default_rng(0)
    state = some_state(rng)
    shares = [
        in_state(
            rng.integers(0, 3, (2, rows)), rng.random(rows) - 0.5, state, logistic=logistic
        )._feature_shares()
        for rows in (1, 7, 400)
    ]
    assert shares[0] == shares[1] == shares[2]
    larger = (state[0], state[1] * [[3.0], [1.0]], state[2], state[3])
    grown = in_state(np.zeros((2, 1), int), np.zeros(1), larger, logistic=logistic)
    assert grown._feature_shares()[0] > shares[0][0]


@LOGISTIC
def test_every_epoch_spends_its_shares_though_functions_grow_within_it(logistic, monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 500))
    targets = (codes[0] == 1) * 1.0 - (not logistic) * 0.5
    learner, asked = booster(codes, targets, logistic=logistic), []
    ask = learner._ask

    def watch_ask(function, share, noise):
        asked.append(share)
        return ask(function, share, noise)

    monkeypatch.setattr(learner, "_ask", watch_ask)
    learner.learn(rng.normal(0, 1e-3, (5, learner.noise_size())))
    spent = np.reshape(asked, (5, 3))
    np.testing.assert_allclose(spent.sum(axis=1) + learner.shares[2], 1.0, rtol=1e-12)
    assert spent[0, 1] == spent[0, 2]
    assert spent[-1, 1] > 2 * spent[-1, 2]


def magnitudes(learner):
    """Return the exact histogram of |residual|, and what its noise of one draw adds to a count."""
    none = np.zeros_like(learner._pending[1])
    counts = magnitude_counts(
        learner._scores, learner.targets, learner._pending[0], none, MAGNITUDES
    )
    return counts, 1 / math.sqrt(learner.shares[2])


def weighted_answers(learner):
    """Return all answers of an epoch, each over the noise that a draw of one adds to it."""
    shares, found = [learner.shares[1], *learner._feature_shares()], []
    for function, share in zip([learner.intercept, *learner.functions], shares, strict=True):
        none = np.zeros((2 if learner.logistic else 1, function.counts.size))
        exact = learner._ask(function, share, none)[0][: len(none)]
        noisy = learner._ask(function, share, none + 1)[0][: len(none)]
        found.append((exact / (noisy - exact)).ravel())
    if not learner.logistic:
        counts, scale = magnitudes(learner)
        found.append(counts / scale)
    return np.concatenate(found)


@LOGISTIC
def test_no_row_moves_the_answers_of_an_epoch_by_more_than_one(logistic):
    """Brute force: every possible extra row, in many released states, on top of some rows."""
    rng, moves = np.random.default_rng(0), []
    codes, targets = rng.integers(0, 3, (2, 2)), np.array([0.0, 1.0]) - (not logistic) / 2
    extremes = (0.0, 1.0) if logistic else (-0.5, 0.0, 0.5)
    for _ in range(20):
        state = some_state(rng)
        answers = weighted_answers(in_state(codes, targets, state, logistic=logistic))
        for a, b, target in itertools.product(range(3), range(3), extremes):
            more = np.column_stack([codes, [a, b]]), np.append(targets, target)
            moved = weighted_answers(in_state(*more, state, logistic=logistic)) - answers
            moves.append(np.linalg.norm(moved))
    assert 0.99 < max(moves) <= 1 + 1e-6


@pytest.mark.parametrize("bound", [0.1, 0.3, 0.7, 2**-4.5, 0.5])
def test_bounds_are_rounded_down_to_the_kernels_precision(bound):
    learner = booster(np.zeros((1, 1), int), np.array([0.5]), logistic=False, start=-1.0)
    assert bound * (1 - 1e-6) < learner._sums(learner.functions[0], bound)[0, 0] <= bound


def test_residuals_of_labels_are_bounded_by_the_released_functions():
    learner = booster(np.array([[0, 1], [1, 2]]), np.array([0, 1]), logistic=True, start=0.3)
    learner.functions[0].values[:] = [-1.0, 0.5, 0.2]
    learner.functions[1].values[:] = [0.0, 2.0, -0.5]
    assert learner._largest_residual() == pytest.approx(expit(0.3 + 0.5 + 2.0))
    learner.functions[0].values[0] = -9.0
    assert learner._largest_residual() == pytest.approx(expit(-0.3 + 9.0 + 0.5))


# --- noise --------------------------------------------------------------------------------------


def watched(learner, monkeypatch):
    """Record the exact sums of every step with their bound, and what is remembered of them."""
    exact, told = [], []
    sums, remember = learner._sums, Function.remember

    def watch_sums(function, bound):
        exact.append((bound, sums(function, bound)))
        return exact[-1][1].copy()

    def watch_remember(function, answers, expected, weight, deviation):
        told.append((answers.copy(), deviation))
        remember(function, answers, expected, weight, deviation)

    monkeypatch.setattr(learner, "_sums", watch_sums)
    monkeypatch.setattr(Function, "remember", watch_remember)
    return exact, told


@LOGISTIC
def test_every_answer_has_its_own_noise_and_enough_of_it(logistic, monkeypatch):
    """The difference from the exact sums is the draw, over its share and times its sensitivity."""
    rng = np.random.default_rng(0)
    state = some_state(rng)
    targets = rng.integers(0, 2, 50) - (not logistic) / 2
    learner = in_state(rng.integers(0, 3, (2, 50)), targets, state, logistic=logistic)
    learner._deviation, learner._epochs = 7.0, 1
    shares = [learner.shares[1], *learner._feature_shares()]
    assert max(shares[1:]) > 1.2 * min(shares[1:])
    exact, told = watched(learner, monkeypatch)
    noise = rng.normal(0, 7, learner.noise_size())
    learner._epoch(0, noise)
    rest, answers = noise[0 if logistic else MAGNITUDES :], 2 if logistic else 1
    for (bound, sums), (noisy, deviation), share, bins in zip(
        exact, told, shares, (1, 3, 3), strict=True
    ):
        own, rest = np.split(rest, [answers * bins])
        scale = bound * (math.sqrt(1 + (1 - bound) ** 2) if logistic else 1) / math.sqrt(share)
        added = scale * np.vstack([own.reshape(answers, bins), np.zeros((2 - answers, bins))])
        np.testing.assert_allclose(noisy - sums, added, atol=1e-9)
        assert deviation == pytest.approx(7 * scale)
    assert rest.size == 0


def test_nothing_but_the_noisy_histogram_says_how_large_residuals_are():
    """Noise that cancels the counts of a table, and puts others there, hides it altogether."""
    noisy = {low: np.where(np.arange(MAGNITUDES) == low, 745.0, 0.0) for low in (3, 9)}
    found = {low: [] for low in noisy}
    for low, (spread, rows) in itertools.product(noisy, ((0.01, 40), (0.1, 7), (0.4, 900))):
        targets = np.random.default_rng(0).uniform(-spread, spread, rows)
        learner = booster(
            np.zeros((1, rows), int), targets, logistic=False, counts=COUNTS, deviation=10.0
        )
        learner._epochs = 1
        counts, scale = magnitudes(learner)
        learner._set_bound((noisy[low] - counts) / scale)
        found[low].append((learner.bound, learner._mean_square))
    for answers in found.values():
        np.testing.assert_allclose(answers[1:], answers[:1] * 2)
    assert found[3][0][0] > found[9][0][0]
    assert found[3][0][1] > found[9][0][1]
