"""Nothing but what was released decides a DP-EBM+: not even how many rows there are.

A table and the same table with one row more are fitted, and the row's own part is taken out of all
answers: every noisy answer is then the same. Whatever still differs was read without a query.
"""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import algorithm, curator
from dprepro.methods.dp_ebm_plus.booster import Booster
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.queries import (
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Residuals,
    Totals,
)
from tests.released import ROWS, published, same, table

ATOL = 0.0
"""Answers are whole numbers: without the row's part they are the same to the last bit."""

FEATURES = (
    NumericFeature("x", 0, 1, missing=True),
    NumericFeature("z", -5, 1000),
    CategoricalFeature("c", ("a", "b", "d")),
)
TARGETS = {"labels": ("0", "1"), "numbers": (-2.0, 4.0)}
PARTS = {
    "totals and histograms": (Totals, CodedHistogram),
    "residuals": (Residuals, CodedResiduals),
    "magnitudes": (Magnitudes,),
}


def cancelling(kinds):
    """Return exact answers that leave out the last row where these kinds of queries are asked."""

    class Cancelling(ExactAnswers):
        @classmethod
        def of(cls, rows, domain, loss):
            made = super().of(rows, domain, loss)
            last = Rows(rows.frame.iloc[-1:].infer_objects(), rows.targets[-1:])
            made.last = ExactAnswers.of(last, domain, loss)
            return made

        def answer(self, query):
            exact, last = super().answer(query), self.last.answer(query)
            if not isinstance(query, kinds):
                return exact
            return replace(exact, numbers=exact.numbers - last.numbers)

        def follow(self, instruction):
            self.last.follow(instruction)
            super().follow(instruction)

    return Cancelling


def pair(kind, seed, monkeypatch, parts=PARTS):
    """Return what is published of the fits without and with the row whose part is cancelled."""
    X, targets = table()
    estimator = DPEBMPlusClassifier if kind == "labels" else DPEBMPlusRegressor
    model = estimator(200.0, n_epochs=6, domain=Domain(FEATURES, TARGETS[kind]), random_state=seed)
    without = published(model.fit(X[:-1], targets[kind][:-1]))
    with monkeypatch.context() as patch:
        kinds = tuple(kind for part in parts for kind in PARTS[part])
        patch.setattr(curator, "ExactAnswers", cancelling(kinds))
        return without, published(model.fit(X, targets[kind]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_with_the_same_answers_a_row_more_gives_the_same_model(kind, seed, monkeypatch):
    one, other = pair(kind, seed, monkeypatch)
    assert same(one, other, atol=ATOL)
    assert len(one["numbers"][2]) > 3
    assert np.abs(one["numbers"][4]).max() > 0.05


@pytest.mark.parametrize(
    ("kind", "left"),
    [*(("numbers", part) for part in PARTS), *(("labels", p) for p in list(PARTS)[:2])],
)
def test_a_row_that_is_not_cancelled_is_noticed(kind, left, monkeypatch):
    parts = [part for part in PARTS if part != left]
    assert not all(same(*pair(kind, seed, monkeypatch, parts), atol=ATOL) for seed in range(6))


def rows_of(asked):
    """Return the exact number of a curator's rows, by breaking in."""
    return sum(p._columns.targets.size for p in asked._exact._Private__value.partitions)


def exact_in_boosting(monkeypatch):
    epoch = algorithm.epoch

    def exact(asked, booster, number):
        booster.start = replace(booster.start, rows=float(rows_of(asked)))
        epoch(asked, booster, number)

    monkeypatch.setattr(algorithm, "epoch", exact)


def exact_in_dividing(monkeypatch):
    divide = algorithm.divide

    def exact(asked, domain, loss, budget, start, *rest, **more):
        start = replace(start, rows=float(rows_of(asked)))
        return divide(asked, domain, loss, budget, start, *rest, **more)

    monkeypatch.setattr(algorithm, "divide", exact)


def exact_in_clipping(monkeypatch):
    epoch, ask = algorithm.epoch, Booster.coded_residuals

    def exact(asked, booster, number):
        part = 0.9 if rows_of(asked) > ROWS else 1.0

        def less(self):
            query = ask(self)
            return replace(query, charged=part * query.charged, bound=part * query.bound)

        with monkeypatch.context() as patch:
            patch.setattr(Booster, "coded_residuals", less)
            epoch(asked, booster, number)

    monkeypatch.setattr(algorithm, "epoch", exact)


@pytest.mark.parametrize("leak", [exact_in_boosting, exact_in_dividing, exact_in_clipping])
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_an_exact_number_of_rows_would_be_noticed(kind, leak, monkeypatch):
    leak(monkeypatch)
    assert not all(same(*pair(kind, seed, monkeypatch), atol=ATOL) for seed in range(6))
