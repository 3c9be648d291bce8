"""A ledger whose guarantee is about units that own several rows each."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from dprepro.data.dataset import bounding_key, kept_rows
from dprepro.privacy import ledger as ledger_module
from dprepro.privacy.budget import Division, PrivacyBudget, row_budget, unit_in_words, whose_epsilon
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from tests.privacy.entries import cited, dp_ebm_ledger, gaussian, laplace, ledger


def per_unit(made, rows, unit="patient"):
    return replace(made, unit=unit, rows_per_unit=rows)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_gaussians_of_a_unit_are_those_of_a_row_with_so_many_times_its_mu(rows):
    made = per_unit(ledger(gaussian(141.69, 14), gaussian(312.1, 4200)), rows)
    mu = math.sqrt(14 / 141.69**2 + 4200 / 312.1**2)
    assert made.spent_epsilon() == pytest.approx(epsilon_of(rows * mu, 1e-6), abs=1e-6)
    # One row that goes lets another of its unit in: two moves, as no better exchange is known.
    assert made.spent_epsilon_of_row() == pytest.approx(epsilon_of(2 * mu, 1e-6), abs=1e-6)


def test_a_row_that_goes_lets_another_one_train_in_its_place():
    """So two tables that differ in one row lead to training rows that differ in an exchange."""
    X, y = pd.DataFrame({"x": [1.0, 2.0, 3.0]}), np.array([0, 1, 0])
    units, key = np.array(["a", "a", "b"], dtype=object), bounding_key(0)
    kept = kept_rows(X, y, units, 1, key)
    rest = np.setdiff1d(np.arange(3), kept[:1])
    without = rest[kept_rows(X.iloc[rest], y[rest], units[rest], 1, key)]
    assert len(set(kept) ^ set(without)) == 2

    known = replace(laplace(10.0), replace_one=1.5)
    counted = replace(laplace(10.0), replace_one=0.0)  # an exchange changes no number of rows
    assert ledger(known, delta=0.0).spent_epsilon_of_row() == pytest.approx(0.1)
    for rows in (1, 3):
        made = per_unit(ledger(known, counted, delta=0.0), rows)
        assert made.spent_epsilon_of_row() == pytest.approx(0.15 + 0.1)
    exchanges = Ledger(1.0, 0.0, REPLACE_ONE, [laplace(10.0)], unit="patient")
    assert exchanges.spent_epsilon_of_row() == pytest.approx(0.1)


def test_mixed_releases_agree_with_googles_own_composition_of_larger_sensitivities():
    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(20.0 / 3), 10))
    accountant.compose(SelfComposedDpEvent(LaplaceDpEvent(30.0 / 3), 5))
    made = per_unit(ledger(gaussian(20.0, 10), laplace(30.0, 5)), 3)
    assert made.spent_epsilon() == pytest.approx(accountant.get_epsilon(1e-6), abs=1e-3)


def test_pure_releases_cost_a_unit_so_many_times_as_much():
    made = per_unit(ledger(laplace(10.0, 3), cited(0.1), delta=0.0), 4)
    assert made.spent_epsilon() == pytest.approx(2 * made.spent_epsilon_of_row())


def test_the_stated_epsilon_is_that_of_the_unit():
    """It breaks, and the curator would refuse it, where rows alone would keep it."""
    rows = dp_ebm_ledger("joint", 1.0)
    assert rows.holds
    units = per_unit(rows, 2)
    assert units.spent_epsilon() == units.spent_epsilon() > 2.0
    assert units.spent_epsilon_of_row() == rows.spent_epsilon(REPLACE_ONE)
    assert rows.spent_epsilon() <= 1 + 1e-6
    assert [units.holds, units.within_budget, units.is_calibrated] == [False] * 3


def test_a_unit_is_exchanged_by_exchanges_of_its_rows():
    entry = replace(laplace(10.0), replace_one=1.5)
    made = per_unit(ledger(entry, delta=0.0), 2)
    assert made.spent_epsilon(REPLACE_ONE) == pytest.approx(2 * 0.15)


def test_what_the_samplers_take_off_delta_is_counted_at_the_epsilon_of_the_unit():
    """At 280 nothing is proved any more of what is drawn, at 140 all is."""
    made = ledger(laplace(1 / 140), epsilon=140.0, delta=0.0)
    assert made.holds
    made.state_per_unit("patient", 2, PrivacyBudget(280.0, 0.0))
    assert made.within_budget
    assert [made.samplers_suffice, made.holds] == [False, False]


def test_what_the_samplers_add_is_taken_off_the_delta_of_the_unit(monkeypatch):
    """With a distance that is large enough to be seen; it is that of all draws together."""
    made = per_unit(ledger(gaussian(8.0), epsilon=2.0), 2)
    ideal = made.spent_epsilon()
    monkeypatch.setattr(ledger_module, "SAMPLING_DISTANCE", 2e-7)
    spent = made.spent_epsilon()
    left = 1e-6 - (1 + math.exp(spent)) * 2e-7
    assert spent == pytest.approx(epsilon_of(2 / 8, left), abs=1e-4)
    assert spent > ideal + 0.01


def test_a_ledger_of_rows_is_restated_for_units_and_names_both():
    made = dp_ebm_ledger("joint", 1.0)
    before = made.summary()
    made.state_per_unit("patient", 2, (2.5, 1e-6))
    assert (made.epsilon, made.unit, made.rows_per_unit, made.holds) == (2.5, "patient", 2, True)
    summary = json.loads(json.dumps(made.summary(), allow_nan=False))
    assert (summary["unit"], summary["rows_per_unit"]) == ("patient", 2)
    assert summary["row_epsilon"] == before["replace_one_epsilon"]
    assert summary["true_epsilon"] == pytest.approx(made.spent_epsilon(), abs=1e-6)
    assert not {"unit", "rows_per_unit", "row_epsilon"} & set(before)


def test_no_promise_is_restated_where_nothing_is_known_of_several_rows():
    exchanged = Ledger(1.0, 0.0, REPLACE_ONE, [laplace(10.0)])
    sampled = Ledger(1.0, 1e-6, ADD_REMOVE, [replace(gaussian(8.0), sampling=0.1)])
    for made in (exchanged, sampled):
        before = replace(made)
        with pytest.raises(ValueError, match="one row for each unit"):
            made.state_per_unit("patient", 2, (5.0, 1e-6))
        assert made == before
        with pytest.raises(ValueError, match="one row for each unit"):
            per_unit(made, 2)
        made.state_per_unit("patient", 1, (5.0, 1e-6))
        assert made.unit == "patient"


@pytest.mark.parametrize(
    ("unit", "rows", "said"),
    [("row", 2, "a row is 1 row"), ("", 1, "name a column"), ("patient", 0, "from 1 to")],
)
def test_an_impossible_unit_is_refused(unit, rows, said):
    with pytest.raises(ValueError, match=said):
        Ledger(1.0, 0.0, ZERO_OUT, unit=unit, rows_per_unit=rows)


@pytest.mark.parametrize(("epsilon", "rows"), [(0.1, 100), (1.0, 5), (8.0, 2)])
def test_the_budget_of_a_row_leads_back_to_that_of_a_unit(epsilon, rows):
    """A ledger of exactly the row's budget spends the unit's, and next to nothing less."""
    stated = PrivacyBudget(epsilon, 1e-6)
    of_row = row_budget(stated, rows, Division.GAUSSIAN)
    made = ledger(gaussian(1 / mu_of(*of_row)), epsilon=of_row.epsilon)
    assert made.holds
    made.state_per_unit("patient", rows, stated)
    assert made.holds
    assert made.spent_epsilon() == pytest.approx(epsilon, rel=1e-5)
    exchanged = epsilon_of(2 * mu_of(*of_row), 1e-6)
    assert made.spent_epsilon_of_row() == pytest.approx(exchanged, rel=1e-5)
    assert of_row.epsilon < epsilon / rows  # epsilon falls faster than mu

    black_box = row_budget(stated, rows, Division.GROUP)
    made = ledger(cited(*black_box), epsilon=black_box.epsilon, delta=black_box.delta)
    made.state_per_unit("patient", rows, stated)
    assert made.holds
    assert made.spent_epsilon() == pytest.approx(epsilon, rel=1e-3)
    assert black_box.delta < of_row.delta

    pure = row_budget(PrivacyBudget(epsilon, 0.0), rows, Division.GROUP)
    assert pure == (epsilon / rows, 0.0)


def test_a_row_of_one_keeps_the_budget_and_no_privacy_is_not_divided():
    stated = PrivacyBudget(1.0, 1e-6)
    assert all(row_budget(stated, 1, division) is stated for division in Division)
    nothing = PrivacyBudget(math.inf, 0.0)
    assert row_budget(nothing, 5, Division.NONE) is nothing


def test_a_budget_that_cannot_be_divided_is_refused():
    with pytest.raises(ValueError, match="samples rows one by one"):
        row_budget(PrivacyBudget(1.0, 1e-6), 2, Division.NONE)
    for division, stated in ((Division.GAUSSIAN, (1e-3, 1e-2)), (Division.GROUP, (900.0, 1e-6))):
        with pytest.raises(ValueError, match="leaves nothing for one row"):
            row_budget(PrivacyBudget(*stated), 10**5, division)


def test_a_unit_in_words():
    assert unit_in_words("row", 1) == "row"
    assert unit_in_words("patient", 1) == "patient with at most 1 row"


@pytest.mark.parametrize(
    ("units", "said"),
    [
        ([], ""),
        ([("row", 1)], ""),
        ([("patient", 1)], "Epsilon is per patient with at most 1 row."),
        ([("patient", 2), ("patient", 2)], "Epsilon is per patient with at most 2 rows."),
        (
            [("patient", 1), ("row", 1)],
            "Epsilon is per patient with at most 1 row, or per row: the label says which.",
        ),
        (
            [("patient", 1), ("patient", 2)],
            "Epsilon is per patient with at most 1 or 2 rows: the label says which.",
        ),
        (
            [("patient", 5), ("patient", 1), ("patient", 2), ("row", 1)],
            "Epsilon is per patient with at most 1, 2 or 5 rows, or per row: the label says which.",
        ),
    ],
)
def test_a_sentence_says_whose_epsilon_it_is(units, said):
    assert whose_epsilon(units) == said
