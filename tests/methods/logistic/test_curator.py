"""The curator of logistic regression: rows are handed over once, clipped to what is charged."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from dprepro.estimators.inputs import Arrays
from dprepro.methods.diffprivlib_adapter import LogisticRegression
from dprepro.methods.logistic.curator import LARGEST_NORM, LONG_ROWS, Coefficients, LogisticCurator
from dprepro.methods.logistic.estimator import DPLogisticRegression
from dprepro.privacy.curator_base import listening
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import REPLACE_ONE

FAIR = {"data_norm": 1.0, "fit_intercept": False, "tol": 1e-8, "max_iter": 10_000}


def rows(n=100):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def model(**settings):
    return DPLogisticRegression(**FAIR | settings)


def curator(epsilon=1.0, n=100):
    return LogisticCurator(Private(Arrays(*rows(n))), Ledger(epsilon, 0.0, REPLACE_ONE), None, ())


def test_the_library_fits_with_the_parameters_of_the_query(monkeypatch):
    """Its noise follows from them."""
    handed, fit = [], LogisticRegression.fit

    def noting(self, X, y):
        handed.append((self.epsilon, self.C, self.data_norm, self.fit_intercept))
        return fit(self, X, y)

    monkeypatch.setattr(LogisticRegression, "fit", noting)
    asked = model(epsilon=0.7, C=2.0)
    query = Coefficients.of(asked)
    curator().fit(asked, query)
    assert handed == [(0.7, query.C, query.data_norm, query.fit_intercept)]
    assert (query.epsilon, query.C) == (0.7, 2.0)


@pytest.mark.parametrize("norm", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_an_exchange_moves_the_gradient_by_at_most_what_is_charged(norm, intercept):
    """The gradient of log(1 + exp(-w . z)) is -z / (1 + exp(w . z)), z with the sign of its label.

    Random exchanges, and one that comes close: both rows are judged wrong and nearly opposite.
    """
    charged = Coefficients.of(model(data_norm=norm, fit_intercept=intercept)).charged
    rng = np.random.default_rng(0)
    pairs = [
        (rng.normal(size=(2, 2)), rng.choice([-1, 1], 2), 9 * rng.normal(size=3))
        for _ in range(200)
    ]
    pairs.append((np.array([[-1e-3, 1.0], [1e-3, 1.0]]), np.array([1, -1]), np.array([1e6, 0, 0])))
    moved = []
    for X, signs, w in pairs:
        X = norm * X / np.linalg.norm(X, axis=1, keepdims=True)
        z = signs[:, None] * np.column_stack([X, np.full(2, intercept)])
        gradients = -expit(-(z @ w))[:, None] * z
        moved.append(np.linalg.norm(gradients[0] - gradients[1]))
    assert 0.99 * charged < max(moved) <= charged * (1 + 1e-12)


def test_rows_are_clipped_to_the_norm_that_is_charged():
    X, y = rows()
    length = np.linalg.norm(X, axis=1, keepdims=True)
    found = [
        model(random_state=0).fit(table, y).coef_
        for table in (X / length * np.maximum(length, 1.0), X / length * 1000.0)
    ]
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_a_query_that_charges_less_than_it_enforces_cannot_be_built():
    query = Coefficients.of(model())
    assert query.charged == query.enforced == 2.0
    for cheaper in ({"charged": 1.99}, {"data_norm": 1.01}, {"fit_intercept": True}):
        with pytest.raises(SensitivityError, match="charge at least"):
            replace(query, **cheaper)


@pytest.mark.parametrize(
    "other", [{"epsilon": 2.0}, {"C": 3.0}, {"data_norm": 0.5}, {"data_norm": None}]
)
def test_a_model_of_other_parameters_than_the_query_is_refused(other):
    with pytest.raises(SensitivityError, match="other parameters"):
        curator().fit(model(**other), Coefficients.of(model()))


def test_the_rows_are_handed_over_once():
    made, fitted = curator(), model()
    made.fit(fitted, Coefficients.of(fitted))
    with pytest.raises(BudgetError, match="one use"):
        made.fit(fitted, Coefficients.of(fitted))
    assert len(made._source.ledger.entries) == 1


def test_a_library_that_spends_more_than_the_ledger_states_does_not_get_the_rows():
    rich = model(epsilon=1.5)
    with pytest.raises(BudgetError, match="library's epsilon"):
        curator(epsilon=1.0).fit(rich, Coefficients.of(rich))
    assert not hasattr(rich, "coef_")
    long = model(epsilon=1.5, data_norm=2.0)  # its gap must not cover this, too
    with pytest.raises(BudgetError, match="library's epsilon"):
        curator(epsilon=1.0).fit(long, Coefficients.of(long))


def test_long_rows_are_a_gap_before_the_rows_are_handed_over():
    long = model(data_norm=2.0)
    made = curator()
    made.fit(long, Coefficients.of(long))
    assert made._source.ledger.gaps == [LONG_ROWS]


def test_a_norm_that_is_read_is_listed_and_stays_in_the_curator():
    reading = model(data_norm=None)
    made = curator()
    made.fit(reading, Coefficients.of(reading))
    assert made._source.ledger.unaccounted == [LARGEST_NORM]
    assert reading.data_norm is None
    failing = DPLogisticRegression(data_norm=None)
    with pytest.raises(ValueError, match="2 classes"):
        failing.fit(rows()[0], np.zeros(100, int))
    assert failing.data_norm is None


def test_listeners_hear_the_coefficients():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append(release)

    fitted = model(fit_intercept=True)
    with listening(Listener()):
        made = curator()
    release = made.fit(fitted, Coefficients.of(fitted))
    assert heard == [release]
    np.testing.assert_array_equal(release.value, np.append(fitted.coef_, fitted.intercept_)[None])
    with pytest.raises(TypeError, match="queries only"):
        made._follow(None)
