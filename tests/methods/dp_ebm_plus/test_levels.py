"""Features of a regression are asked about from a level of their own, the middle."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.counts import CountBooster
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import UNIT, from_units, to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, POISSON, SQUARED
from dprepro.methods.dp_ebm_plus.queries import CodedResiduals, Residuals
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.query import NoisyAnswer
from tests.methods.dp_ebm_plus.plain import PlainCurator
from tests.methods.dp_ebm_plus.stub import BINS, booster, learn

# --- the two levels -----------------------------------------------------------------------------


def settled(learner, of_level, of_middle):
    """Let a booster be told of its levels, mean and deviation of each; return where they settle."""
    for level, told in ((learner.level, of_level), (learner.middle, of_middle)):
        if told is not None:
            level.answers.add(*told, 1.0)
    learner._settle()
    return [float(found[0]) for found in learner._levels]


def posterior(learner, of_level, of_middle):
    """Return the same by the covariance of both levels."""
    offset, prior = 0.4 * learner._usual, learner.loss.prior
    both = np.full((2, 2), prior**2) + np.diag([offset**2, 0])
    if of_middle is None:
        gain = both[:, 0] / (both[0, 0] + of_level[1] ** 2)
        return gain * of_level[0]
    noise = np.diag([of_level[1] ** 2, of_middle[1] ** 2])
    return both @ np.linalg.solve(both + noise, [of_level[0], of_middle[0]])


@pytest.mark.parametrize("of_middle", [None, (0.05, 0.03), (-0.2, 1e-4), (0.3, 10.0)])
@pytest.mark.parametrize("of_level", [(0.3, 0.1), (0.25, 1e-4), (-5.0, 30.0)])
def test_levels_are_settled_as_normal_numbers_are(of_level, of_middle):
    learner = booster(np.zeros((1, 9), int), np.linspace(-0.3, 0.3, 9), SQUARED)
    found = settled(learner, of_level, of_middle)
    np.testing.assert_allclose(found, posterior(learner, of_level, of_middle), rtol=1e-9)


@pytest.mark.parametrize(("deviation", "least", "most"), [(1e-3, 0.99, 1.01), (10.0, 0.0, 0.01)])
def test_an_offset_is_believed_if_it_stands_out_however_large(deviation, least, most):
    learner = booster(np.zeros((1, 9), int), np.linspace(-0.1, 0.1, 9), SQUARED)
    mean, middle = settled(learner, (0.1 + 0.4, deviation), (0.1, 1e-6))
    assert least * 0.4 < mean - middle < most * 0.4
    assert middle == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize(("within", "sum_"), [(1.0, 6.0), (0.4, -9.0)])
def test_a_sum_for_the_middle_is_divided_by_the_rows_that_are_not_clipped(within, sum_):
    """That of the intercept by all."""
    learner = booster(np.zeros((1, 400), int), np.linspace(-0.3, 0.3, 400), SQUARED)
    rows, learner.within = learner.start.rows, within
    learner.middle.move(np.array([0.05]))
    learner._learn_level(sum_, 9.0, 3)
    assert learner.middle.answers.mean[0] == pytest.approx(0.05 + sum_ / (rows * within), abs=1e-6)
    assert learner.middle.answers.deviation == pytest.approx(9 / (rows * within))
    level = learner.level.values[0]
    learner.learn_level(NoisyAnswer(np.array([sum_]), 9.0), 3)
    assert learner.level.answers.mean[0] == pytest.approx(level + sum_ / rows)
    assert learner.level.answers.deviation == pytest.approx(9 / rows)


# --- from one level to the other ----------------------------------------------------------------


class Watching(PlainCurator):
    """Keeps each query, the rows' scores in units when it is asked, and the levels then."""

    booster = None

    def answer(self, query):
        if self.booster is not None:
            self.seen.append((query, self.scores / UNIT, *self.levels()))
        return super().answer(query)

    def levels(self):
        """Return the scores of rows that have the intercept, and of rows that have the middle."""
        others = sum(f.values[self.bins[f.feature]] for f in self.booster.effects)
        return [
            (level.values[0] + others) / UNIT for level in (self.booster.level, self.booster.middle)
        ]


def skewed(rows=600):
    """Return a table of few rows, half of whose targets are 0, and its domain."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(rows), "c": rng.choice(["a", "b"], rows), "same": 3.0})
    y = np.where(rng.random(rows) < X["x"], rng.uniform(0.5, 1.5, rows), 0.0)
    features = (NumericFeature("x", 0, 1), CategoricalFeature("c", ("a", "b")),
                NumericFeature("same", 3, 3))  # fmt: skip
    return X, y, Domain(features, (0.0, 1.0))


@pytest.fixture(scope="module", params=[SQUARED, POISSON], ids=["numbers", "counts"])
def watched(request):
    """Return a curator that has seen all epochs, and the booster."""
    loss, budget = request.param, PrivacyBudget(0.3, 1e-6)
    X, y, domain = skewed()
    curator = Watching(X, y, domain, loss, np.random.default_rng(1))
    start = algorithm.totals(curator, loss, budget)
    kind = CountBooster if loss is POISSON else Booster
    _, _, learner = algorithm.divide(curator, domain, loss, budget, start, 12, kind)
    curator.tell(algorithm.StartOfScores(int(to_units(learner.level.values[0]))))
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
    assert min(apart[1:]) > 1e-4


def test_no_epoch_loses_anything_on_the_way_to_the_middle_and_back(watched):
    curator, learner = watched
    for scores, intercept, middle in curator.ends:
        np.testing.assert_array_equal(scores, intercept)
        assert abs(intercept - middle).min() * UNIT > 1e-4
    mean, middle = (float(level[0]) for level in learner._levels)
    assert learner.level.values[0] == from_units(to_units(mean))
    assert learner.middle.values[0] == from_units(to_units(middle))


def test_the_intercept_has_a_tenth_of_an_epoch_at_least(watched):
    curator, _ = watched
    shares = np.reshape([query.share for query, *_ in curator.seen], (12, 3))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    # Two features, the intercept and the counts by size: 2, .5 and .2 parts.
    np.testing.assert_allclose(shares[0, 1], 0.5 / 2.7)
    np.testing.assert_allclose(shares[0, 0], 0.2 / 2.7 * (1 - 0.5 / 2.7))
    many = booster(np.zeros((30, 4), int), np.zeros(4), SQUARED)
    assert many.level_share == 0.1
    assert booster(np.zeros((30, 4), int), np.zeros(4), LOGISTIC).level_share == 0


# --- what it is good for ------------------------------------------------------------------------


def test_without_noise_residuals_add_up_to_0_at_both_levels_as_far_as_they_are_clipped(monkeypatch):
    """Bins say nothing of the targets here, of which most are small."""
    codes, targets = np.tile(np.arange(BINS), 20), np.repeat(np.geomspace(0.01, 1, 20) - 0.5, BINS)
    learner = booster(codes[None], targets, SQUARED, deviation=1e-3, n_epochs=40)
    choose = learner.choose_bound

    def low(sizes):
        choose(sizes)
        learner.bound, learner.within = 0.1, 0.5

    monkeypatch.setattr(learner, "choose_bound", low)
    learn(learner)
    bounds = (learner.coded_residuals().bound / learner._length, learner.of_level().bound)
    middle, mean = (
        brentq(lambda level, b=bound: np.clip(targets - level, -b, b).sum(), -0.5, 0.5)
        for bound in bounds
    )
    assert middle < mean - 0.05
    assert learner.middle.values[0] == pytest.approx(middle, abs=0.02)
    assert learner.level.values[0] == pytest.approx(mean, abs=2e-3)
    assert np.abs(learner.effects[0].values).max() < 1e-2


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
        found.append(np.sqrt(np.mean((model.predict(X[new]) - y[new]) ** 2)) / np.std(y[new]))
    return np.array(found)


def test_skewed_targets_of_few_rows_are_predicted_better_than_by_a_constant():
    assert error_ratios(range(3)).mean() < 0.97
