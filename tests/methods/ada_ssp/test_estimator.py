"""AdaSSP is least squares where noise is small, and stays near the mean where it is large."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.ada_ssp.estimator import AdaSSPRegressor, solve, unpacked

DOMAIN = Domain((NumericFeature("a", 0, 1), NumericFeature("b", -2, 2)), (-20.0, 40.0))


def table(n=4000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(n), "b": rng.uniform(-2, 2, n)})
    return X, 10 + 8 * X["a"].to_numpy() - 5 * X["b"].to_numpy() + rng.normal(size=n)


def error(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


def test_with_a_large_budget_it_is_least_squares():
    X, y = table()
    model = AdaSSPRegressor(epsilon=1000.0, domain=DOMAIN, random_state=0).fit(X, y)
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=0.1)


def test_knots_follow_what_is_not_linear():
    X, y = table()
    curved = y + 6 * np.abs(X["b"].to_numpy())
    line, splines = (
        AdaSSPRegressor(epsilon=20.0, knots=knots, domain=DOMAIN, random_state=0).fit(X, curved)
        for knots in (2, 5)
    )
    assert error(splines, X, curved) < 0.5 * error(line, X, curved)


def test_with_a_small_budget_it_predicts_about_the_mean():
    X, y = table(400)
    errors = [
        error(AdaSSPRegressor(epsilon=0.05, domain=DOMAIN, random_state=s).fit(X, y), X, y)
        for s in range(10)
    ]
    assert np.median(errors) < 2.5 * y.std()


def test_it_spends_its_budget_in_one_release():
    X, y = table(200)
    ledger = AdaSSPRegressor(epsilon=2.0, delta=1e-5, domain=DOMAIN).fit(X, y).ledger_
    assert [entry.uses for entry in ledger.entries] == [1]
    assert ledger.spent_epsilon() == pytest.approx(2.0, abs=1e-6)
    assert ledger.holds


def test_predictions_lie_in_the_range_of_the_target():
    X, y = table(50)
    model = AdaSSPRegressor(epsilon=0.01, strength=0.0, domain=DOMAIN, random_state=3).fit(X, y)
    predicted = model.predict(X)
    assert predicted.min() >= -20
    assert predicted.max() <= 40


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_what_is_inverted_has_eigenvalues_above_the_penalty(strength):
    """However indefinite the noisy matrix is, coefficients stay bounded by strength and noise."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 5.0, (6, 6))
    gram, products = noise + noise.T, rng.normal(0, 5.0, 6)
    products[-1] = 0.0
    found = solve(gram, products, 5.0, strength, 0.5)
    least = strength * 5.0 * np.sqrt(6 * np.log(72 / 0.05))
    assert np.linalg.norm(found) <= np.linalg.norm(products) / least * (1 + 1e-9)


def test_the_moments_are_unpacked_symmetrically():
    gram, products = unpacked(np.array([1.0, 2.0, 3.0, 0.7, 1.4]), 2)
    np.testing.assert_array_equal(gram, [[1, 2], [2, 3]])
    np.testing.assert_allclose(products, [1.0, 2.0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"knots": 1}, "knots"), ({"strength": -1.0}, "strength"), ({"epsilon": 0.0}, "epsilon")],
)
def test_parameters_out_of_range_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        AdaSSPRegressor(domain=DOMAIN, **parameters).fit(*table(20))
