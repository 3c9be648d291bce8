"""Nothing but what was released decides a DP-EBM+: not even how many rows there are.

A table and the same table with one row more are fitted, and the row's own part is taken out of all
answers: every noisy answer is then the same. Whatever still differs was read without a query.
"""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm_plus import algorithm, curator, losses
from dprepro.methods.dp_ebm_plus.curator import ExactAnswers
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.grid import _COARSEST
from dprepro.methods.dp_ebm_plus.queries import (
    CodedResiduals,
    Histogram,
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
    "totals and histograms": (Totals, Histogram),
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


def pair(kind, seed, monkeypatch, parts=PARTS, rows=ROWS):
    """Return what is published of the fits without and with the row whose part is cancelled."""
    X, targets = table(rows)
    estimator = DPEBMPlusClassifier if kind == "labels" else DPEBMPlusRegressor
    model = estimator(200.0, n_epochs=6, domain=Domain(FEATURES, TARGETS[kind]), random_state=seed)
    without = published(model.fit(X[:-1], targets[kind][:-1]))
    with monkeypatch.context() as patch:
        kinds = tuple(kind for part in parts for kind in PARTS[part])
        patch.setattr(curator, "ExactAnswers", cancelling(kinds))
        return without, published(model.fit(X, targets[kind]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_with_the_same_answers_a_row_more_gives_the_same_model(kind, coarse, seed, monkeypatch):
    monkeypatch.setattr(algorithm, "is_low_signal", lambda *_: coarse)
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
        booster.rows = float(rows_of(asked))
        booster.intercept.counts[:] = booster.rows
        epoch(asked, booster, number)

    monkeypatch.setattr(algorithm, "epoch", exact)


def exact_in_merging(monkeypatch):
    merge = algorithm.merge

    def exact(asked, domain, histograms, rows, **rule):
        return merge(asked, domain, histograms, float(rows_of(asked)), **rule)

    monkeypatch.setattr(algorithm, "merge", exact)
    monkeypatch.setattr(algorithm, "is_low_signal", lambda *_: False)


def exact_in_dividing(monkeypatch):
    divide = algorithm.divide

    def exact(asked, domain, histograms, rows):
        return divide(asked, domain, histograms, float(rows_of(asked)))

    monkeypatch.setattr(algorithm, "divide", exact)
    monkeypatch.setattr(algorithm, "is_low_signal", lambda *_: True)


def exact_in_fewest(monkeypatch):
    merge = algorithm.merge

    def exact(asked, *rest, seen, fewest):
        return merge(asked, *rest, seen=seen, fewest=fewest * rows_of(asked) / MANY)

    monkeypatch.setattr(algorithm, "merge", exact)


def exact_in_clipping(monkeypatch):
    step, step_all = algorithm.step, algorithm.step_all

    def exact(asked, booster, function, *rest):
        if function is booster.intercept and rows_of(asked) > ROWS:
            booster.bound *= 0.9
        step(asked, booster, function, *rest)

    def exact_for_all(asked, booster, *rest):
        if rows_of(asked) > ROWS:
            booster.bound *= 0.9
        step_all(asked, booster, *rest)

    monkeypatch.setattr(algorithm, "step", exact)
    monkeypatch.setattr(algorithm, "step_all", exact_for_all)


@pytest.mark.parametrize(
    ("kind", "leak"),
    [
        ("labels", exact_in_boosting),
        ("numbers", exact_in_boosting),
        ("labels", exact_in_merging),
        ("numbers", exact_in_merging),
        ("labels", exact_in_dividing),
        ("numbers", exact_in_dividing),
        ("labels", exact_in_clipping),
        ("numbers", exact_in_clipping),
    ],
)
def test_an_exact_number_of_rows_would_be_noticed(kind, leak, monkeypatch):
    leak(monkeypatch)
    assert not all(same(*pair(kind, seed, monkeypatch), atol=ATOL) for seed in range(6))


MANY = round(12.5 * _COARSEST)
"""So many that a bin which is closed whatever the noise holds more rows than a bin is to hold."""


@pytest.mark.parametrize("leak", [None, exact_in_fewest])
def test_nor_does_the_number_of_rows_decide_how_many_a_bin_holds(leak, monkeypatch):
    """Of few rows bins are closed before they hold as many, and that number hides."""
    monkeypatch.setattr(losses, "_EXPECTED", 4.0)
    if leak:
        leak(monkeypatch)
    agree = [same(*pair("labels", seed, monkeypatch, rows=MANY), atol=ATOL) for seed in range(20)]
    assert all(agree) == (leak is None)
