"""Pairs in DP-EBM+: when they are asked about, which are kept, and what is learned of them."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dprepro.methods.dp_ebm_plus.function import Answer

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus import pairs as stage
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import PairResiduals
from dprepro.privacy.curator_base import listening
from dprepro.rows.table import listening as listening_to_progress
from dprepro.runtime.errors import DpreproError
from tests.methods.dp_ebm_plus.pair_table import FEATURES, SPAN, fit, table
from tests.methods.dp_ebm_plus.stub import Events
from tests.methods.dp_ebm_plus.test_booster import BOTH


@BOTH
def test_features_that_act_together_are_found_and_others_are_not(loss):
    model = fit(loss)
    assert model.term_names[3:] == ["x & c"]
    term = model.pairs_[0]
    first, second = term.pair.first_groups, term.pair.second_groups
    assert len({*second.tolist()}) == 3
    of_a = term.values[:, second[model.bins_[2].groups[0]]]
    assert of_a[0] < 0 < of_a[-1]
    assert first.max() > 3
    without = fit(loss, pairs=0)
    X, signal, _ = table(3000, seed=1)
    errors = [
        np.std(signal - np.polyval(np.polyfit(s, signal, 1), s))
        for s in (m.scores_of(m.contributions(X)) for m in (model, without))
    ]
    assert errors[0] < 0.6 * errors[1]


@BOTH
def test_where_features_act_alone_no_pair_is_kept(loss):
    kept = [fit(loss, effect=0.0, random_state=seed).pairs_ for seed in range(5)]
    assert sum(map(len, kept)) <= 1


@BOTH
def test_pairs_have_no_mean_along_either_side(loss):
    model = fit(loss)
    for term in model.pairs_:
        counts = term.counts
        assert np.abs(term.values).max() > 0.1
        np.testing.assert_allclose((term.values * counts).sum(axis=0) / counts.sum(0), 0, atol=1e-6)
        np.testing.assert_allclose((term.values * counts).sum(axis=1) / counts.sum(1), 0, atol=1e-6)
        assert np.all(term.noise > 0)


@BOTH
def test_with_few_rows_for_the_noise_no_pair_is_asked(loss):
    heard = Events()
    with listening(heard):
        model = fit(loss, epsilon=0.05, rows=500)
    assert model.pairs_ == ()
    asked = [event[0] for event in heard.events if isinstance(event, tuple)]
    assert not any(isinstance(query, PairResiduals) for query in asked)
    without = fit(loss, epsilon=0.05, rows=500, pairs=0)
    for one, other in zip(model.shape_functions_, without.shape_functions_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_more_pairs_are_kept_than_are_asked_for():
    X, signal, rng = table()
    y = signal + 0.8 * (X["y"].fillna(0.5) - 0.5) * (X["x"] - 0.5) * 4 + rng.normal(0, 0.1, len(X))
    domain = Domain(FEATURES, SPAN)
    fits = [
        DPEBMPlusRegressor(8.0, domain=domain, pairs=most, random_state=0).fit(X, y)
        for most in (1, 5)
    ]
    assert len(fits[0].pairs_) == 1
    assert set(fits[1].term_names[3:]) >= {"x & y", "x & c"}


def test_a_single_feature_has_no_pairs():
    X, signal, _ = table(2000)
    domain = Domain(FEATURES[:1], SPAN)
    model = DPEBMPlusRegressor(1.0, domain=domain, pairs=2, random_state=0).fit(X[["x"]], signal)
    assert model.pairs_ == ()


@pytest.mark.parametrize("epochs", [3, 4, 5, 7, 16, 64])
def test_epochs_of_all_three_kinds_are_there(epochs):
    alone, asking = stage.schedule(epochs)
    assert min(alone, asking, epochs - alone - asking) >= 1


@pytest.mark.parametrize(
    ("params", "said"),
    [({"pairs": -1}, "pairs"), ({"n_epochs": 2}, "n_epochs"), ({"pairs": 0.5}, "pairs")],
)
def test_parameters_out_of_range_are_named(params, said):
    with pytest.raises(ValueError, match=said):
        fit(LOGISTIC, **params)


def test_a_pair_has_as_many_cells_as_noise_allows_and_as_a_byte_can_number():
    sizes = []
    for cells in (1.0, 9.0, 60.0, 1e9):
        functions = [_function(k, bins) for k, bins in enumerate((50, 3))]
        pair = stage.pair_function(*functions, cells, 1000.0).pair
        sizes.append(pair.shape)
    assert sizes == [(2, 2), (3, 3), (16, 3), (16, 3)]
    largest = [_function(k, 200) for k in range(2)]
    assert stage.pair_function(*largest, 1e9, 1000.0).pair.shape == (16, 16)


@pytest.mark.parametrize(("epochs", "parts"), [(3, (1, 1)), (8, (2, 2)), (16, (4, 4))])
def test_a_quarter_of_the_epochs_learns_features_and_a_quarter_asks_about_pairs(epochs, parts):
    assert stage.schedule(epochs) == parts


def answered(*answers):
    """Return a pair on 2 x 2 cells that took answers: value, scale of noise, weight, unit."""
    pair = stage.pair_function(*(_function(k, 2) for k in range(2)), 4.0, 80.0)
    for value, scale, weight, unit in answers:
        pair.take(Answer(np.asarray(value, float), scale), weight, unit)
    return pair


def test_the_noise_of_averaged_answers_is_that_of_their_weights(monkeypatch):
    heard = []
    monkeypatch.setattr(stage, "smooth_bivariate", lambda *given: heard.append(given))
    first, second = np.full((2, 4), 8.0), np.full((2, 4), 2.0)
    pair = answered((first, 3.0, 1.0, 0.5), (second, 5.0, 2.0, 0.25))
    pair.infer(np.full(4, 20.0), 0.1, np.ones(1))
    ((sums, masses, variances, *_),) = heard
    noise = (9 + 4 * 25) / 9
    of_masses = (9 / 0.25 + 4 * 25 / 0.0625) / 9
    noisy = (8 / 0.5 + 2 * 2 / 0.25) / 3
    trust = 400 / (400 + of_masses)
    expected = trust * noisy + (1 - trust) * 20 + 0.5 * math.sqrt(trust * of_masses) + 0.02
    np.testing.assert_allclose(masses, expected)
    np.testing.assert_allclose(sums, (8 + 2 * 2) / 3)
    np.testing.assert_allclose(variances, noise + 0.1 * masses)


@BOTH
def test_an_epoch_with_pairs_counts_its_passes_to_one_total(loss, monkeypatch):
    """Of labels, features are one pass; each pair is one, as is each feature of a regression."""
    functions = [_function(k, 3) for k in range(2)]
    learner = stage.PairBooster(functions, loss, 1000.0, 0.0, 0.2, 5.0, n_epochs=4)
    learner.functions.append(stage.pair_function(*functions, 4.0, 1000.0))
    monkeypatch.setattr(algorithm, "step", lambda *_: None)
    monkeypatch.setattr(algorithm, "step_all", lambda *_: None)
    monkeypatch.setattr(learner, "choose_bound", lambda _: None)
    heard = []
    with listening_to_progress(lambda *told: heard.append(told)):
        algorithm.epoch(SimpleNamespace(answer=lambda _: None), learner, 2)
    passes = 2 if loss is LOGISTIC else 4
    assert heard == [("boosting", 2 * passes + k, 4 * passes) for k in range(1, passes + 1)]


@BOTH
def test_functions_of_pairs_keep_the_pace_of_labels_that_features_had(loss, monkeypatch):
    """At a pace of their own they made up again for the rows that features had made up for."""
    functions = [_function(k, 3) for k in range(2)]
    before = Booster(functions, loss, 1000.0, 0.0, 0.2, 5.0, n_epochs=16)
    before.damping.value = 0.125
    learner = stage.PairBooster.after(before)
    assert learner.damping is before.damping
    target = np.array([4.0, -4.0, -4.0, 4.0])
    monkeypatch.setattr(stage.PairBooster, "values_of", lambda *_: target)
    pair = stage.pair_function(*functions, 4.0, 1000.0)
    pair.move(np.array([1.0, -1.0, -1.0, 1.0]))
    learned = learner.learn(pair, Answer(np.zeros((2, 4)), 1.0), 0.1, 9)
    part = 0.125 if loss is LOGISTIC else 1.0
    np.testing.assert_allclose(learned, pair.values + part * (target - pair.values))


def test_kept_pairs_share_the_last_epochs_with_the_features(monkeypatch):
    asked = []

    def made(first, second, cells, rows):
        asked.append(cells)
        return _function(9, 4)

    monkeypatch.setattr(stage, "pair_function", made)
    functions = [_function(k, 3) for k in range(3)]
    booster = stage.PairBooster(functions, LOGISTIC, 1000.0, 0.0, 0.2, 5.0, n_epochs=16)
    booster.take_in([(functions[0], functions[1]), (functions[0], functions[2])], 8)
    share = booster.shares.features / 5
    assert booster.shares.features + booster.shares.intercept == pytest.approx(1)
    expected = stage.cells_for(1000.0, 5.0 / math.sqrt(share * 8))
    assert asked == pytest.approx([expected, expected])
    assert len(booster.functions) == 5


def test_candidates_are_asked_about_if_nine_cells_stand_out_from_their_noise():
    def asks(deviation, features=4):
        functions = [_function(k, 3) for k in range(features)]
        return stage.asks_pairs(
            stage.PairBooster(functions, LOGISTIC, 1000.0, 0.0, 0.2, deviation, n_epochs=16)
        )

    # Six pairs share four epochs: 0.1 * 1000 / (deviation * sqrt(6 / 4)) is to be 9.
    limit = 100 / 9 / math.sqrt(6 / 4)
    assert asks(0.99 * limit)
    assert not asks(1.01 * limit)
    assert not asks(0.1, features=1)


def _function(k, bins):
    return stage.Function(k, np.ones(bins), np.zeros(bins), np.full(bins, 1 / bins), ordered=True)


# --- beside other options -------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [12_000])
def test_intervals_are_of_the_model_with_its_pairs(rows):
    """Counts of residuals from before there were pairs would make them too wide."""
    X, signal, rng = table(2 * rows, effect=3.0)
    y = (signal + rng.normal(0, 0.1, 2 * rows)).clip(*SPAN)
    model = DPEBMPlusRegressor(8.0, pairs=3, domain=Domain(FEATURES, SPAN), random_state=0)
    model.fit(X[:rows], y[:rows])
    assert model.pairs_
    lower, upper = model.predict_interval(X[rows:], 0.9).T
    covered = np.mean((lower <= y[rows:]) & (y[rows:] <= upper))
    assert 0.88 < covered < 0.93


@pytest.mark.parametrize(("n_epochs", "known"), [(3, False), (6, True)])
def test_a_single_epoch_that_knows_the_pairs_gives_no_intervals_and_the_message_says_so(
    n_epochs, known
):
    model, (X, *_) = fit(SQUARED, 8.0, effect=3.0, pairs=1, n_epochs=n_epochs), table(50)
    assert model.pairs_
    if known:
        assert model.predict_interval(X).shape == (50, 2)
    else:
        with pytest.raises(DpreproError, match="or with pairs and n_epochs=3"):
            model.predict_interval(X)


def test_a_function_cannot_be_made_monotone_beside_pairs():
    with pytest.raises(ValueError, match="give either pairs or monotone"):
        fit(SQUARED, monotone={"x": "increasing"})
    assert fit(SQUARED, pairs=0, monotone={"x": "increasing"}).edits_


@pytest.mark.parametrize("third", ["x & y", "z"])
def test_two_functions_of_one_name_are_refused_before_anything_is_asked(third):
    features = tuple(NumericFeature(name, 0, 1) for name in ("x", "y", third))
    X = pd.DataFrame(np.random.default_rng(0).random((300, 3)), columns=["x", "y", third])
    events = Events()
    model = DPEBMPlusRegressor(1.0, pairs=2, domain=Domain(features, (0.0, 1.0)))
    with listening(events):
        if third == "z":
            model.fit(X, X["x"])
            assert events.events
            return
        with pytest.raises(ValueError, match="two functions would be called 'x & y'"):
            model.fit(X, X["x"])
    assert not events.events
