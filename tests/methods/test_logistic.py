"""Logistic regression: what is read without paying is named, and the fair recipe is kept."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.logistic import DPLogisticRegression
from dprepro.methods.registry import Setting, get

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
    assert model.ledger_.unpaid == []
    assert model.ledger_.gaps == []
    assert model.ledger_.holds


def test_the_published_settings_read_the_norm_and_break_the_promise():
    X, y = rows(norm=50.0)
    ledger = build("dp-logistic").fit(X, y).ledger_
    assert "largest row norm" in ledger.unpaid
    assert "row norm bound above 1" in ledger.gaps[0]
    assert not ledger.holds


@pytest.mark.parametrize(
    "arguments", [{"data_norm": 2.0, "fit_intercept": False}, {"data_norm": 1.0}]
)
def test_a_norm_above_one_or_an_intercept_is_a_gap(arguments):
    X, y = rows()
    model = DPLogisticRegression(max_iter=1000, tol=1e-8, **arguments).fit(X, y)
    assert model.ledger_.gaps


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
