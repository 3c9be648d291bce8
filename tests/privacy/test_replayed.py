"""A model follows from releases alone: the fit of a neighbour, given the same answers, is equal."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier
from dprepro.methods.dpboost.curator import DPBoostCurator
from dprepro.methods.lazybb.curator import ExactCurator
from dprepro.privacy.private_rows import Private
from dprepro.privacy.sensitivity import ADD_REMOVE
from tests.privacy.answers import Answers, overhearing
from tests.privacy.contents import contents
from tests.privacy.curators import FITS, Fit, exchanged, table

NOT_RELEASED = {
    # The ledgers list bin edges, ranks, a delta by the number of rows, features of the student's
    # rows, diagnostics, quantiles and counts.
    "dpboost, as published": ("bins_",),
    "dp-bag": ("student_",),
    "lazybb, trees": ("edges_", "margins_"),
    "dp-random-boosting, as published": ("_ranks", "trees_", "ledger_"),
    "toy-dp-ebm": ("bins_", "shapes_"),
    "toy-dp-ebm, regression": ("bins_", "shapes_"),
    # A library writes what it releases into the model, where no answer can be put in its place.
    "dp-forest": ("estimators_",),
    "dp-logistic": ("coef_", "intercept_"),
}
"""Attributes of models that depend on rows otherwise than by answers, and why they may."""

LIBRARYS_ACCOUNTANT = "BudgetAccountant"
"""diffprivlib's own counts all fits of the process, so each fit finds another."""

PRIVATE = [name for name, fit in FITS.items() if fit.curator is not ExactCurator]
COUNTED = [
    n
    for n in PRIVATE
    if n.startswith(("dp-ebm-plus", "dp-random-boosting", "dp-sgd-mlp", "mst", "held out"))
    or n in ("dpboost, sound", "ada-ssp", "dp-gd-logistic")
]
"""Fits whose number of rows is private."""


def model_of(
    fit: Fit, rows: tuple[pd.DataFrame, np.ndarray], heard: Any, name: str
) -> dict[str, Hashable]:
    """Return what can be reached from the model of a fit, whose answers are given to `heard`."""
    with overhearing(heard):
        found = contents(vars(fit.fit(*rows)))
    left_out = tuple(f"[{attribute!r}]" for attribute in NOT_RELEASED.get(name, ()))
    return {
        path: value
        for path, value in found.items()
        if not path.startswith(left_out) and LIBRARYS_ACCOUNTANT not in path
    }


def differences(name: str, other: tuple[pd.DataFrame, np.ndarray]) -> set[str]:
    """Return where the model differs from that of other rows with the same answers."""
    answers = Answers()
    one = model_of(FITS[name], table(), answers.keep, name)
    assert answers.kept
    two = model_of(FITS[name], other, answers.put, name)
    assert not answers.kept
    return {path for path in one.keys() | two.keys() if one.get(path) != two.get(path)}


@pytest.mark.parametrize("name", PRIVATE)
def test_an_exchanged_row_shows_in_answers_only(name: str) -> None:
    assert differences(name, exchanged(*table())) == set()


@pytest.mark.parametrize("name", COUNTED)
def test_a_row_less_shows_in_answers_only(name: str) -> None:
    X, y = table()
    assert differences(name, (X[:-1], y[:-1])) == set()


def test_those_whose_number_of_rows_is_private_are_looked_at() -> None:
    relations = {name: FITS[name].fit(*table()).ledger_.adjacency for name in PRIVATE}
    assert [name for name in PRIVATE if relations[name] is ADD_REMOVE] == COUNTED


@pytest.mark.parametrize("name", NOT_RELEASED)
def test_what_is_left_out_does_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(NOT_RELEASED, name)
    # Of DP-Bag, some rows teach only, and are not among the student's.
    assert any(differences(name, exchanged(*table(), place)) for place in range(8))


def test_a_planted_read_of_the_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    train = DPEBMPlusClassifier._train

    def peeking(model: Any, rows: Private[Any], *rest: Any) -> Any:
        model.mean_ = rows._Private__value.targets.mean()  # type: ignore[attr-defined]
        return train(model, rows, *rest)

    monkeypatch.setattr(DPEBMPlusClassifier, "_train", peeking)
    found = differences("dp-ebm-plus, classification", exchanged(*table()))
    assert found == {"['mean_']"}


def test_a_planted_exact_number_from_a_curator_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = DPBoostCurator.__init__

    def telling(made: Any, private: Private[Any], *rest: Any) -> None:
        begin(made, private, *rest)
        made.bins = [*made.bins, len(private._Private__value.targets)]  # type: ignore[attr-defined]

    monkeypatch.setattr(DPBoostCurator, "__init__", telling)
    X, y = table()
    assert "['bins_'][3]" in differences("dpboost, sound", (X[:-1], y[:-1]))
