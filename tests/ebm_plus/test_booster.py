"""Steps: what they ask for has the sensitivity that is charged."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from dprepro.ebm_plus.booster import query_shares
from dprepro.ebm_plus.clipping import MAGNITUDES
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.ebm_plus.queries import INTERCEPT, Magnitudes, Move, Residuals
from tests.ebm_plus.stub import (
    LOSSES,
    ask_for_bound,
    booster,
    exact_answers,
    gaussian,
    learn,
)

BOTH = pytest.mark.parametrize("loss", LOSSES, ids=["classification", "regression"])
COUNTS = np.array([700.0, 40.0, 5.0])


def in_state(codes, targets, state, loss):
    """Return a learner that has released functions: the same for every table."""
    start, values, deviations, bound = state
    learner = booster(codes, targets, loss, counts=COUNTS, start=start)
    for function, f, deviation in zip(learner.functions, values, deviations, strict=True):
        function.deviations = deviation
        learner.curator.tell(Move(function.feature, function.move(f)))
        # The change is applied with the next query.
        learner.curator.answer(Residuals(1.0, 1.0, INTERCEPT, 1.0, loss))
    learner.bound = learner.largest_residual() if loss is LOGISTIC else bound
    learner.curator.asked.clear()
    return learner


def some_state(rng, features=2):
    values, deviations = rng.normal(0, 3, (features, 3)), rng.gamma(0.5, 2, (features, 3))
    return float(rng.normal(0, 2)), values, deviations, float(rng.choice([0.02, 0.2, 0.5]))


# --- sensitivity --------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("features", [0, 1, 14, 300])
def test_the_shares_of_an_epoch_add_up(features, loss):
    all_features, intercept, magnitude = query_shares(features, loss)
    assert all_features + intercept + magnitude == pytest.approx(1.0)
    assert (magnitude == 0) == (loss is LOGISTIC)
    assert (all_features == 0) == (features == 0)


SIZES = st.floats(0, 1e6) | st.just(0.0)


@BOTH
@settings(deadline=None)
@given(st.lists(st.tuples(SIZES, SIZES, st.floats(0, 1e3)), min_size=1, max_size=6))
def test_the_shares_of_an_epoch_add_up_in_any_state(loss, sizes):
    learner = booster(np.zeros((len(sizes), 1), int), np.zeros(1), loss)
    for function, (first, second, deviation) in zip(learner.functions, sizes, strict=True):
        function.values[:] = first, second, 0.0
        function.deviations = np.full(3, deviation)
    shares = learner.feature_shares()
    assert len(shares) == len(sizes)
    assert sum(shares) + learner.shares.intercept + learner.shares.magnitudes == pytest.approx(
        1, abs=1e-12
    )
    assert all(share > 0 for share in shares)


@BOTH
def test_where_all_bins_are_merged_the_intercept_is_learned_alone(loss):
    targets = np.repeat([0.0, 1.0], [30, 10]) - (loss is SQUARED) * 0.5
    learner = booster(np.zeros((1, 40), int), targets, loss)
    learner.functions.clear()
    learner.shares = query_shares(0, loss)
    learn(learner, 8)
    expected = math.log(10.5 / 30.5) if loss is LOGISTIC else -0.25
    assert learner.intercept.values[0] == pytest.approx(expected, abs=0.1)


@BOTH
def test_shares_follow_what_is_released_and_nothing_else(loss):
    rng = np.random.default_rng(0)
    state = some_state(rng)
    shares = [
        in_state(
            rng.integers(0, 3, (2, rows)), rng.integers(0, 2, rows) - 0.5, state, loss
        ).feature_shares()
        for rows in (1, 7, 400)
    ]
    assert shares[0] == shares[1] == shares[2]
    larger = (state[0], state[1] * [[3.0], [1.0]], state[2], state[3])
    grown = in_state(np.zeros((2, 1), int), np.zeros(1), larger, loss)
    assert grown.feature_shares()[0] > shares[0][0]


@BOTH
def test_every_epoch_spends_its_shares_though_functions_grow_within_it(loss):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 500))
    targets = (codes[0] == 1) * 1.0 - (loss is SQUARED) * 0.5
    learner = booster(codes, targets, loss, noise=gaussian(1e-3))
    learn(learner, 5)
    queries = [query for query, *_ in learner.curator.asked]
    spent = np.reshape([query.share for query in queries], (5, -1))
    np.testing.assert_allclose(spent.sum(axis=1), 1.0, rtol=1e-12)
    assert [type(query) for query in queries[:1]] == [Residuals if loss is LOGISTIC else Magnitudes]
    assert spent[0, -2] == spent[0, -1]
    assert spent[-1, -2] > 2 * spent[-1, -1]


def weighted_answers(learner):
    """Return all answers of an epoch, each over the noise that a draw of one adds to it."""
    shares = [learner.shares.intercept, *learner.feature_shares()]
    for function, share in zip([learner.intercept, *learner.functions], shares, strict=True):
        learner.curator.answer(learner.residuals_of(function, share))
    if learner.loss is SQUARED:
        learner.curator.answer(Magnitudes(1.0, learner.shares.magnitudes))
    return np.concatenate(
        [
            (exact * math.sqrt(query.share) / query.charged).ravel()
            for query, exact, _ in learner.curator.asked
        ]
    )


@BOTH
def test_no_row_moves_the_answers_of_an_epoch_by_more_than_one(loss):
    """Brute force: every possible extra row, in many released states, on top of some rows."""
    rng, moves = np.random.default_rng(0), []
    codes, targets = rng.integers(0, 3, (2, 2)), np.array([0.0, 1.0]) - (loss is SQUARED) / 2
    extremes = (0.0, 1.0) if loss is LOGISTIC else (-0.5, 0.0, 0.5)
    for _ in range(20):
        state = some_state(rng)
        answers = weighted_answers(in_state(codes, targets, state, loss))
        for a, b, target in itertools.product(range(3), range(3), extremes):
            more = np.column_stack([codes, [a, b]]), np.append(targets, target)
            moved = weighted_answers(in_state(*more, state, loss)) - answers
            moves.append(np.linalg.norm(moved))
    assert 0.99 < max(moves) <= 1 + 1e-6


@pytest.mark.parametrize("bound", [0.1, 0.3, 0.7, 2**-4.5, 0.5])
def test_bounds_are_rounded_down_to_the_kernels_precision(bound):
    exact = exact_answers(np.zeros((1, 1), int), np.array([0.5]), SQUARED)
    query = Residuals(bound, 1.0, 0, bound, SQUARED)
    exact._columns.scores[:] = -(2**24)
    assert bound * (1 - 1e-6) < exact.answer(query).value[0, 0] <= bound


def test_residuals_of_labels_are_bounded_by_the_released_functions_and_at_four_fifths():
    learner = booster(np.array([[0, 1], [1, 2]]), np.array([0, 1]), LOGISTIC, start=0.3)
    learner.functions[0].values[:] = [-1.0, 0.3, 0.2]
    learner.functions[1].values[:] = [0.0, 0.4, -0.5]
    assert learner.largest_residual() == pytest.approx(expit(-0.3 + 1.0 + 0.5))
    learner.functions[1].values[1] = 0.7
    assert learner.largest_residual() == pytest.approx(expit(0.3 + 0.3 + 0.7))
    learner.functions[1].values[1] = 2.0
    assert learner.largest_residual() == 0.8
    learner.functions[0].values[0] = -9.0
    assert learner.largest_residual() == 0.8


# --- noise --------------------------------------------------------------------------------------


def test_nothing_but_the_noisy_histogram_says_how_large_residuals_are():
    """Noise that cancels the counts of a table, and puts others there, hides it altogether."""
    noisy = {low: np.where(np.arange(MAGNITUDES) == low, 745.0, 0.0) for low in (3, 9)}
    found = {low: [] for low in noisy}
    for low, (spread, rows) in itertools.product(noisy, ((0.01, 40), (0.1, 7), (0.4, 900))):
        targets = np.random.default_rng(0).uniform(-spread, spread, rows)
        learner = booster(np.zeros((1, rows), int), targets, SQUARED, counts=COUNTS, deviation=10.0)
        counts = learner.curator.exact.answer(Magnitudes(1.0, 1.0)).value
        root = math.sqrt(learner.shares.magnitudes)
        learner.curator.noise = lambda _, n=noisy[low], c=counts, r=root: (n - c) * r
        ask_for_bound(learner)
        found[low].append((learner.bound, learner.mean_square))
    for answers in found.values():
        np.testing.assert_allclose(answers[1:], answers[:1] * 2)
    assert found[3][0][0] > found[9][0][0]
    assert found[3][0][1] > found[9][0][1]


def test_a_function_moves_by_no_more_than_a_score_can():
    """From the least value to the largest the change would overflow int32 with a score."""
    function = booster(np.array([[0, 1, 2]]), np.zeros(3), LOGISTIC).functions[0]
    function.move(np.full(3, -1e9))
    assert (function.move(np.full(3, 1e9)) == 2**30 - 1).all()
