"""Functions of two features: what is found, what is charged, and where rows may lie."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dprepro.additive.bins import Pair
from dprepro.data.domain import Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.booster import Effect
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.pairs import PairEffect, Pairs, most_pairs
from dprepro.methods.dp_ebm_plus.queries import (
    INTERCEPT,
    Code,
    CodedHistogram,
    CodedResiduals,
    Merge,
    Move,
    Moves,
    Start,
    Totals,
)
from dprepro.methods.dp_ebm_plus.strategy import Strategy
from dprepro.privacy.curator_base import listening
from dprepro.privacy.query import SensitivityError
from dprepro.rows.answer_log import digest
from dprepro.runtime.errors import DpreproError
from tests.methods.dp_ebm_plus.pair_table import FEATURES, SPAN, drawn, fit, table
from tests.methods.dp_ebm_plus.stub import BOTH, Events, replay


@BOTH
def test_features_that_act_together_are_found_and_learned(loss):
    model = fit(loss)
    (term,) = model.pairs_
    assert (term.pair.first, term.pair.second) == (0, 2)
    size = np.ptp(term.values) / (4 if loss is LOGISTIC else 1)
    assert 0.7 < size < 1.2
    alone = fit(loss, pairs=0)
    X, y, *_ = drawn(loss)
    assert model.score(X, y) > alone.score(X, y) + 0.03


@BOTH
def test_where_features_act_alone_no_pair_is_kept(loss):
    assert fit(loss, effect=0.0).pairs_ == ()


@BOTH
def test_pairs_have_no_mean_along_either_side(loss):
    for term in fit(loss).pairs_:
        sides = term.counts.sum(axis=1), term.counts.sum(axis=0)
        size = np.abs(term.values).max()
        assert np.abs(np.average(term.values, axis=0, weights=sides[0])).max() < 1e-6 * size
        assert np.abs(np.average(term.values, axis=1, weights=sides[1])).max() < 1e-6 * size


@BOTH
def test_no_pair_is_asked_about_for_few_rows_or_a_single_feature(loss, monkeypatch):
    asked = []
    candidate = Pairs._candidate
    monkeypatch.setattr(Pairs, "_candidate", lambda *given: asked.append(1) or candidate(*given))
    fit(loss, epsilon=0.05, rows=500)
    assert not asked
    X, y, domain, kind = drawn(loss)
    kind(4.0, domain=Domain(domain.features[:1], domain.target), pairs=3).fit(X[["x"]], y)
    assert not asked
    fit(loss)
    assert len(asked) == 3


def test_a_fit_keeps_the_surest_of_the_pairs_that_are_likely():
    X, signal, rng = table()
    y = signal + 0.8 * (X["y"].fillna(0.5) - 0.5) * (X["x"] - 0.5) * 4 + rng.normal(0, 0.1, len(X))
    domain = Domain(FEATURES, SPAN)
    fits = [
        DPEBMPlusRegressor(8.0, domain=domain, pairs=most, random_state=0).fit(X, y)
        for most in (1, 5)
    ]
    assert len(fits[0].pairs_) == 1
    assert fits[0].pairs_[0].pair == fits[1].pairs_[0].pair
    assert set(fits[1].term_names[3:]) >= {"x & y", "x & c"}


@BOTH
def test_the_ledger_names_pairs_and_spends_what_it_spends_without(loss):
    with_pairs, without = fit(loss).ledger_, fit(loss, pairs=0).ledger_
    assert [e.uses for e in with_pairs.entries] == [e.uses for e in without.entries]
    assert with_pairs.spent_epsilon() == without.spent_epsilon()
    assert "for each cell of some pairs of features" in with_pairs.entries[-1].releases
    assert "pairs" not in without.entries[-1].releases


@BOTH
def test_rows_in_files_give_the_bits_of_rows_in_memory(loss, tmp_path):
    X, y, domain, kind = drawn(loss)
    X.assign(target=y).to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    models = [
        kind(4.0, domain=domain, random_state=1, pairs=3, n_epochs=12).fit(*given)
        for given in ((X, y), (tmp_path / "rows.parquet", "target"))
    ]
    assert models[0].pairs_
    for one, other in zip(*(model.pairs_ for model in models), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        assert one.pair == other.pair


@BOTH
def test_no_row_moves_all_that_an_epoch_with_pairs_asks_by_more_than_one(loss):
    """Parts over what is charged: their squares, times the shares, add up to 1 at most."""
    heard, epochs = Events(), 12
    with listening(heard):
        assert fit(loss, n_epochs=epochs).pairs_
    X, *_ = table()
    domain = Domain(FEATURES, ("0", "1") if loss is LOGISTIC else SPAN)
    extremes = (0.0, 1.0) if loss is LOGISTIC else SPAN
    rows = [
        ExactAnswers.of(Rows(X.iloc[[i]], np.array([target])), domain, loss)
        for i in range(8)
        for target in extremes
    ]
    spent, of_pairs, moved = 0.0, set(), np.zeros((epochs, len(rows)))
    for query, _, *parts in replay(heard.events, *rows):
        if isinstance(query, Totals | CodedHistogram):
            continue
        norms = np.array([np.linalg.norm(part) for part in parts])
        epoch = math.floor(spent + 1e-9)
        moved[epoch] += query.share * (norms / query.charged) ** 2
        spent += query.share
        if isinstance(query, CodedResiduals):
            assert query.codes[0].feature == INTERCEPT
            kinds = {isinstance(code.feature, Pair) for code in query.codes[1:]}
            of_pairs.add((epoch, *sorted(kinds)))
    assert spent == pytest.approx(epochs)
    assert moved.max() <= 1 + 1e-9
    # What is charged is what rows do move an epoch by.
    assert moved.max() > 0.9
    # A quarter of the epochs is about features, a quarter about candidates, the rest about both.
    expected = 3 * [(False,)] + 3 * [(True,)] + 6 * [(False, True)]
    assert sorted(of_pairs) == [(number, *kind) for number, kind in enumerate(expected)]


@pytest.mark.parametrize("epochs", [3, 4, 5, 7, 16, 64])
def test_epochs_of_all_three_kinds_are_there(epochs):
    pairs = Pairs(SimpleNamespace(asked=[]), None, 3, epochs)
    assert 1 <= pairs._first < pairs._last < epochs


def test_a_question_about_another_pair_is_another_question():
    """A fit that was killed goes on with the answers that it had: see `dprepro.rows.answer_log`."""
    groups = np.array([0, 1, 1], np.uint8), np.array([0, 1, 2], np.uint8)

    def asked(first, second, *groups):
        pair = Pair(first, second, *groups)
        code = Code(pair, np.ones(pair.n_cells), np.zeros(pair.n_cells, int))
        return digest(CodedResiduals(1.0, 1.0, (code,), 1.0))

    others = np.array([0, 1, 0], np.uint8), groups[1]
    found = {asked(0, 1, *groups), asked(0, 1, *others), asked(0, 2, *groups)}
    assert len(found) == 3
    assert asked(0, 1, *(each.copy() for each in groups)) == asked(0, 1, *groups)


def test_pairs_of_the_same_groups_are_one_and_others_are_not():
    groups = np.array([0, 1], np.uint8), np.array([0, 1, 1], np.uint8)
    assert Pair(0, 2, *groups) == Pair(0, 2, *(each.copy() for each in groups))
    assert len({Pair(0, 2, *groups), Pair(0, 2, *groups), Pair(1, 2, *groups)}) == 2
    assert Pair(0, 2, *groups) != Pair(0, 2, groups[0], np.array([0, 0, 1], np.uint8))


def rows_of(loss, n=40):
    X, y, domain, _ = drawn(loss, n)
    return X, np.asarray(y, float), domain


def told(loss, X, y, domain, pair):
    """Return exact answers of rows whose scores follow functions of a feature and a pair."""
    exact = ExactAnswers.of(Rows(X, y), domain, loss)
    cells = [*(len(each) for each in exact._counts)]
    for k, size in enumerate(cells):
        exact.follow(Merge(k, np.arange(size) * 3 // size, 3))
    exact.follow(Start(0))
    change = np.arange(-4, 5, dtype=np.int32) * 2**21
    exact.follow(Moves((Move(1, change[:3]), Move(pair, change))))
    return exact


@BOTH
@pytest.mark.parametrize("bound", [0.3, 1.0, 2.5])
def test_no_row_moves_the_answer_about_pairs_by_more_than_is_charged(loss, bound):
    rng = np.random.default_rng(3)
    groups = np.arange(3, dtype=np.uint8)
    pairs = [Pair(0, 2, groups, groups), Pair(1, 2, groups, groups)]
    codes = tuple(
        Code(
            feature,
            2.0 ** rng.integers(-3, 3, size).astype(float),
            rng.integers(0, 100, size).astype(np.int64),
        )
        for feature, size in ((0, 3), (pairs[0], 9), (pairs[1], 9))
    )
    query = CodedResiduals(bound, 1.0, codes, bound)
    X, y, domain = rows_of(loss)
    largest = 0.0
    whole = told(loss, X, y, domain, pairs[0]).answer(query)
    for i in range(len(X)):
        rest = X.drop(index=i).reset_index(drop=True)
        without = told(loss, rest, np.delete(y, i), domain, pairs[0]).answer(query)
        moved = (whole.numbers - without.numbers) * whole.unit
        largest = max(largest, float(np.linalg.norm(moved)))
    assert 0.5 * min(bound, 0.5) < largest <= bound


def test_a_code_of_other_cells_and_a_histogram_of_a_pair_are_refused():
    X, y, domain = rows_of(LOGISTIC)
    groups = np.arange(3, dtype=np.uint8)
    pair = Pair(0, 2, groups, groups)
    exact = told(LOGISTIC, X, y, domain, pair)
    code = Code(pair, np.ones(8), np.zeros(8, np.int64))
    with pytest.raises(SensitivityError, match="a code of 8 bins"):
        exact.answer(CodedResiduals(1.0, 1.0, (code,), 1.0))
    with pytest.raises(SensitivityError, match="not of a pair"):
        exact.answer(CodedHistogram.of(code))


def test_a_cell_is_known_by_three_functions():
    first, second = Effect(0, np.array([1.0, 3.0, 4.0])), Effect(1, np.array([6.0, 2.0]))
    groups = [np.array([0, 0, 1], np.uint8), np.array([0, 1], np.uint8)]
    effect = PairEffect(first, second, groups)
    np.testing.assert_allclose(effect.counts, [3, 1, 3, 1])
    first.move(np.array([1.0, -1.0, 0.5]))
    second.move(np.array([0.25, -0.75]))
    effect.move(np.array([1.0, 0.0, 0.0, -1.0]))
    values, variance = effect.known()
    np.testing.assert_allclose(values, [0.75, -1.25, 0.75, -1.25], atol=1e-6)
    assert variance == pytest.approx(first.spread + second.spread + effect.spread)
    whole = effect.centred(np.array([3.0, 1.0, 2.0, 0.0])).reshape(2, 2)
    np.testing.assert_allclose(whole, 0, atol=1e-12)


def test_a_candidate_has_fewer_cells_the_more_noise_there_is():
    X, y, domain, kind = drawn(SQUARED)
    shapes = {}
    for epsilon in (1.0, 8.0):
        found = []
        of = Strategy.of.__func__
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                Strategy,
                "of",
                classmethod(lambda cls, k, *a, of=of: found.append(k) or of(cls, k, *a)),  # noqa: B023
            )
            kind(epsilon, domain=domain, random_state=0, pairs=3, n_epochs=8).fit(X, y)
        shapes[epsilon] = max(each.n_cells for each in found if isinstance(each, Pair))
    assert 6 <= shapes[1.0] < shapes[8.0] <= 256


def test_no_more_pairs_are_kept_than_there_are_candidates():
    assert [most_pairs(features, 60) for features in (1, 2, 4, 10, 30)] == [0, 1, 6, 45, 45]
    assert most_pairs(30, 2) == 2


# --- beside other options -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "said"),
    [({"pairs": -1}, "pairs"), ({"n_epochs": 2}, "n_epochs"), ({"pairs": 0.5}, "pairs")],
)
def test_parameters_out_of_range_are_named(params, said):
    with pytest.raises(ValueError, match=said):
        fit(LOGISTIC, **params)


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
