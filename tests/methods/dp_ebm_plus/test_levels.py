"""Where rows are few, features of a regression are asked about from a level of their own."""

import math

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer, Function
from dprepro.methods.dp_ebm_plus.low_signal import InterceptTracking, LowSignalBooster
from scipy.optimize import brentq

from dprepro.additive.describe import had_few_rows
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import LARGEST, UNIT, from_units, move_scores, to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, CodedResiduals, Magnitudes, Residuals
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.query import NoisyAnswer
from tests.methods.dp_ebm_plus.plain import PlainCurator
from tests.methods.dp_ebm_plus.stub import BINS, booster, learn
from tests.methods.dp_ebm_plus.test_booster import BOTH

PRIOR = 0.25

# --- the two levels -----------------------------------------------------------------------------


def posterior(prior, answers, variances):
    """Return the mean of a normal number of mean 0 a posteriori, by the covariance of answers."""
    covariance = prior**2 + np.diag(variances)
    return prior**2 * np.linalg.solve(covariance, answers).sum()


def test_two_epochs_are_weighed_as_normal_numbers_are():
    levels = InterceptTracking(PRIOR)
    assert (levels.middle, levels.offset, levels.mean) == (0, 0, 0)

    # The first one speaks of both: of the middle with what it may be off as more noise.
    mean = levels.follow(0.3, 0.1, 0.2)
    about = 0.1**2 + (0.4 * 0.2) ** 2
    first = posterior(PRIOR, [0.3], [about])
    assert levels.middle == pytest.approx(first, rel=1e-12)
    assert levels.offset == pytest.approx(posterior(0.08, [0.3 - first], [0.01]), rel=1e-12)
    assert mean == levels.mean == levels.middle + levels.offset

    middle, offset = levels.follow_middle(0.05, 0.03, 0.2), levels.offset
    second = posterior(PRIOR, [0.3, 0.05], [about, 0.03**2])
    assert middle == levels.middle == pytest.approx(second, rel=1e-12)
    assert levels.mean == middle + offset

    # Residuals became smaller: both offsets are expected to be smaller then.
    mean = levels.follow(0.25, 0.05, 0.1)
    expected = posterior(0.04, [0.3 - first, 0.25 - second], [0.1**2, 0.05**2])
    assert levels.offset == pytest.approx(expected, rel=1e-12)
    assert levels.middle == middle
    assert mean == levels.mean == middle + levels.offset


def test_the_middle_follows_its_own_sums_and_the_offset_does_not():
    levels = InterceptTracking(PRIOR)
    levels.follow(0.1, 0.05, 0.2)
    offset = levels.offset
    for found in (0.1, -0.1, -0.2, -0.1, -0.1):
        before = levels.middle
        levels.follow_middle(found, 1e-4, 0.2)
        assert levels.offset == offset
        assert levels.mean == levels.middle + offset
        assert levels.middle != before
    assert levels.middle == pytest.approx(-0.1, abs=1e-3)


@pytest.mark.parametrize(("deviation", "least", "most"), [(1e-3, 0.99, 1.01), (10.0, 0.0, 0.01)])
def test_an_offset_is_believed_if_it_stands_out_however_large(deviation, least, most):
    """Ten times as large as expected, and known well or not at all."""
    levels = InterceptTracking(PRIOR)
    levels.follow_middle(0.1, 1e-6, 0.1)
    for _ in range(8):
        levels.follow(0.1 + 0.4, deviation, 0.1)
    assert least * 0.4 < levels.offset < most * 0.4
    assert levels.middle == pytest.approx(0.1, abs=1e-3)


def test_a_middle_that_is_known_is_not_moved_by_what_speaks_of_the_mean():
    levels = InterceptTracking(PRIOR)
    middle = levels.follow_middle(-0.2, 0.1, 0.2)
    levels.follow(0.4, 1e-3, 0.2)
    assert levels.middle == middle


# --- from one level to the other ----------------------------------------------------------------


def function(values):
    found = Function(0, np.ones(3), np.zeros(3), np.ones(3), ordered=False)
    found.move(np.array(values))
    return found


def test_a_change_takes_rows_from_one_function_to_another_in_units():
    one, other = function([0.1, -3.0, 1 / 3]), function([-0.7, 40.0, 1 / 3 + UNIT])
    codes = np.array([0, 1, 2, 1], np.uint8)
    scores = to_units(one.values)[codes] + np.int32(5)
    before = one.values.copy()
    change = one.change_to(other)
    assert change.dtype == np.int32
    assert change[2] == 1
    move_scores(scores, codes, change)
    np.testing.assert_array_equal(scores - 5, to_units(other.values)[codes])
    np.testing.assert_array_equal(change, -other.change_to(one))
    np.testing.assert_array_equal(one.values, before)  # rows move, the function does not


def test_no_change_is_larger_than_scores_may_be():
    low, high = function([-60.0, -64.0, 0.0]), function([60.0, 64.0, 1.0])
    np.testing.assert_array_equal(low.change_to(high), [LARGEST, LARGEST, 2**24])
    np.testing.assert_array_equal(high.change_to(low), [-LARGEST, -LARGEST, -(2**24)])


class Watching(PlainCurator):
    """Keeps each query, the rows' scores in units when it is asked, and the levels then."""

    booster = None

    def answer(self, query):
        if self.booster is not None:
            self.seen.append((query, self.scores / UNIT, *self.levels()))
        return super().answer(query)

    def levels(self):
        """Return the scores of rows that have the intercept, and of rows that have the middle."""
        others = sum(f.values[self.bins[f.feature][0]] for f in self.booster.functions)
        return [
            (level.values[0] + others) / UNIT
            for level in (self.booster.intercept, self.booster.middle)
        ]


def skewed(rows=600):
    """Return a table of few rows, half of whose targets are 0, and its domain."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(rows), "c": rng.choice(["a", "b"], rows), "same": 3.0})
    y = np.where(rng.random(rows) < X["x"], rng.uniform(0.5, 1.5, rows), 0.0)
    features = (NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b")),
                NumericFeature("same", 3, 3))  # fmt: skip
    return X, y, Domain(features, (0.0, 1.0))


@pytest.fixture(scope="module")
def watched():
    """Return a curator that has seen all epochs, and the booster."""
    X, y, domain = skewed()
    curator = Watching(X, y, domain, SQUARED, np.random.default_rng(1))
    _, _, learner = algorithm.prepare(curator, domain, SQUARED, PrivacyBudget(0.3, 1e-6), 12)
    curator.booster, curator.seen, curator.ends = learner, [], []
    for number in range(12):
        algorithm.epoch(curator, learner, number)
        curator.ends.append((curator.scores / UNIT, *curator.levels()))
    return curator, learner


def test_rows_have_the_middle_while_features_are_asked_about_and_else_the_intercept(watched):
    curator, _ = watched
    for query, scores, intercept, middle in curator.seen:
        asked_from = middle if isinstance(query, CodedResiduals) else intercept
        np.testing.assert_array_equal(scores, asked_from)
    # Else it is not said which of them rows have.
    apart = [abs(a[0] - b[0]) * UNIT for q, _, a, b in curator.seen if isinstance(q, Residuals)]
    assert len(apart) == 12
    assert min(apart[1:]) > 1e-3


def test_no_epoch_loses_anything_on_the_way_to_the_middle_and_back(watched):
    curator, learner = watched
    for scores, intercept, middle in curator.ends:
        np.testing.assert_array_equal(scores, intercept)
        assert abs(intercept - middle).min() * UNIT > 1e-3
    assert learner.intercept.values[0] == from_units(to_units(learner._levels.mean))
    assert learner.middle.values[0] == from_units(to_units(learner._levels.middle))


def test_an_epoch_spends_all_of_its_budget(watched):
    curator, learner = watched
    queries = [query for query, *_ in curator.seen]
    assert [type(query) for query in queries] == 12 * [Magnitudes, Residuals, CodedResiduals]
    assert all(query.charged == query.enforced for query in queries)
    for number in range(12):
        counts, intercept, features = (q.share for q in queries[3 * number : 3 * number + 3])
        assert counts + intercept + features == pytest.approx(1, rel=1e-12)
        # The intercept gets a fifth of all, and the two features and the counts share the rest.
        assert intercept == pytest.approx(0.2)
        assert features == pytest.approx(learner.shares.features, rel=1e-12)
        assert features / counts == pytest.approx(2 / SQUARED.sizes_weight, rel=1e-12)


# --- the query ----------------------------------------------------------------------------------


def coarse(codes, targets, loss=SQUARED, deviation=20.0, n_epochs=4):
    plain = booster(codes, targets, loss, deviation=deviation)
    learner = LowSignalBooster(plain.functions, loss, plain.rows, 0.0, 0.2, deviation, n_epochs)
    learner.curator = plain.curator
    return learner


def test_a_twentieth_of_the_query_is_about_the_middle_and_the_rest_about_features():
    learner = coarse(np.arange(90).reshape(3, 30) % BINS, np.zeros(30))
    learner.functions[1].move(np.array([0.3, 0.0, -0.3]))
    query = learner.coded_residuals()
    middle, *features = query.codes
    assert (middle.feature, middle.n_bins) == (INTERCEPT, 1)
    # A power of the root of 2, the next one below.
    assert middle.weights[0] ** 2 == pytest.approx(2**-4.5)
    assert 2**-4.5 < 0.05 < 2**-4.0
    parts = np.array([code.weights[0] ** 2 for code in features])
    assert parts.sum() == pytest.approx(0.95, rel=1e-12)
    np.testing.assert_allclose(parts / 0.95 * query.share, learner.feature_shares(), rtol=1e-12)
    assert parts[1] > 2 * parts[0]
    shares = learner.shares_together()
    assert shares.sum() == pytest.approx(learner.shares.features, rel=1e-12)
    assert shares[0] == pytest.approx(0.05 * learner.shares.features, rel=1e-12)


@pytest.mark.parametrize(
    ("sizes", "around", "share"), [({19: 160, 6: 80, 0: 160}, 6, 0.4), ({1: 400}, 1, 0.1)]
)
def test_a_sum_for_the_middle_is_divided_by_the_rows_that_are_not_clipped(sizes, around, share):
    """Those of the smallest cell, or none: then a tenth of all. That of the intercept by all."""
    learner, counts = coarse(np.zeros((2, 400), int), np.zeros(400), deviation=1e6), np.zeros(20)
    counts[list(sizes)] = list(sizes.values())
    learner.sizes = lambda: (counts, 0.04)
    learner.choose_bound(NoisyAnswer(counts, 1.0))
    # The median is the middle of its cell, and the bound half of the deviation.
    usual = (2 ** (-0.5 * (around + 1)) + 2 ** (-0.5 * around)) / 2 / 0.6745
    assert [learner.usual, learner.bound] == pytest.approx([usual, usual / 2], rel=1e-6)

    told = []
    learner._levels.follow_middle = lambda *given: told.append(given) or 0.07
    learner._levels.follow = lambda *given: told.append(given) or 0.2
    learner.middle.move(np.array([0.05]))
    answer = Answer(np.array([6.0]), np.array([9.0]))
    np.testing.assert_array_equal(learner.learn(learner.middle, answer, 0.1, 0), [0.07])
    np.testing.assert_array_equal(learner.learn(learner.intercept, answer, 0.2, 0), [0.2])
    assert told[0][0] == pytest.approx(0.05 + 6 / (400 * share), rel=1e-6)
    assert told[0][1:] == pytest.approx([9 / (400 * share), usual], rel=1e-6)
    assert told[1] == pytest.approx([6 / 400, 9 / 400, usual], rel=1e-6)


def test_the_first_sum_of_all_residuals_moves_the_middle_too_and_later_ones_do_not():
    """So that the first query about features is not asked from 0."""
    learner = coarse(np.zeros((2, 400), int), np.zeros(400))
    learner.learn(learner.intercept, Answer(np.array([40.0]), np.array([4.0])), 0.2, 0)
    middle = posterior(PRIOR, [0.1], [0.01**2 + (0.4 * 0.2) ** 2])
    assert learner.middle.values[0] == pytest.approx(middle, abs=UNIT)
    learner.learn(learner.intercept, Answer(np.array([-90.0]), np.array([4.0])), 0.2, 1)
    assert learner.middle.values[0] == pytest.approx(middle, abs=UNIT)


@BOTH
def test_only_numbers_of_few_rows_have_a_middle_and_only_if_there_are_features(loss):
    codes, targets = np.arange(30)[None] % BINS, np.arange(30) % 2 / 2
    few, many = coarse(codes, targets, loss), booster(codes, targets, loss)
    assert many.middle is None
    assert (few.middle is None) == (loss is LOGISTIC)
    level = few.intercept if loss is LOGISTIC else few.middle
    assert few.together == [level, *few.functions]
    alone = coarse(np.zeros((0, 30), int), targets, loss)
    assert alone.middle is None
    learn(alone, 2)
    asked = [type(query) for query, *_ in alone.curator.asked]
    assert asked == 2 * ([CodedResiduals] if loss is LOGISTIC else [Magnitudes, Residuals])


def test_which_way_is_taken_decides_about_the_middle():
    X, y, domain = skewed()
    found = []
    for epsilon in (0.3, 100.0):
        curator = PlainCurator(X, y, domain, SQUARED, np.random.default_rng(0))
        _, _, learner = algorithm.prepare(curator, domain, SQUARED, PrivacyBudget(epsilon, 1e-6), 2)
        found.append((type(learner), learner.middle is None))
    assert found == [(LowSignalBooster, False), (Booster, True)]


# --- what it is good for ------------------------------------------------------------------------


def test_without_noise_residuals_add_up_to_0_at_both_levels_as_far_as_they_are_clipped(
    monkeypatch,
):
    """Bins say nothing of the targets here, of which most are small."""
    codes, targets = np.tile(np.arange(BINS), 20), np.repeat(np.geomspace(0.01, 1, 20) - 0.5, BINS)
    monkeypatch.setattr(LowSignalBooster, "bound_for", lambda *_: 0.1)
    learner = coarse(codes[None], targets, deviation=1e-3, n_epochs=40)
    learn(learner, 40)
    # At 0.1, and at 2.5 times the usual 0.2.
    middle, mean = (
        brentq(lambda level, b=bound: np.clip(targets - level, -b, b).sum(), -0.5, 0.5)
        for bound in (0.1, 0.5)
    )
    assert middle < mean - 0.05
    assert learner.middle.values[0] == pytest.approx(middle, abs=1e-4)
    assert learner.intercept.values[0] == pytest.approx(mean, abs=1e-4)
    assert np.abs(learner.functions[0].values).max() < 1e-3


def error_ratios(seeds):
    """Return the error on new rows over that of a constant, for tables of skewed targets.

    Six of ten targets are 0, the others large. Eight features tell them apart, and twenty say
    nothing: they have a single value.
    """
    found = []
    names = [f"x{k}" for k in range(8)] + [f"same{k}" for k in range(20)]
    domain = Domain(tuple(NumericFeature(name, 0, 1) for name in names), (0.0, 1.0))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        values = np.hstack([rng.random((4500, 8)), np.full((4500, 20), 0.5)])
        signal = (values - 0.5).sum(axis=1) / math.sqrt(8 / 12) + rng.normal(0, 0.5, 4500)
        y = np.where(signal > np.quantile(signal, 0.6), rng.uniform(0.5, 1, 4500), 0.0)
        X, new = pd.DataFrame(values, columns=names), slice(3000, None)
        model = DPEBMPlusRegressor(0.2, 5e-8, domain=domain, random_state=seed)
        model.fit(X[:3000], y[:3000])
        assert had_few_rows(model)
        found.append(np.sqrt(np.mean((model.predict(X[new]) - y[new]) ** 2)) / np.std(y[new]))
    return np.array(found)


def test_skewed_targets_of_few_rows_are_predicted_better_than_by_a_constant(monkeypatch):
    """They were not while features were asked about from the mean."""
    assert error_ratios(range(4)).mean() < 0.97
    begin = LowSignalBooster.__post_init__

    def without_middle(learner):
        begin(learner)
        learner.middle = None

    monkeypatch.setattr(LowSignalBooster, "__post_init__", without_middle)
    assert error_ratios(range(4)).mean() > 1
