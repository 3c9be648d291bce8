"""The Wishart regression does what its source did, and is no more private than that was."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from dprepro.data.dataset import load
from dprepro.data.domain import Domain
from dprepro.data.encode import ENCODINGS
from dprepro.experiment.splits import split_rows
from dprepro.methods.entry import Setting
from dprepro.methods.registry import get
from dprepro.methods.wishart_regression.curator import GAPS
from dprepro.methods.wishart_regression.estimator import WishartLinearRegression
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import REPLACE_ONE


def rows(n=2000, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(5, 1, (n, columns))
    return X, X @ np.arange(1, columns + 1) + 7 + rng.normal(size=n)


def draws(size, scale, count):
    noise = NoiseSource(Ledger(1.0, 0.0, REPLACE_ONE), 0)
    return np.array(
        [
            noise.wishart(size, releases="", scale=scale, sensitivity=1, budget=(1, 0))
            for _ in range(count)
        ]
    )


def test_with_a_huge_budget_it_is_least_squares():
    X, y = rows()
    model = WishartLinearRegression(epsilon=1e9, random_state=0).fit(X, y)
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=1e-6)


def test_the_draws_have_the_wishart_distribution():
    found = draws(size=3, scale=0.5, count=4000)
    expected = stats.wishart(df=4, scale=0.25 * np.eye(3))
    np.testing.assert_allclose(found.mean(axis=0), expected.mean(), atol=0.05)
    np.testing.assert_allclose(found.var(axis=0), expected.var(), rtol=0.25)
    assert np.linalg.eigvalsh(found).min() > 0


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_a_neighbour_is_ruled_out_for_certain_as_often_as_the_docstring_says(epsilon):
    """Noise that keeps pure DP would never leave a release impossible under a neighbour."""
    row = np.array([1.0, 0.0, 0.0])
    scale = 1 / (2 * epsilon)
    found = draws(size=3, scale=scale, count=4000)
    # M = A + W, against a neighbour with moments A + xx': impossible if W - xx' is not positive.
    ruled_out = np.linalg.eigvalsh(found - np.outer(row, row)).min(axis=1) < 0
    expected = 1 - np.exp(-1 / (2 * scale**2))
    assert expected > 0.39
    assert stats.binomtest(int(ruled_out.sum()), 4000, expected).pvalue > 1e-4


def test_the_ledger_names_every_hole():
    X, y = rows()
    ledger = WishartLinearRegression(epsilon=1.0).fit(X, y).ledger_
    assert ledger.gaps == list(GAPS)
    assert ledger.unaccounted == ["bounds of all columns and of the target", "largest row norm"]
    assert not ledger.holds


def test_the_means_and_the_moments_together_overspend():
    X, y = rows(columns=3)
    ledger = WishartLinearRegression(epsilon=1.0).fit(X, y).ledger_
    means, moments = ledger.entries
    assert means.budget == (pytest.approx(1.0), 0.0)
    assert moments.budget == (pytest.approx(0.75), 0.0)
    assert ledger.spent_epsilon() == pytest.approx(1.75)


@pytest.mark.parametrize("epsilon", [0, -1, np.inf, np.nan])
def test_an_impossible_budget_is_refused(epsilon):
    with pytest.raises(ValueError, match="positive and finite"):
        WishartLinearRegression(epsilon=epsilon).fit(*rows(50))


def test_a_constant_column_leaves_the_predictions_alone():
    """Its mean is exact, for its bounds coincide; its coefficient is noise that is never used."""
    X, y = rows()
    constant = np.column_stack([X, np.full(len(X), 3.0)])
    model = WishartLinearRegression(epsilon=1e9, random_state=0).fit(constant, y)
    expected = LinearRegression().fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(constant), expected, rtol=1e-5)


@pytest.mark.parametrize(("epsilon", "published", "sd"), [(0.5, 111_967, 1080), (8, 107_815, 1460)])
def test_it_reaches_the_published_rmse_on_cal_housing(data_dir, epsilon, published, sd):
    table = load("cal-housing", data_dir)
    domain = Domain.observe(table.X, table.y, "regression")
    X = ENCODINGS["one-hot"](domain).transform(table.X)
    train, test = split_rows(len(table.y), 0.2, 1, "cal-housing", 0)
    model = get("dp-linear").build(Setting("regression", epsilon, 0.0, domain, 0))
    error = model.fit(X[train], table.y[train]).predict(X[test]) - table.y[test]
    assert np.sqrt(np.mean(error**2)) == pytest.approx(published, abs=3 * sd)
