"""Version 22 with pairs of features: what is found, what is charged, and where rows may lie."""

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.one_way.booster import Effect
from dprepro.methods.dp_ebm_plus.one_way.estimator import (
    DPEBMPlus22Classifier,
    DPEBMPlus22Regressor,
)
from dprepro.methods.dp_ebm_plus.one_way.pairs import PairEffect, Pairs
from dprepro.methods.dp_ebm_plus.one_way.strategy import Strategy

from dprepro.additive.bins import Pair
from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    Code,
    CodedHistogram,
    CodedResiduals,
    Merge,
    Move,
    Moves,
    Start,
)
from dprepro.privacy.query import SensitivityError
from tests.methods.dp_ebm_plus.pair_table import FEATURES, SPAN, table

KINDS = pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=["labels", "numbers"])


def drawn(loss, rows=6000, effect=1.0):
    """Return rows, targets, and an estimator of them that keeps three pairs at most."""
    X, signal, rng = table(rows, effect=effect)
    if loss is LOGISTIC:
        y = (rng.logistic(size=rows) < 4 * signal).astype(int)
        return X, y, Domain(FEATURES, ("0", "1")), DPEBMPlus22Classifier
    return X, signal + rng.normal(0, 0.2, rows), Domain(FEATURES, SPAN), DPEBMPlus22Regressor


def fitted(loss, epsilon=4.0, rows=6000, effect=1.0, **params):
    X, y, domain, kind = drawn(loss, rows, effect)
    return kind(epsilon, domain=domain, **{"random_state": 0, "pairs": 3} | params).fit(X, y)


@KINDS
def test_features_that_act_together_are_found_and_learned(loss):
    model = fitted(loss)
    (term,) = model.pairs_
    assert (term.pair.first, term.pair.second) == (0, 2)
    size = np.ptp(term.values) / (4 if loss is LOGISTIC else 1)
    assert 0.7 < size < 1.2
    alone = fitted(loss, pairs=0)
    X, y, *_ = drawn(loss)
    assert model.score(X, y) > alone.score(X, y) + 0.03


@KINDS
def test_where_features_act_alone_no_pair_is_kept(loss):
    assert fitted(loss, effect=0.0).pairs_ == ()


@KINDS
def test_pairs_have_no_mean_along_either_side(loss):
    for term in fitted(loss).pairs_:
        sides = term.counts.sum(axis=1), term.counts.sum(axis=0)
        size = np.abs(term.values).max()
        assert np.abs(np.average(term.values, axis=0, weights=sides[0])).max() < 1e-6 * size
        assert np.abs(np.average(term.values, axis=1, weights=sides[1])).max() < 1e-6 * size


@KINDS
def test_no_pair_is_asked_about_for_few_rows_or_a_single_feature(loss, monkeypatch):
    asked = []
    candidate = Pairs._candidate
    monkeypatch.setattr(Pairs, "_candidate", lambda *given: asked.append(1) or candidate(*given))
    fitted(loss, epsilon=0.05, rows=500)
    assert not asked
    X, y, domain, kind = drawn(loss)
    kind(4.0, domain=Domain(domain.features[:1], domain.target), pairs=3).fit(X[["x"]], y)
    assert not asked
    fitted(loss)
    assert len(asked) == 3


def test_a_fit_keeps_the_surest_of_the_pairs_that_are_likely():
    assert len(fitted(LOGISTIC, pairs=1).pairs_) == 1
    assert fitted(LOGISTIC, pairs=0).pairs_ == ()


@KINDS
def test_the_ledger_names_pairs_and_spends_what_it_spends_without(loss):
    with_pairs, without = fitted(loss).ledger_, fitted(loss, pairs=0).ledger_
    assert [e.uses for e in with_pairs.entries] == [e.uses for e in without.entries]
    assert with_pairs.spent_epsilon() == without.spent_epsilon()
    assert "for each cell of some pairs of features" in with_pairs.entries[-1].releases
    assert "pairs" not in without.entries[-1].releases


@KINDS
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


@KINDS
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
