"""Steps: what they ask for has the sensitivity that is charged."""

import itertools
import math

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer
from hypothesis import given, settings
from hypothesis import strategies as st

from dprepro.methods.dp_ebm_plus.booster import budget_allocation
from dprepro.methods.dp_ebm_plus.clipping import MAGNITUDES
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    CodedResiduals,
    Magnitudes,
    Move,
    Residuals,
)
from tests.methods.dp_ebm_plus.stub import (
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
    if loss is SQUARED:
        learner.bound = bound
    return learner


def some_state(rng, features=2):
    values, deviations = rng.normal(0, 3, (features, 3)), rng.gamma(0.5, 2, (features, 3))
    return float(rng.normal(0, 2)), values, deviations, float(rng.choice([0.02, 0.2, 0.5]))


# --- sensitivity --------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("features", [0, 1, 14, 300])
def test_the_shares_of_an_epoch_add_up(features, loss):
    all_features, intercept, magnitude = budget_allocation(features, loss)
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
    learner.shares = budget_allocation(0, loss)
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
def test_the_last_digit_of_a_deviation_makes_no_difference_to_shares(loss):
    """It may depend on the machine."""
    learner, shares = booster(np.zeros((5, 1), int), np.zeros(1), loss), []
    sizes = np.random.default_rng(0).random((5, 3))
    for deviations in (sizes, np.nextafter(sizes, 1)):
        for function, deviation in zip(learner.functions, deviations, strict=True):
            function.deviations = deviation
        shares.append(learner.feature_shares())
    assert shares[0] == shares[1]
    assert len(set(shares[0])) == 5


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
    if loss is LOGISTIC:
        # One query has all of it; what a feature has of that are the squares of its weights.
        assert {type(query) for query in queries} == {CodedResiduals}
        spent = np.array([[np.mean(c.weights**2) for c in query.codes] for query in queries])
    else:
        assert [type(query) for query in queries[:2]] == [Magnitudes, Residuals]
    assert spent[0, -2] == spent[0, -1]
    assert spent[-1, -2] > 2 * spent[-1, -1]


def queries_of_an_epoch(learner):
    """Return what an epoch asks, if no function moves within it."""
    if learner.loss is LOGISTIC:
        return [learner.coded_residuals()]
    shares = [learner.shares.intercept, *learner.feature_shares()]
    functions = zip([learner.intercept, *learner.functions], shares, strict=True)
    queries = [learner.residuals_of(function, share) for function, share in functions]
    return [*queries, Magnitudes(1.0, learner.shares.magnitudes)]


def weighted_answers(learner):
    """Return all answers of an epoch, each over the noise that a draw of one adds to it."""
    for query in queries_of_an_epoch(learner):
        learner.curator.answer(query)
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
    query = Residuals(bound, 1.0, 0, bound)
    exact._columns.scores[:] = -(2**24)
    assert bound * (1 - 1e-6) < exact.answer(query).value[0] <= bound


@pytest.mark.parametrize("values", [0.0, 0.3, 9.0])
def test_a_row_whose_code_is_of_typical_length_has_a_residual_of_four_fifths_at_most(values):
    """Whatever the functions are: what they allow would bound a first epoch by less."""
    codes = np.array([[0] * 70 + [1] * 25 + [2] * 5] * 2)
    learner = booster(codes, np.zeros(100), LOGISTIC, counts=np.array([70.0, 25.0, 5.0]))
    learner.functions[0].values[:] = [values, -values, 0.0]
    assert learner.bound == 0.8
    query = learner.coded_residuals()
    bins = {INTERCEPT: np.zeros(100, int), 0: codes[0], 1: codes[1]}
    norms = sum(code.squared_norms()[bins[code.feature]] for code in query.codes)
    assert query.bound == query.charged == pytest.approx(0.8 * math.sqrt(norms.mean()))
    # Rows in bins that many share have shorter codes: their residuals may be larger.
    allowed = query.bound / np.sqrt(norms)
    assert allowed[0] > 0.8 > 0.4 > allowed[-1]


def test_codes_divide_an_epoch_as_features_would():
    """Weights are rounded down to powers of 2^(1/4), by the square root of 2 at most."""
    learner = booster(np.zeros((3, 1), int), np.zeros(1), LOGISTIC, counts=COUNTS)
    learner.functions[1].values[:] = [0.1, -2.0, 1.0]
    shares = np.array([learner.shares.intercept, *learner.feature_shares()])
    query = learner.coded_residuals()
    assert query.share == pytest.approx(1, rel=1e-12)
    assert query.share <= 1
    assert [code.feature for code in query.codes] == [INTERCEPT, 0, 1, 2]
    counts = [np.ones(1), COUNTS, COUNTS, COUNTS]
    for code, share, rows in zip(query.codes, shares, counts, strict=True):
        found = np.average(code.weights**2, weights=rows)
        assert share / math.sqrt(2) < found <= share * (1 + 1e-12)
    assert shares[2] > 2 * shares[1]


@pytest.mark.parametrize("ordered", [False, True])
def test_learning_from_one_query_is_learning_from_an_answer_of_each_feature(ordered):
    """Its sums are divided by their weights, and so is their noise."""
    codes = np.random.default_rng(1).integers(0, 3, (2, 300))
    targets = codes[0] == 2
    one, other = (
        booster(codes, targets, LOGISTIC, noise=gaussian(2.0), ordered=ordered) for _ in range(2)
    )
    assert all((function.decay is not None) == ordered for function in one.functions)
    query = one.coded_residuals()
    release = one.curator.answer(query)
    moved = one.learn_all(one.together, query, release, 0)
    first = 0
    for place, (function, code) in enumerate(
        zip([other.intercept, *other.functions], query.codes, strict=True)
    ):
        answer = Answer(
            release.value[first : first + code.weights.size] / code.weights,
            release.scale / code.weights,
        )
        squares = code.weights**2 if code.mix is None else code.squared_norms()
        share = np.average(squares, weights=function.counts)
        np.testing.assert_array_equal(other.learn(function, answer, share, 0), moved[place])
        first += code.weights.size
    assert first == release.value.size
    assert np.abs(moved[1]).max() > 0.5


def test_answers_are_averaged_by_their_weights_and_so_is_the_noise_in_each_bin():
    learner = booster(np.zeros((1, 1), int), np.zeros(1), LOGISTIC, counts=np.full(3, 900.0))
    (function,) = learner.functions
    function.remember(Answer(np.full(3, 2.0), np.array([1.0, 2.0, 4.0])), np.zeros(3), 1.0)
    function.remember(Answer(np.full(3, 5.0), np.full(3, 1.0)), np.ones(3), 2.0)
    averages, variances = function.averages()
    np.testing.assert_allclose(averages, [np.full(3, 4.0), np.full(3, 2 / 3)])
    np.testing.assert_allclose(variances, np.array([1 + 4, 4 + 4, 16 + 4]) / 9)


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
