"""Logistic regression: what is read without paying is named, and the fair recipe is kept."""

import math
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.diffprivlib_adapter import Vector
from dprepro.methods.diffprivlib_adapter import logistic_regression as library
from dprepro.methods.entry import Setting
from dprepro.methods.logistic.curator import ObjectivePerturbation
from dprepro.methods.logistic.estimator import DPLogisticRegression
from dprepro.methods.registry import get

DOMAIN = Domain((NumericFeature("x", 0, 1),), ("0", "1"))


def rows(n=500, norm=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= norm / np.linalg.norm(X, axis=1).max()
    return X, (X[:, 0] > 0).astype(int)


def build(name, epsilon=1.0, seed=None, **params):
    return get(name).build(Setting("binary", epsilon, 0.0, DOMAIN, seed), **params)


def test_the_fair_recipe_keeps_the_librarys_promise():
    X, y = rows()
    model = build("dp-logistic-fair").fit(X, y)
    assert (model.data_norm, model.fit_intercept) == (1.0, False)
    assert model.ledger_.unaccounted == []
    assert model.ledger_.gaps == []
    assert model.ledger_.holds


def test_the_published_settings_read_the_norm_and_break_the_promise():
    X, y = rows(norm=50.0)
    ledger = build("dp-logistic").fit(X, y).ledger_
    assert "largest row norm" in ledger.unaccounted
    assert "row norm bound above 1" in ledger.gaps[0]
    assert not ledger.holds


@pytest.mark.parametrize(
    "arguments", [{"data_norm": 2.0, "fit_intercept": False}, {"data_norm": 1.0}]
)
def test_a_norm_above_one_or_an_intercept_is_a_gap(arguments):
    X, y = rows()
    ledger = DPLogisticRegression(max_iter=1000, tol=1e-8, **arguments).fit(X, y).ledger_
    assert "row norm bound above 1" in ledger.gaps[0]
    norm = math.hypot(arguments["data_norm"], arguments.get("fit_intercept", True))
    assert ledger.spent_epsilon() == ObjectivePerturbation(1.0, 1.0, norm).proved_epsilon > 1.05
    assert not ledger.within_budget


def test_a_norm_that_was_read_stays_unpaid_and_untold_in_every_fit():
    model = DPLogisticRegression(random_state=0)
    ledgers = [model.fit(*rows(norm=norm)).ledger_ for norm in (5.0, 50.0, 50.0)]
    assert ledgers[0] == ledgers[1] == ledgers[2]
    assert "largest row norm" in ledgers[2].unaccounted


class Spy(Vector):
    """The library's mechanism, with what it was last given."""

    given: ClassVar[dict] = {}

    def __init__(self, **arguments):
        Spy.given = arguments
        super().__init__(**arguments)


@pytest.mark.parametrize(("epsilon", "C"), [(1.0, 1.0), (1.0, 0.1), (0.2, 5.0)])
def test_the_ledger_states_the_noise_that_the_library_draws(epsilon, C, monkeypatch):
    """Norm 1 pays in full: gradients of the loss shift by 2 at most, curvatures are 1/4 at most."""
    monkeypatch.setattr(library, "Vector", Spy)
    X, y = rows()
    entry = build("dp-logistic-fair", epsilon, C=C).fit(X, y).ledger_.entries[0]
    drawn = Spy.given
    assert (drawn["function_sensitivity"], drawn["data_sensitivity"]) == (0.25, 1.0)
    assert (drawn["alpha"], drawn["n"], drawn["epsilon"]) == (1 / C, len(X), epsilon)
    mechanism = ObjectivePerturbation(epsilon, 1 / C)
    assert (entry.sensitivity, entry.scale) == (2.0, mechanism.scale)
    assert entry.budget == pytest.approx((epsilon, 0.0))


@pytest.mark.parametrize("norm", [1.0, 100.0])
def test_two_rows_tell_whether_the_norm_was_paid_for(norm, monkeypatch):
    """The exact loss between two tables that differ in one row, at coefficients the fits gave."""
    tables = [np.array([[norm], [0.0]]), np.array([[0.0], [0.0]])]
    y, settings = np.array([1, 0]), {"C": 0.01, "fit_intercept": False, "tol": 1e-8}
    signed = [np.where(y == 1, 1.0, -1.0)[:, None] * table for table in tables]
    mechanism = ObjectivePerturbation(1.0, 100.0, norm)
    losses = []
    for seed in range(200):
        model = DPLogisticRegression(data_norm=norm, max_iter=1000, random_state=seed, **settings)
        w = model.fit(tables[seed % 2], y).coef_[0]
        one, other = (mechanism.log_density(w, rows, np.ones(2)) for rows in signed)
        losses.append(abs(one - other))
    assert (max(losses) > 2.5) == (norm > 1)
    assert max(losses) <= model.ledger_.spent_epsilon() + 1e-9


def test_stopping_before_the_optimum_is_a_gap():
    X, y = rows()
    model = DPLogisticRegression(
        data_norm=1.0, fit_intercept=False, max_iter=1, tol=1e-12, random_state=0
    ).fit(X, y)
    assert any("before the optimum" in gap for gap in model.ledger_.gaps)


def test_with_a_huge_budget_the_private_model_is_the_plain_one():
    X, y = rows()
    private = build("dp-logistic-fair", epsilon=1e9, seed=0).fit(X, y)
    plain = build("logistic-fair", epsilon=math.inf, seed=0).fit(X, y)
    np.testing.assert_allclose(private.coef_, plain.coef_, rtol=1e-3)


def test_the_fair_models_minimise_the_penalised_loss():
    X, y = rows()

    def objective(w):
        margins = (2 * y - 1) * (X @ w)
        return -np.log(expit(margins)).sum() + w @ w / 2

    best = minimize(objective, np.zeros(3), tol=1e-10).x
    np.testing.assert_allclose(build("logistic-fair").fit(X, y).coef_[0], best, atol=1e-3)


def test_less_budget_means_noisier_coefficients():
    X, y = rows()

    def spread(epsilon):
        fits = (build("dp-logistic-fair", epsilon, seed=s).fit(X, y) for s in range(15))
        return np.std([model.coef_[0] for model in fits], axis=0).mean()

    assert spread(0.5) > 3 * spread(8.0)


def test_standardized_columns_make_the_unit_of_a_column_irrelevant():
    X, y = rows()
    model = build("logistic-standardized").fit(X, y)
    stretched = X * [1.0, 1e4, 1e-4] + [0, 7, -7]
    other = build("logistic-standardized").fit(stretched, y)
    np.testing.assert_allclose(
        other.predict_proba(stretched), model.predict_proba(X), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)
