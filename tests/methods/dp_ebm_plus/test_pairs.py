"""Pairs in DP-EBM+: what is asked of the rows, wherever they lie, and what it can reveal."""

import math
from itertools import product

import numpy as np
import pytest

from dprepro.additive.bins import Pair
from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import pairs as stage
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.kernel import UNIT, to_units
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from dprepro.methods.dp_ebm_plus.queries import (
    CodedResiduals,
    Histogram,
    Magnitudes,
    PairResiduals,
    Residuals,
    Start,
    Totals,
    pair_norm,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import listening
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.rows.answer_log import digest
from tests.methods.dp_ebm_plus.pair_table import FEATURES, SPAN, fit, table
from tests.methods.dp_ebm_plus.plain import PlainPairs
from tests.methods.dp_ebm_plus.stub import Events, exact_answers, replay
from tests.methods.dp_ebm_plus.test_booster import BOTH
from tests.methods.dp_ebm_plus.test_curator import BUDGET, curator

PAIR = Pair(0, 1, np.array([0, 1, 1], np.uint8), np.array([0, 1, 2], np.uint8))

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
    asked.open_epochs(0.5, 4, BUDGET)
    query = PairResiduals(1.0, 1.0, PAIR, 1.0, LOGISTIC)
    with pytest.raises(BudgetError, match="no mechanism for PairResiduals"):
        asked.answer(query)
    assert "pairs" not in ledger.entries[-1].releases
    asked, ledger = curator(SQUARED)
    asked.open_epochs(0.5, 4, BUDGET, has_pairs=True)
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
    spent = np.cumsum([query.share for query in rest])
    assert spent[-1] == pytest.approx(loss.epochs, rel=1e-9)
    of_features = CodedResiduals if loss is LOGISTIC else Residuals
    assert {type(query) for query in rest} >= {of_features, PairResiduals}
    for number in range(1, loss.epochs + 1):
        assert np.abs(spent - number).min() < 1e-9


@BOTH
def test_no_row_moves_all_that_an_epoch_with_pairs_asks_by_more_than_one(loss):
    """Parts over what is charged: their squares, times the shares, add up to 1 at most."""
    heard = Events()
    with listening(heard):
        model = fit(loss)
    assert model.pairs_
    X, *_ = table()
    domain = Domain(FEATURES, ("0", "1") if loss is LOGISTIC else SPAN)
    extremes = (0.0, 1.0) if loss is LOGISTIC else SPAN
    rows = [
        ExactAnswers.of(Rows(X.iloc[[i]], np.array([target])), domain, loss)
        for i in range(8)
        for target in extremes
    ]
    spent, moved = 0.0, np.zeros((loss.epochs, len(rows)))
    for query, _, *parts in replay(heard.events, *rows):
        if not isinstance(query, Totals | Histogram):
            norms = np.array([np.linalg.norm(part) for part in parts])
            moved[math.floor(spent + 1e-9)] += query.share * (norms / query.charged) ** 2
            spent += query.share
    assert spent == pytest.approx(loss.epochs)
    assert moved.max() <= 1 + 1e-6
    # What is charged is what rows do move an epoch by. In the first ones residuals are smaller.
    assert (moved.max(axis=1) > 0.3).all()
    assert np.median(moved.max(axis=1)) > 0.99


@BOTH
def test_with_pairs_a_fit_spends_what_it_spends_without(loss):
    with_pairs, without = (fit(loss, pairs=n, random_state=None).ledger_ for n in (3, 0))
    assert with_pairs.holds
    assert with_pairs.spent_epsilon() == pytest.approx(without.spent_epsilon(), rel=1e-12)
    assert [
        (e.mechanism, e.sensitivity, e.uses, e.noise_multiplier) for e in with_pairs.entries
    ] == [(e.mechanism, e.sensitivity, e.uses, e.noise_multiplier) for e in without.entries]


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
    """A fit that was killed goes on with the answers that it had: see `dprepro.rows.answer_log`."""
    groups = np.array([0, 1, 0], np.uint8)
    pairs = [PAIR, Pair(0, 1, groups, PAIR.second_groups), Pair(0, 2, *_groups(PAIR))]
    questions = [PairResiduals(1.0, 1.0, pair, 0.5, SQUARED) for pair in pairs]
    assert len({digest(question) for question in questions}) == 3
    again = PairResiduals(1.0, 1.0, Pair(0, 1, *_groups(PAIR)), 0.5, SQUARED)
    assert digest(again) == digest(questions[0])


def _groups(pair):
    return pair.first_groups.copy(), pair.second_groups.copy()


# --- the same in plain NumPy ----------------------------------------------------------------------


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
    budget = PrivacyBudget(4.0, 1e-6)
    learned = stage.learn_with_pairs(plain, domain, loss, budget, loss.epochs, 3)
    width = 1.0 if loss is LOGISTIC else SPAN[1] - SPAN[0]
    assert len(model.pairs_) == len(learned[4]) > 0
    for term, pair in zip(model.pairs_, learned[4], strict=True):
        shape = pair.pair.shape
        np.testing.assert_allclose(term.values, width * pair.values.reshape(shape), atol=5e-5)
        np.testing.assert_allclose(term.noise, width * pair.deviations.reshape(shape), atol=5e-5)
    for values, function in zip(model.shape_functions_, learned[1], strict=True):
        np.testing.assert_allclose(values, width * function.values, atol=5e-5)
    queries = [q for q in plain.queries if isinstance(q, Magnitudes)]
    assert len(queries) == (0 if loss is LOGISTIC else 32)
