"""How much of the functions' variance tables have: no more than the rarer label allows."""

import math

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.smoothing import (
    believable,
    expected_response,
    expected_responses,
    lookup,
)
from sklearn import metrics

from dprepro.data.dataset import load
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED, LogisticLoss
from tests.methods.dp_ebm_plus.stub import LOSSES, booster
from tests.methods.dp_ebm_plus.test_booster import BOTH, COUNTS

START = -4.0
VALUES = np.array([[-0.5, 2.0, 4.0], [0.5, -3.0, 1.0], [0.1, -1.0, 3.0]])

LEVELS = [-9.0, -4.5, -1.0, 0.0, 0.5, 6.0]


# --- the part that is believed --------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_all_of_nothing_is_believed(level):
    assert LOGISTIC.believed(level, 0.0, START) == 1
    # A sum of squares may be rounded to less.
    assert LOGISTIC.believed(level, -1e-18, START) == 1


@pytest.mark.parametrize("variance", [1e-12, 0.01, 0.5, 4.0, 60.0])
@pytest.mark.parametrize("level", LEVELS)
def test_the_part_of_a_variance_is_the_square_of_that_of_a_deviation(level, variance):
    part = LOGISTIC.believed(level, variance, START)
    assert isinstance(part, float)
    assert 0 <= part <= 1
    deviation = believable(level, math.sqrt(variance), START)
    assert part * variance == pytest.approx(deviation**2, rel=1e-12)


def test_a_part_leads_to_half_as_many_again_as_there_are():
    part = LOGISTIC.believed(-6.0, 16.0, START)
    assert 0.1 < part < 0.9
    rate = expected_response(-6.0, math.sqrt(part * 16.0))
    assert rate / (1 - rate) == pytest.approx(1.5 * math.exp(START), rel=1e-6)
    assert LOGISTIC.believed(-6.0, 1.0, START) == 1


@pytest.mark.parametrize("variance", [0.0, 0.5, 60.0])
@pytest.mark.parametrize("level", LEVELS)
def test_of_numbers_all_is_believed(level, variance):
    assert SQUARED.believed(level, variance, START) == 1


# --- tables ---------------------------------------------------------------------------------------


def learner_of(loss, level, size=1.0, start=START):
    learner = booster(np.zeros((3, 1), int), np.zeros(1), loss, counts=COUNTS, start=start)
    learner.intercept.move(np.array([level]))
    for function, values in zip(learner.functions, size * VALUES, strict=True):
        function.move(values)
    return learner


def variances(learner):
    """Return the variance of each function over the rows."""
    found = []
    for function in learner.functions:
        mean = np.average(function.values, weights=function.counts)
        found.append(np.average((function.values - mean) ** 2, weights=function.counts))
    return np.array(found)


@BOTH
def test_a_table_has_as_much_of_the_others_variance_as_is_believed_of_all(loss):
    learner = learner_of(loss, -5.5, size=3.0)
    each = variances(learner)
    part = loss.believed(-5.5, each.sum(), START)
    assert part < 0.9 if loss is LOGISTIC else part == 1
    assert each.min() > 0
    for function, own in zip(learner.functions, each, strict=True):
        expected = loss.table(-5.5, part * (each.sum() - own))
        np.testing.assert_allclose(learner.table(function), expected, rtol=1e-9)
    # The intercept's own table is of its values, and no function is left out.
    own = loss.table(0.0, part * each.sum())
    np.testing.assert_allclose(learner.table(learner.intercept), own, rtol=1e-9)


def test_the_part_is_of_all_functions_whichever_is_asked_about(monkeypatch):
    learner, seen = learner_of(LOGISTIC, -5.5), []

    def believed(_, *given):
        seen.append(given)
        return 0.25

    monkeypatch.setattr(LogisticLoss, "believed", believed)
    each = variances(learner)
    for function, others in zip(
        [learner.intercept, *learner.functions], [each.sum(), *(each.sum() - each)], strict=True
    ):
        level = 0.0 if function is learner.intercept else -5.5
        expected = expected_responses(level, 0.5 * math.sqrt(others))
        np.testing.assert_allclose(learner.table(function), expected, rtol=1e-9)
    assert len(seen) == 4
    np.testing.assert_allclose(seen, 4 * [(-5.5, each.sum(), START)], rtol=1e-6)


def test_the_part_follows_the_start_and_not_the_intercept_alone():
    found = []
    for start in (-1.0, -5.0):
        learner = learner_of(LOGISTIC, -5.5, size=3.0, start=start)
        found.append(lookup(learner.table(learner.functions[0]), np.zeros(1))[0, 0])
    assert found[0] > 1.5 * found[1]  # the narrower, the fewer are positive


@pytest.mark.parametrize("loss", LOSSES, ids=["classification", "regression"])
def test_before_anything_is_learned_tables_have_no_variance(loss):
    learner = learner_of(loss, START, size=0.0)
    for function in learner.functions:
        np.testing.assert_array_equal(learner.table(function), loss.table(START, 0.0))


# --- a rare label of features that depend on each other -------------------------------------------


@pytest.fixture(scope="module")
def rare(data_dir):
    """cod-rna with 300 of its positives, under 1 % of the rows: the features go together."""
    table = load("cod-rna", data_dir, online=False)
    y = np.asarray(table.y)
    positive = np.random.default_rng(0).permutation(np.flatnonzero(y == 1))[:300]
    picked = np.sort(np.concatenate([np.flatnonzero(y == 0), positive]))
    return table.X.iloc[picked].reset_index(drop=True), y[picked], table.domain


def scores(rare, seed):
    """Return the log loss on a fifth of the rows over that of a constant, and the AUROC."""
    X, y, domain = rare
    train, test = split_rows(y.size, 0.2, 0, "cod-rna", seed)
    model = DPEBMPlusClassifier(8.0, 1e-6, domain=domain, random_state=seed)
    chances = model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])[:, 1]
    constant = metrics.log_loss(y[test], np.full(test.size, y[train].mean()))
    return metrics.log_loss(y[test], chances) / constant, metrics.roc_auc_score(y[test], chances)


def test_a_rare_label_is_learned_though_features_depend_on_each_other(rare, monkeypatch):
    assert (rare[1].sum(), rare[1].size) == (300, 39_990)
    losses, areas = np.transpose([scores(rare, seed) for seed in range(3)])
    assert losses.max() < 0.75
    assert areas.min() > 0.9
    monkeypatch.setattr(LogisticLoss, "believed", lambda *_: 1.0)
    before, areas_before = np.transpose([scores(rare, seed) for seed in range(3)])
    # Hardly better than a constant.
    assert before.min() > 0.78
    assert before.max() > 0.9
    assert (before - losses).min() > 0.15
    assert (areas - areas_before).min() > 0.02
