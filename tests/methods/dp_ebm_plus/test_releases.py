"""What DP-EBM+ releases: with the noise that is paid for, and used as such."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.clipping import typical_deviation
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Residuals,
    Totals,
    totals_sensitivity,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import listening
from dprepro.privacy.gdp import mu_of
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, RANGE, table
from tests.methods.dp_ebm_plus.stub import BOTH, Events, Stub, replay
from tests.methods.dp_ebm_plus.stub import exact_answers as stub_answers

BUDGET = PrivacyBudget(1.0, 1e-6)


class Replacing(Stub):
    """Answers with given values, whatever the rows are."""

    def __init__(self, exact, values):
        super().__init__(exact, None, 20.0)
        self.values = values

    def answer(self, query):
        exact = super().answer(query)
        return replace(exact, value=self.values[: exact.value.size])


def exact(rows, loss):
    X, labels, y = table(rows)
    domain, targets = (DOMAIN, labels) if loss is LOGISTIC else (RANGE, y)
    return ExactAnswers.of(Rows(X, targets.astype(float)), domain, loss)


def fit(loss, epsilon=1.0, rows=3000, **params):
    X, labels, y = table(rows)
    if loss is LOGISTIC:
        return DPEBMPlusClassifier(epsilon, domain=DOMAIN, **params).fit(X, labels)
    return DPEBMPlusRegressor(epsilon, domain=RANGE, **params).fit(X, y)


@BOTH
def test_nothing_but_the_noisy_totals_says_how_many_rows_there_are(loss):
    found = []
    for rows in (2, 40, 3000):
        curator = Replacing(exact(rows, loss), np.array([200.0, 30.0, 9.0]))
        found.append(algorithm.totals(curator, loss, BUDGET))
    assert found[0] == found[1] == found[2]
    ((query, _, _),) = curator.asked
    noise = query.charged * 20.0
    assert (found[0].rows, found[0].noise) == pytest.approx((200, noise))
    if loss is LOGISTIC:
        assert found[0].level == pytest.approx(math.log(0.65 / 0.35))
    else:
        mean = 0.15 / (1 + (noise / 200 / 0.25) ** 2)
        assert found[0].level == pytest.approx(mean)
        # Squares count four times, so their sum has a quarter of the noise.
        typical = typical_deviation(9 / 4 / 200 - mean**2, noise / 4 / 200)
        assert found[0].residual == pytest.approx(typical)


def test_a_variance_that_is_lost_in_noise_is_what_is_expected_of_any_table():
    found = [typical_deviation(0.01, noise) for noise in (0.0, 1e-5, 0.04, 1e3)]
    assert found[0] == pytest.approx(0.1)
    assert found[1] == pytest.approx(0.1, rel=1e-4)
    assert found[1] < found[2] < found[3]
    # The root mean square a priori, between the median deviation and the largest.
    assert 0.2 < found[3] < 0.25
    assert typical_deviation(-1e6, 1e6) == pytest.approx(found[3], rel=0.2)


@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.04, 1.0])
def test_a_variance_that_noise_took_below_zero_does_not_make_residuals_tiny(noise):
    """Without it all residuals are taken to be small, and clipped at far too small a bound."""
    deviations = [typical_deviation(variance * noise, noise) for variance in (-3, -1, 0, 1, 3)]
    assert deviations == sorted(deviations)
    # What a variance below 0 leaves likely are variances up to a part of the noise.
    assert deviations[0] > min(0.3 * math.sqrt(noise), 0.1)


@BOTH
def test_the_totals_move_by_no_more_than_they_are_charged_for(loss):
    """Brute force over targets of a row more."""
    charged = totals_sensitivity(loss.powers).stated
    query = Totals(charged, 1.0, loss.powers)
    targets = np.linspace(0, 1, 2) if loss is LOGISTIC else np.linspace(-0.5, 0.5, 9)
    moves = [
        stub_answers(np.zeros((1, 2), int), [targets[0], t], loss).answer(query).value
        - stub_answers(np.zeros((1, 1), int), [targets[0]], loss).answer(query).value
        for t in targets
    ]
    assert max(np.linalg.norm(move) for move in moves) == pytest.approx(charged)


@BOTH
def test_nor_does_an_exchange_of_a_row(loss):
    """Brute force over pairs of targets; the worst is near t = .0732 and -1/2."""
    charged = totals_sensitivity(loss.powers)
    query = Totals(charged.stated, 1.0, loss.powers)
    targets = [0.0, 1.0] if loss is LOGISTIC else [*np.linspace(-0.5, 0.5, 41), 0.0732]
    alone = np.array(
        [stub_answers(np.zeros((1, 1), int), [t], loss).answer(query).value for t in targets]
    )
    moved = np.linalg.norm(alone[:, None] - alone, axis=-1).max()
    assert moved == pytest.approx(charged.replace_one, rel=1e-6)
    assert moved <= charged.replace_one
    assert charged.replace_one == pytest.approx(1.0 if loss is LOGISTIC else 1.13409, abs=1e-5)


@pytest.mark.parametrize("target", [-1e9, 7.0, 1e9])
def test_targets_beyond_their_range_add_no_more(target):
    query = Totals(totals_sensitivity(2).stated, 1.0, 2)
    numbers = stub_answers(np.zeros((1, 1), int), [target], SQUARED).answer(query)
    assert np.abs(numbers.value).max() <= 1
    labels = stub_answers(np.zeros((1, 1), int), [target], LOGISTIC).answer(Totals(2.0, 1.0, 1))
    assert np.abs(labels.value).max() <= 1


@BOTH
@pytest.mark.parametrize("n_epochs", [16, 64])
def test_every_answer_has_the_noise_that_the_ledger_states(n_epochs, loss):
    heard = Events()
    with listening(heard):
        model = fit(loss, n_epochs=n_epochs)
    entries = model.ledger_.entries
    assert [entry.uses for entry in entries] == [1, 3, n_epochs]
    noise, sums = {0: [], 1: [], 2: []}, []
    place = {Totals: 0, CodedHistogram: 1, Residuals: 2, CodedResiduals: 2, Magnitudes: 2}
    for query, release, answer in replay(heard.events, exact(3000, loss)):
        scale = query.charged * math.sqrt(1 / query.share)
        phase = place[type(query)]
        assert release.scale == pytest.approx(scale * entries[phase].noise_multiplier)
        noise[phase].append(((release.value - answer) / scale).ravel())
        # Noise in counts is a whole number, and often the same.
        if isinstance(query, Residuals | CodedResiduals):
            sums.append(noise[phase][-1])
    for phase in (1, 2):
        drawn = np.concatenate(noise[phase])
        # By chance less than once in a million: a standard deviation of n numbers has the relative
        # error 1 / sqrt(2 n).
        least = 5 / math.sqrt(2 * drawn.size)
        assert least < 0.2
        assert drawn.std() == pytest.approx(entries[phase].noise_multiplier, rel=least)
    assert np.unique(np.concatenate(sums)).size > 0.99 * np.concatenate(sums).size


@BOTH
def test_bins_and_booster_are_told_of_the_noise_that_is_there(loss, monkeypatch):
    told, boosters = [], []
    usual = algorithm.histogram

    def counting(k, feature, noise, rows):
        told.append((k, noise, rows))
        return usual(k, feature, noise, rows)

    class Watched(Booster):
        def __init__(self, *given):
            boosters.append(given)
            super().__init__(*given)

    monkeypatch.setattr(algorithm, "histogram", counting)
    monkeypatch.setattr("dprepro.methods.dp_ebm_plus.estimator.Booster", Watched)
    _, histograms, epochs = fit(loss).ledger_.entries
    ((_, start, _, _, deviation, _),) = boosters
    scale = pytest.approx(histograms.noise_multiplier)
    assert told == [(k, scale, start.rows) for k in range(3)]
    assert deviation == pytest.approx(epochs.noise_multiplier)


# --- epochs -------------------------------------------------------------------------------------

EPOCHS = 4


@pytest.fixture(scope="module", params=[LOGISTIC, SQUARED], ids=["classification", "regression"])
def heard(request):
    """Return the loss, the fitted model, and what was heard of its fit."""
    found = Events()
    with listening(found):
        model = fit(request.param, 0.5, 1500, n_epochs=EPOCHS, random_state=0)
    return request.param, model, found.events


OF_EPOCHS = Magnitudes | Residuals | CodedResiduals


def test_an_epoch_asks_about_all_features_in_one_query_and_spends_its_budget(heard):
    loss, _, events = heard
    queries = [e[0] for e in events if isinstance(e, tuple) and isinstance(e[0], OF_EPOCHS)]
    for asked in np.reshape(np.array(queries, dtype=object), (EPOCHS, -1)):
        kinds = [] if loss is LOGISTIC else [Magnitudes, Residuals]
        assert [type(query) for query in asked] == [*kinds, CodedResiduals]
        if loss is SQUARED:
            assert asked[1].feature == INTERCEPT
        codes = asked[-1].codes
        assert [code.feature for code in codes] == [INTERCEPT, 0, 1, 2]
        assert codes[0].mix is None
        assert all(code.mix.shape == (code.n_bins,) * 2 for code in codes[1:])
        assert 1 - 1e-9 < sum(query.share for query in asked) <= 1 + 1e-12


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
        norms = np.array([np.linalg.norm(part) for part in own])
        assert (norms <= query.charged * (1 + 1e-12)).all()
        if isinstance(query, OF_EPOCHS):
            moved.append(query.share * (norms / query.charged) ** 2)
    of_epochs = np.reshape(moved, (EPOCHS, -1, len(rows))).sum(axis=1)
    assert 0.9 < of_epochs.max() <= 1 + 1e-9


def test_the_ledger_composes_to_the_budget(heard):
    _, model, _ = heard
    entries = model.ledger_.entries
    assert [entry.uses for entry in entries] == [1, 3, EPOCHS]
    squares = sum(entry.uses / entry.noise_multiplier**2 for entry in entries)
    assert squares == pytest.approx(mu_of(0.5, 1e-6) ** 2, rel=1e-6)
    assert model.ledger_.spent_epsilon() == pytest.approx(0.5, rel=1e-3)
    assert model.ledger_.within_budget
