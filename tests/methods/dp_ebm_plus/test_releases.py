"""What DP-EBM+ releases: with the noise that is paid for, and used as such."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.clipping import typical_deviation
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.grid import merge_fine, sum_deviations
from dprepro.methods.dp_ebm_plus.losses import _EXPECTED, _STANDING_OUT, LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    CodedResiduals,
    Histogram,
    Magnitudes,
    Residuals,
    Totals,
    totals_sensitivity,
)
from dprepro.privacy.curator_base import listening
from tests.methods.dp_ebm_plus.plus_table import DOMAIN, FEATURES, RANGE, table
from tests.methods.dp_ebm_plus.stub import Events, Stub, replay
from tests.methods.dp_ebm_plus.stub import exact_answers as stub_answers
from tests.methods.dp_ebm_plus.test_booster import BOTH


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


@BOTH
def test_nothing_but_the_noisy_totals_says_how_many_rows_there_are(loss):
    found = []
    for rows in (2, 40, 3000):
        curator = Replacing(exact(rows, loss), np.array([200.0, 30.0, 9.0]))
        found.append(algorithm.release_totals(curator, loss))
    np.testing.assert_allclose(found[1:], found[:1] * 2)
    assert found[0][0] == pytest.approx(200)
    ((query, _, _),) = curator.asked
    noise = query.charged * 20.0 / 200
    start = math.log(0.65 / 0.35) if loss is LOGISTIC else 0.15 / (1 + (noise / 0.25) ** 2)
    assert found[0][1] == pytest.approx(start)


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


def test_no_row_is_twice_in_one_histogram():
    X, labels, _ = table(300)
    for k in range(3):
        query = Histogram(1.0, 1.0, k)
        rows = [
            ExactAnswers.of(Rows(X.iloc[[i]], labels[[i]]), DOMAIN, LOGISTIC).answer(query).value
            for i in range(20)
        ]
        np.testing.assert_allclose([np.linalg.norm(row) for row in rows], 1.0)


@BOTH
@pytest.mark.parametrize("n_epochs", [16, 64])
def test_every_answer_has_the_noise_that_the_ledger_states(n_epochs, loss):
    X, labels, y = table()
    heard = Events()
    with listening(heard):
        if loss is LOGISTIC:
            model = DPEBMPlusClassifier(n_epochs=n_epochs, domain=DOMAIN).fit(X, labels)
        else:
            model = DPEBMPlusRegressor(n_epochs=n_epochs, domain=RANGE).fit(X, y)
    entries = model.ledger_.entries
    assert [entry.uses for entry in entries] == [1, 3, n_epochs]
    noise, sums = {0: [], 1: [], 2: []}, []
    place = {Totals: 0, Histogram: 1, Residuals: 2, CodedResiduals: 2, Magnitudes: 2}
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


@pytest.mark.parametrize(
    ("estimator", "domain", "seen"),
    [
        (DPEBMPlusClassifier, DOMAIN, LOGISTIC.bin_deviations),
        (DPEBMPlusRegressor, RANGE, SQUARED.bin_deviations),
    ],
)
def test_bins_and_booster_are_told_of_the_noise_that_is_there(estimator, domain, seen, monkeypatch):
    told, functions = [], []

    def merging(feature, counts, error, rows, **rule):
        told.append((error, rule["seen"]))
        bins, bin_counts, bin_of_cell = merge_fine(feature, counts, error, rows, **rule)
        functions.append(sum_deviations(feature, bin_of_cell, bins.n_bins, error))
        return bins, bin_counts, bin_of_cell

    class Watched(Booster):
        def __init__(self, functions, *others):
            self.uncertainties = [function.uncertainty for function in functions]
            boosters.append(self)
            super().__init__(functions, *others)

    boosters = []
    monkeypatch.setattr(algorithm, "merge_fine", merging)
    monkeypatch.setattr(algorithm, "Booster", Watched)
    X, labels, y = table()
    model = estimator(domain=domain).fit(X, labels if domain is DOMAIN else y)
    scale = model.ledger_.entries[1].scale
    errors = [scale * math.sqrt(2), scale * math.sqrt(2), scale]
    assert told == [(pytest.approx(error), seen) for error in errors]
    assert len(functions) == len(boosters[0].uncertainties)
    for expected, found in zip(functions, boosters[0].uncertainties, strict=True):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("epsilon", "features", "rows"),
    [
        # Some of the rarer label, of which there is one in five; sqrt(3 / 0.87) / mu is 1.4.
        (8.0, 3, 5 * _EXPECTED),
        # A part of a deviation, sqrt(K) / (sqrt(0.87) mu), and mu(0.1, 1e-6) is 0.0276.
        (0.1, 3, 5 * _STANDING_OUT * math.sqrt(3 / 0.87) / 0.0276),
        (0.1, 2, 5 * _STANDING_OUT * math.sqrt(2 / 0.87) / 0.0276),
    ],
)
def test_a_bin_of_labels_holds_enough_to_stand_out_from_their_noise(
    epsilon, features, rows, monkeypatch
):
    told = []
    merge = algorithm.merge

    def merging(*known, seen, fewest):
        told.append(fewest)
        return merge(*known, seen=seen, fewest=fewest)

    monkeypatch.setattr(algorithm, "merge", merging)
    X, labels, y = table()
    X, known = X.iloc[:, :features], FEATURES[:features]
    released = (30_000.0, math.log(0.2 / 0.8), 0.4, 1.0)
    monkeypatch.setattr(algorithm, "release_totals", lambda *_: released)
    DPEBMPlusClassifier(epsilon, domain=Domain(known, ("0", "1"))).fit(X, labels)
    DPEBMPlusRegressor(epsilon, domain=Domain(known, (-5.0, 5.0))).fit(X, y)
    assert told == [pytest.approx(rows, rel=0.01), 0.0]
