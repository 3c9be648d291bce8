"""Pairs in DP-EBM+: what is asked, what it can reveal, what is kept, and what is learned."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.pairs import Pair
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.ebm_plus import pairs as stage
from dprepro.ebm_plus.kernel import UNIT, to_units
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.ebm_plus.queries import (
    COUNT_WEIGHT,
    Histogram,
    Magnitudes,
    Move,
    PairResiduals,
    Residuals,
    Start,
    Totals,
    pair_norm,
)
from dprepro.errors import DpreproError
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import BudgetError, Release, SensitivityError
from dprepro.privacy.release import listening
from dprepro.rows.kept import digest
from tests.ebm_plus.plain import PlainCurator
from tests.ebm_plus.stub import Events, exact_answers
from tests.ebm_plus.test_booster import BOTH
from tests.ebm_plus.test_curator import BUDGET as CURATORS_BUDGET
from tests.ebm_plus.test_curator import curator

PAIR = Pair(0, 1, np.array([0, 1, 1], np.uint8), np.array([0, 1, 2], np.uint8))
FEATURES = (
    NumericFeature("x", 0, 1),
    NumericFeature("y", 0, 1, missing=True),
    CategoricalFeature("c", ("a", "b", "d")),
)
SPAN = (-2.0, 2.0)


def table(rows=6000, seed=0, effect=1.0):
    """Rows in which x and c act together, by `effect`, and y on its own."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.random(rows), "y": rng.random(rows)})
    X["c"] = rng.choice(["a", "b", "d"], rows)
    signal = X["y"] - 0.5 + effect * np.where(X["c"] == "a", 1, -1) * (X["x"] - 0.5)
    X.loc[rng.random(rows) < 0.1, "y"] = np.nan
    return X, signal.fillna(0).to_numpy(), rng


def fit(loss, epsilon=4.0, effect=1.0, rows=6000, **params):
    X, signal, rng = table(rows, effect=effect)
    settings = {"random_state": 0, "pairs": 3} | params
    if loss is LOGISTIC:
        y = (rng.logistic(size=rows) < 4 * signal).astype(int)
        domain = Domain(FEATURES, ("0", "1"))
        return DPEBMPlusClassifier(epsilon, domain=domain, **settings).fit(X, y)
    y = signal + rng.normal(0, 0.2, rows)
    return DPEBMPlusRegressor(epsilon, domain=Domain(FEATURES, SPAN), **settings).fit(X, y)


# --- privacy --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("bound", [1e-3, 0.2, 0.5, 0.9, 1.0])
def test_a_row_moves_the_sums_of_a_pair_by_no_more_than_is_charged(loss, bound):
    """Brute force over scores, targets and bins of a row more, beside rows of every kind."""
    query = PairResiduals(pair_norm(loss, bound), 1.0, PAIR, bound, loss)
    scores = [-70.0, -4.0, -1.0, -0.2, 0.0, 1e-4, 0.5, 2.0, 63.0]
    targets = [0, 1] if loss is LOGISTIC else [-0.5, -0.1, 0.0, 0.5]
    others = np.array([[0, 1, 2, 1], [2, 1, 0, 0]])
    of_others = np.resize(targets, 4)
    moved = []
    for score, target, first, second in product(scores, targets, range(3), range(3)):
        tables = [
            exact_answers(others, of_others, loss),
            exact_answers(np.column_stack([others, [first, second]]), [*of_others, target], loss),
        ]
        for exact in tables:
            exact.follow(Start(int(to_units(score))))
        without, present = (exact.answer(query).value for exact in tables)
        part = present - without
        assert np.count_nonzero(part.any(axis=0)) <= 1
        moved.append(np.linalg.norm(part))
    assert max(moved) <= query.charged * (1 + 1e-12)
    # What is charged is what extreme rows do move it by, up to the grid.
    assert max(moved) >= query.charged * 0.98 - 2 * UNIT


def test_the_norm_of_a_part_rises_with_the_residual():
    """So that the largest residual gives the largest part: |r| sqrt(1 + (1 - |r|)^2)."""
    r = np.linspace(0, 1, 1001)
    assert np.all(np.diff(r * np.sqrt(1 + (1 - r) ** 2)) >= 0)
    assert [pair_norm(LOGISTIC, c) for c in r[1::100]] == pytest.approx(
        list(r[1::100] * np.sqrt(1 + (1 - r[1::100]) ** 2))
    )
    assert pair_norm(SQUARED, 0.3) == pytest.approx(0.3 * math.sqrt(1.25))


@BOTH
def test_a_query_that_is_charged_for_less_than_is_enforced_cannot_be_built(loss):
    with pytest.raises(SensitivityError, match="charge at least what is enforced"):
        PairResiduals(0.999 * pair_norm(loss, 0.4), 1.0, PAIR, 0.4, loss)


def test_a_curator_answers_about_pairs_only_where_the_ledger_says_so():
    asked, ledger = curator()
    asked.open_epochs(0.5, 4, CURATORS_BUDGET)
    query = PairResiduals(1.0, 1.0, PAIR, 1.0, LOGISTIC)
    with pytest.raises(BudgetError, match="no mechanism for PairResiduals"):
        asked.answer(query)
    assert "pairs" not in ledger.entries[-1].releases
    asked, ledger = curator(SQUARED)
    asked.open_epochs(0.5, 4, CURATORS_BUDGET, has_pairs=True)
    assert "each cell of some pairs of features" in ledger.entries[-1].releases
    with pytest.raises(SensitivityError, match="LogisticLoss"):
        asked.answer(query)


@BOTH
def test_every_epoch_spends_its_share_and_no_more_whatever_is_asked(loss):
    heard = Events()
    with listening(heard):
        model = fit(loss)
    assert model.pairs_
    asked = [event[0] for event in heard.events if isinstance(event, tuple)]
    rest = [query for query in asked if not isinstance(query, Totals | Histogram)]
    total = sum(query.share for query in rest)
    assert total == pytest.approx(16, rel=1e-9)
    assert {type(query) for query in rest} >= {Residuals, PairResiduals}
    spent = np.cumsum([query.share for query in rest])
    for number in range(1, 17):
        assert np.abs(spent - number).min() < 1e-9


@BOTH
def test_with_pairs_a_fit_spends_what_it_spends_without(loss):
    with_pairs, without = (fit(loss, pairs=n, random_state=None).ledger_ for n in (3, 0))
    assert with_pairs.holds
    assert with_pairs.spent_epsilon() == pytest.approx(without.spent_epsilon(), rel=1e-12)
    assert [
        (e.mechanism, e.sensitivity, e.uses, e.noise_multiplier) for e in with_pairs.entries
    ] == [(e.mechanism, e.sensitivity, e.uses, e.noise_multiplier) for e in without.entries]


# --- what is kept and learned ---------------------------------------------------------------------


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
        pair.take(Release(np.asarray(value, float), scale), weight, unit)
    return pair


def test_the_noise_of_averaged_answers_is_that_of_their_weights(monkeypatch):
    heard = []
    monkeypatch.setattr(stage, "smooth_surface", lambda *given: heard.append(given))
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


# --- where rows lie -------------------------------------------------------------------------------


def test_rows_in_files_give_the_bits_of_rows_in_memory(tmp_path):
    X, signal, rng = table()
    y = signal + rng.normal(0, 0.2, len(X))
    X.assign(target=y).to_parquet(tmp_path / "t.parquet", row_group_size=700)
    settings = {"domain": Domain(FEATURES, SPAN), "pairs": 3, "random_state": 0}
    one = DPEBMPlusRegressor(4.0, **settings).fit(X, y)
    other = DPEBMPlusRegressor(4.0, **settings).fit(tmp_path / "t.parquet", "target")
    assert one.pairs_
    assert one.term_names == other.term_names
    for a, b in zip(one.pairs_, other.pairs_, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.noise, b.noise)
    np.testing.assert_array_equal(one.contributions(X), other.contributions(X))


def test_a_question_about_another_pair_is_another_question():
    """A fit that was killed goes on with the answers that it had: see `dprepro.rows.kept`."""
    groups = np.array([0, 1, 0], np.uint8)
    pairs = [PAIR, Pair(0, 1, groups, PAIR.second_groups), Pair(0, 2, *_groups(PAIR))]
    questions = [PairResiduals(1.0, 1.0, pair, 0.5, SQUARED) for pair in pairs]
    assert len({digest(question) for question in questions}) == 3
    again = PairResiduals(1.0, 1.0, Pair(0, 1, *_groups(PAIR)), 0.5, SQUARED)
    assert digest(again) == digest(questions[0])


def _groups(pair):
    return pair.first_groups.copy(), pair.second_groups.copy()


# --- the same in plain NumPy ----------------------------------------------------------------------


class PlainPairs(PlainCurator):
    """Also answers about pairs."""

    def open_epochs(self, mu, n_epochs, budget, has_pairs=False):
        assert has_pairs
        return super().open_epochs(mu, n_epochs, budget)

    def pair_cells(self, pair):
        first, second = self.bins[pair.first][0], self.bins[pair.second][0]
        width = int(pair.second_groups.max()) + 1
        return pair.first_groups[first].astype(int) * width + pair.second_groups[second]

    def answer(self, query):
        if not isinstance(query, PairResiduals):
            return super().answer(query)
        self.bins["pair"] = self.pair_cells(query.pair), query.pair.n_cells
        plain = Residuals(
            self.loss.part_norm(query.bound), query.share, "pair", query.bound, self.loss
        )
        exact = self.residual_sums(plain)
        if self.loss is SQUARED:
            counts = np.bincount(self.bins["pair"][0], minlength=query.pair.n_cells)
            exact = np.array([exact[0], COUNT_WEIGHT * query.bound * counts])
        self.queries.append(query)
        scale = self.noise * query.charged / math.sqrt(query.share)
        noise = scale * self.generator.normal(size=exact.shape)
        return stage.Release(exact + noise, scale)

    def tell(self, instruction):
        if isinstance(instruction, Move) and isinstance(instruction.feature, Pair):
            self.scores += UNIT * instruction.change[self.pair_cells(instruction.feature)]
        else:
            super().tell(instruction)


@BOTH
def test_the_estimator_does_what_a_curator_in_plain_numpy_does(loss, monkeypatch):
    generator = np.random.default_rng(5)

    def add_same(_, exact, scale, unit=1.0):
        return exact * unit + scale * generator.normal(size=exact.shape)

    monkeypatch.setattr(NoiseSource, "add_gaussian", add_same)
    model = fit(loss, random_state=None)
    X, signal, rng = table()
    if loss is LOGISTIC:
        y, domain = (
            (rng.logistic(size=len(X)) < 4 * signal).astype(int),
            Domain(FEATURES, ("0", "1")),
        )
    else:
        y, domain = signal + rng.normal(0, 0.2, len(X)), Domain(FEATURES, SPAN)
    plain = PlainPairs(X, y, domain, loss, np.random.default_rng(5))
    learned = stage.learn_with_pairs(plain, domain, loss, PrivacyBudget(4.0, 1e-6), 16, 3)
    width = 1.0 if loss is LOGISTIC else SPAN[1] - SPAN[0]
    assert len(model.pairs_) == len(learned[4]) > 0
    for term, pair in zip(model.pairs_, learned[4], strict=True):
        shape = pair.pair.shape
        np.testing.assert_allclose(term.values, width * pair.values.reshape(shape), atol=5e-5)
        np.testing.assert_allclose(term.noise, width * pair.deviations.reshape(shape), atol=5e-5)
    for values, function in zip(model.shape_functions_, learned[1], strict=True):
        np.testing.assert_allclose(values, width * function.values, atol=5e-5)
    queries = [q for q in plain.queries if isinstance(q, Magnitudes)]
    assert len(queries) == (0 if loss is LOGISTIC else 16)


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
