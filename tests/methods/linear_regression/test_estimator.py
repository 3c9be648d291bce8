"""Fair linear regression: the library's flaws are avoided, and the noisy release is solved."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from dprepro.data.domain import Domain
from dprepro.methods.diffprivlib_adapter import linear_regression as library
from tests.methods.linear_regression.lab import BOUNDS, DOMAIN, build, rows, scaled


def test_the_library_leaves_the_diagonal_bare_on_bounds_from_zero():
    """Its issues 104 and 105. When this fails, they are mended, and the recipe can be relaxed."""
    X = np.random.default_rng(0).random((200, 2))
    model = library.LinearRegression(
        epsilon=0.1, bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False, random_state=0
    ).fit(X, X[:, 0])
    released = model._obj_coefs[2]
    np.testing.assert_allclose(np.diag(released), (X**2).sum(axis=0), atol=1e-9)
    assert abs(released[0, 1] - X[:, 0] @ X[:, 1]) > 1


def test_with_a_huge_budget_all_three_are_least_squares():
    X, y = rows()
    expected = LinearRegression().fit(X, y).predict(X)
    for name, epsilon in (("dp-linear-fair", 1e9), ("linear-fair", np.inf), ("linear", np.inf)):
        model = build(name, epsilon, seed=0).fit(X, y)
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)


def test_less_budget_means_larger_errors():
    X, y = rows()
    truth = X @ [3.0, -2.0, 19.0]

    def error(epsilon):
        fits = (build("dp-linear-fair", epsilon, seed=s).fit(X, y) for s in range(10))
        return np.mean([np.abs(model.predict(X) - truth).mean() for model in fits])

    assert error(0.05) > 2 * error(1.0) > 2 * error(50.0)


@pytest.mark.parametrize("name", ["dp-linear-fair", "linear-fair"])
def test_predictions_stay_within_the_targets_bounds(name):
    X, y = rows()
    X[:, 0] *= 100
    model = build(name, epsilon=0.01, seed=3).fit(X, y * 2)
    predicted = model.predict(np.array([[1e6, 1e6, 1], [-1e6, -1e6, 1]]))
    assert BOUNDS[0] <= predicted.min() <= predicted.max() <= BOUNDS[1]


def test_rows_outside_the_bounds_move_no_release_further_than_those_on_them():
    """The library clips only when it centres, so the clipping is ours."""
    X, y = rows(300)
    wild, tame = X.copy(), X.copy()
    wild[0], tame[0] = [1e9, -1e9, 1], [1, -1, 1]
    wild_y, tame_y = y.copy(), y.copy()
    wild_y[0], tame_y[0] = 1e9, BOUNDS[1]
    fits = [build("dp-linear-fair", seed=0).fit(*pair) for pair in ((wild, wild_y), (tame, tame_y))]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_an_observed_domain_or_a_seed_breaks_the_promise():
    X, y = rows(300)
    observed = Domain(DOMAIN.features, BOUNDS, observed=("range of the target",))
    assert (
        "range of the target"
        in build("dp-linear-fair", domain=observed).fit(X, y).ledger_.unaccounted
    )
    assert not build("dp-linear-fair", seed=0).fit(X, y).ledger_.holds


@pytest.mark.parametrize("epsilon", [0, -1.0, np.inf, np.nan])
def test_an_impossible_budget_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        build("dp-linear-fair", epsilon).fit(*rows(50))


def test_target_bounds_that_coincide_are_refused():
    with pytest.raises(ValueError, match="lower < upper, and they coincide"):
        build("linear-fair", domain=Domain(DOMAIN.features, (1.0, 1.0))).fit(*rows(50))


def test_the_librarys_own_descent_has_no_minimum_to_find():
    """Why the release is solved here: the noisy X'X is indefinite, and the descent runs away."""
    X, y = rows(200)
    model = library.LinearRegression(
        epsilon=0.2, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False, random_state=0
    )
    model.fit(X, scaled(y))
    assert np.linalg.eigvalsh(model._obj_coefs[2]).min() < 0
    assert np.abs(model.coef_).max() > 1e3
    assert np.abs(build("dp-linear-fair", 0.2, seed=0).fit(X, y).coef_).max() < 10
