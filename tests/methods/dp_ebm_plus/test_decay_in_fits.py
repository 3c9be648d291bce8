"""Codes of functions whose bins share numbers: how long they are, and what rows add in fits."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, CodedResiduals, Magnitudes, Residuals
from dprepro.methods.dp_ebm_plus.strategy import LEAST_SHARE, autoregressive_strategy, code
from dprepro.privacy.curator_base import listening
from dprepro.privacy.gdp import mu_of
from tests.methods.dp_ebm_plus.coded_rows import EXTREMES, CodedRows, asked, sums_of, vectors
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, RANGE, table
from tests.methods.dp_ebm_plus.stub import Events, booster, replay
from tests.methods.dp_ebm_plus.test_booster import BOTH
from tests.methods.dp_ebm_plus.test_coding import is_power
from tests.methods.dp_ebm_plus.test_coding_privacy import parts, squared_norm
from tests.methods.dp_ebm_plus.test_decay import CARE, CASES

EPOCHS = 4


def coded(counts, rare, share=1.0):
    """Return the code of a function whose bins all are intervals."""
    return code(7, counts, share, rare, autoregressive_strategy(counts, np.ones(counts.size), rare))


# --- how long codes are -------------------------------------------------------------------------


@CASES
@CARE
@pytest.mark.parametrize("share", [1.0, 0.3, 1e-4])
def test_a_rows_squared_norm_is_on_average_that_of_a_code_without_a_mix(counts, rare, share):
    """Counted from the mean. Weights are rounded down: squares by 2^(1/2) at most."""
    made, shares = coded(counts, rare, share), counts / counts.sum()
    squares = np.maximum(shares, LEAST_SHARE) ** -rare
    ideal = share * (shares * (1 - shares) * squares).sum() / (shares * squares).sum()
    found = (shares * made.squared_norms()).sum()
    assert ideal / math.sqrt(2) < found <= ideal * (1 + 1e-9)
    assert is_power(made.weights)
    assert made.feature == 7


@CASES
@CARE
def test_numbers_are_weighed_by_what_they_tell_beside_the_next_and_by_how_rare_a_bin_is(
    counts, rare
):
    made, decay = coded(counts, rare), autoregressive_strategy(counts, np.ones(counts.size), rare)
    shares = np.maximum(counts / counts.sum(), LEAST_SHARE)
    ratio = made.weights / (decay.fresh * shares ** (-rare / 2))
    assert ratio.max() / ratio.min() < 2**0.25 * (1 + 1e-9)
    np.testing.assert_array_equal(made.mix, decay.mix)


@CASES
@CARE
def test_centres_are_the_means_of_the_numbers(counts, rare):
    made = coded(counts, rare)
    means = made.mix @ (counts / counts.sum())
    np.testing.assert_allclose(made.centre, means, atol=0.5 + 1e-6)
    np.testing.assert_allclose(
        made.squared_norms(),
        (vectors(asked((made,), 1.0), {7: np.arange(counts.size)}) ** 2).sum(axis=1),
        rtol=1e-9,
    )


# --- sensitivity --------------------------------------------------------------------------------


@CASES
@CARE
@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("bound", [1e-3, 0.2, 1.0])
def test_no_row_adds_more_than_the_bound(counts, rare, logistic, bound):
    """Brute force in whole numbers: rows in bins with nearly all rows and with hardly any."""
    made = coded(counts, rare)
    bins = np.unique([0, 1, 2, counts.size // 2, counts.size - 2, counts.size - 1])
    places = np.array([(b, s, t) for b in bins for s in EXTREMES for t in (0.0, 1.0)])
    rows = CodedRows(
        to_units(places[:, 1]),
        to_units(places[:, 2] - (0.0 if logistic else 0.5)),
        {7: places[:, 0].astype(np.uint8)},
    )
    query = asked((made,), bound)
    found = [
        sums_of(rows.part(slice(row, row + 1)), query, logistic=logistic)
        for row in range(len(places))
    ]
    assert all(squared_norm(part) <= Fraction(bound) ** 2 for part in found)
    lengths = np.linalg.norm(vectors(query, rows.bins), axis=1)
    norms = np.sqrt([float(squared_norm(part)) for part in found])
    assert norms.max() > 0.99 * min(bound, lengths.max())


def test_a_row_less_moves_numbers_that_bins_share_by_its_own_part():
    counts = np.arange(1.0, 10.0)
    query, rng = asked((coded(counts, LOGISTIC.rare),), 0.3), np.random.default_rng(0)
    rows = CodedRows(
        to_units(rng.normal(size=9)), to_units(rng.uniform(-0.5, 0.5, 9)),
        {7: np.arange(9, dtype=np.uint8)},
    )  # fmt: skip
    whole = sums_of(rows.part(slice(None)), query)
    for gone, part in enumerate(parts(rows, query)):
        less = sums_of(rows.part(np.arange(9) != gone), query)
        np.testing.assert_array_equal(whole.numbers - less.numbers, part.numbers)


# --- queries about one feature ------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [False, True])
def test_a_regression_asks_about_a_feature_by_one_code_as_precisely_as_its_bound_says(ordered):
    """The bound allows residuals of `bound` in a bin of typical length, all bins alike."""
    learner = booster(
        np.zeros((2, 1), int), np.zeros(1), SQUARED, counts=np.array([700.0, 40.0, 5.0]),
        ordered=ordered,
    )  # fmt: skip
    learner.bound = 0.2
    for function, share in zip(learner.functions, (0.1, 0.3), strict=True):
        query = learner.residuals_of(function, share)
        assert isinstance(query, CodedResiduals)
        (asked_for,) = query.codes
        assert asked_for.feature == function.feature
        assert (asked_for.mix is not None) == ordered
        assert query.share == share
        norm = math.sqrt(asked_for.squared_norms().mean())
        assert query.bound == query.charged == pytest.approx(0.2 * norm)


def test_a_regression_asks_about_all_bins_alike():
    """Rare ones no more precisely than others: their rows would be clipped at far less."""
    counts = np.array([700.0, 40.0, 5.0])
    learner = booster(np.zeros((1, 1), int), np.zeros(1), SQUARED, counts=counts)
    weights = learner.residuals_of(learner.functions[0], 0.5).codes[0].weights
    assert np.ptp(weights) == 0
    of_labels = booster(np.zeros((1, 1), int), np.zeros(1), LOGISTIC, counts=counts)
    assert np.ptp(of_labels.coded_residuals().codes[1].weights) > 0


def test_the_intercept_of_a_regression_is_asked_about_as_before():
    learner = booster(np.zeros((1, 1), int), np.zeros(1), SQUARED)
    query = learner.residuals_of(learner.intercept, 0.1)
    assert isinstance(query, Residuals)
    assert query.feature == INTERCEPT


def test_the_pace_remembers_what_moves_of_bins_do_to_the_numbers():
    codes = np.random.default_rng(1).integers(0, 3, (2, 300))
    learner = booster(codes, codes[0] == 2, LOGISTIC, ordered=True)
    told = []
    learner.damping.remember = lambda changes, _: told.append(changes)
    query = learner.coded_residuals()
    release = learner.curator.answer(query)
    moved = learner.learn_all(learner.together, query, release, 0)
    intercept, *features = told[0]
    np.testing.assert_allclose(intercept, moved[0] - learner.intercept.values)
    for function, values, found in zip(learner.functions, moved[1:], features, strict=True):
        sums = np.random.default_rng(2).normal(size=3)
        change = values - function.values
        numbers = np.linalg.inv(np.eye(3) - np.diag(function.decay.following[:2], 1)) @ sums
        assert found @ numbers == pytest.approx(change @ sums, rel=1e-9)
        assert np.abs(found - change).max() > 1e-3


# --- fits ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[LOGISTIC, SQUARED], ids=["classification", "regression"])
def heard(request):
    """Return the loss, the fitted model, and what was heard of its fit."""
    loss, (X, labels, y) = request.param, table(1500)
    estimator, domain = (
        (DPEBMPlusClassifier, DOMAIN) if loss is LOGISTIC else (DPEBMPlusRegressor, RANGE)
    )
    found = Events()
    with listening(found):
        model = estimator(2.0, 1e-6, n_epochs=EPOCHS, domain=domain, random_state=0)
        model.fit(X, labels if loss is LOGISTIC else y)
    return loss, model, found.events


def in_epochs(events):
    """Return the queries of each epoch, in order."""
    kinds = Magnitudes | Residuals | CodedResiduals
    queries = [e[0] for e in events if isinstance(e, tuple) and isinstance(e[0], kinds)]
    return np.reshape(np.array(queries, dtype=object), (EPOCHS, -1))


def test_fits_ask_about_ordered_features_by_shared_numbers(heard):
    loss, _, events = heard
    for queries in in_epochs(events):
        of_codes = [query for query in queries if isinstance(query, CodedResiduals)]
        codes = {each.feature: each for query in of_codes for each in query.codes}
        if loss is SQUARED:
            assert [type(q) for q in queries] == [Magnitudes, Residuals, *[CodedResiduals] * 3]
            assert queries[1].feature == INTERCEPT
            assert [len(query.codes) for query in of_codes] == [1, 1, 1]
        else:
            assert [type(q) for q in queries] == [CodedResiduals]
            assert codes.pop(INTERCEPT).mix is None
        assert list(codes) == [0, 1, 2]
        for k in (0, 1):
            assert codes[k].mix.shape == (codes[k].n_bins,) * 2
            assert codes[k].n_bins >= 3
        assert codes[2].mix is None
        assert sum(query.share for query in queries) == pytest.approx(1, rel=1e-9)
        assert sum(query.share for query in queries) <= 1 + 1e-9


def test_no_row_moves_an_epoch_by_more_than_one(heard):
    """Rows that are nearly alone in their bin, and whose target is as far off as it can be."""
    loss, _, events = heard
    X, labels, y = table(1500)
    domain, targets = (DOMAIN, labels) if loss is LOGISTIC else (RANGE, y)
    lower, upper = (0.0, 1.0) if loss is LOGISTIC else RANGE.target
    chosen = [int(X["money"].argmax()), int(X["x"].argmin()), 0, 1]
    frame, far = X.iloc[chosen], np.where(np.arange(4) % 2, lower, upper)
    rows = [
        ExactAnswers.of(Rows(frame.iloc[[i]], np.array([target])), domain, loss)
        for i in range(4)
        for target in (far[i], float(targets[chosen[i]]))
    ]
    moved = []
    for query, _, *own in replay(events, *rows):
        if isinstance(query, Magnitudes | Residuals | CodedResiduals):
            norms = np.array([np.linalg.norm(part) for part in own])
            assert (norms <= query.charged * (1 + 1e-12)).all()
            moved.append(query.share * (norms / query.charged) ** 2)
    of_epochs = np.reshape(moved, (EPOCHS, -1, len(rows))).sum(axis=1)
    assert 0.9 < of_epochs.max() <= 1 + 1e-9


def test_the_ledger_composes_to_the_budget(heard):
    _, model, _ = heard
    entries = model.ledger_.entries
    assert [entry.uses for entry in entries] == [1, 3, EPOCHS]
    squares = sum(entry.uses / entry.noise_multiplier**2 for entry in entries)
    assert squares == pytest.approx(mu_of(2.0, 1e-6) ** 2, rel=1e-6)
    assert model.ledger_.spent_epsilon() == pytest.approx(2.0, rel=1e-3)
    assert model.ledger_.within_budget


@BOTH
def test_a_code_of_another_mix_is_charged_for_as_long_as_it_is(loss):
    """However a mix is chosen: a row is limited by the code that is asked for."""
    learner = booster(
        np.array([[0, 1, 2]]), np.array([0.5, -0.5, 0.5]) + (loss is LOGISTIC) / 2, loss,
        counts=np.array([5.0, 9.0, 2.0]), ordered=True,
    )  # fmt: skip
    query = (
        learner.coded_residuals()
        if loss is LOGISTIC
        else learner.residuals_of(learner.functions[0], 1.0)
    )
    for mix in (np.full((3, 3), 1024), np.full((3, 3), -1024), 1024 * np.eye(3, dtype=np.int64)):
        codes = tuple(replace(each, mix=mix) if each.feature == 0 else each for each in query.codes)
        asked_for = replace(query, codes=codes)
        answer = learner.curator.exact.answer(asked_for)
        assert np.linalg.norm(answer.value) <= 3 * asked_for.bound
