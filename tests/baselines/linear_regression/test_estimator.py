"""Fair linear regression: all is noised as the ledger says, and the library's flaw is avoided."""

import itertools

import diffprivlib.models.linear_regression as library
import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from dprepro.baselines.linear_regression import DPLinearRegression, trim_and_solve
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.registry import Setting, get

BOUNDS = (10.0, 30.0)
DOMAIN = Domain((NumericFeature("a", -1, 1), NumericFeature("b", -1, 1)), BOUNDS)
COLUMNS = 3


def rows(n=4000, seed=0):
    """Return X (n, 3) in [-1, 1], its last column the constant, and y well inside `BOUNDS`."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (n, COLUMNS - 1)), np.ones(n)])
    return X, X @ [3.0, -2.0, 19.0] + rng.normal(0, 0.5, n)


def scaled(y):
    return (y - 20) / 10


def build(name, epsilon=1.0, seed=None, domain=DOMAIN):
    return get(name).build(Setting("regression", epsilon, 0.0, domain, seed))


def noise_of_releases(epsilon, fits):
    """Return what the library adds to X'y (fits, 3) and to X'X (fits, 3, 3)."""
    X, y = rows(500)
    target = scaled(y)
    releases = [DPLinearRegression(epsilon=epsilon, domain=DOMAIN, random_state=s)._release(
        X, target) for s in range(fits)]  # fmt: skip
    products, grams = map(np.array, zip(*releases, strict=True))
    return products - X.T @ target, grams - X.T @ X


@pytest.fixture(scope="module")
def drawn():
    return noise_of_releases(epsilon=1.0, fits=300)


def test_no_release_goes_unnoised(drawn):
    """Every entry of X'y and X'X, those of the constant included, differs from the truth."""
    products, grams = drawn
    assert (np.abs(products) > 1e-9).all()
    assert (np.abs(grams) > 1e-9).all()


def test_every_release_has_the_scale_that_the_ledger_states(drawn):
    X, y = rows(500)
    _, of_products, of_squares, of_pairs = build("dp-linear-fair").fit(X, y).ledger_.entries
    products, grams = drawn
    above, beside = np.triu_indices(COLUMNS, 1)
    pairs = grams[:, above, beside]
    # Counts of hundreds at scales of ten: folding at zero, which the diagonal has, never shows.
    squares = grams[:, np.arange(COLUMNS), np.arange(COLUMNS)]
    for noise, entry in ((products, of_products), (pairs, of_pairs), (squares, of_squares)):
        fit = stats.kstest(noise.ravel() / entry.scale, stats.laplace.cdf)
        assert fit.pvalue > 1e-4
    np.testing.assert_array_equal(grams, grams.transpose(0, 2, 1))


@pytest.fixture
def released(monkeypatch):
    """Every (value, sensitivity, epsilon) that the library is about to add noise to, in order."""
    found = []

    def spying_on(mechanism):
        class Spy(mechanism):
            def randomise(self, value):
                found.append((value, self.sensitivity, self.epsilon))
                return super().randomise(value)

        return Spy

    monkeypatch.setattr(library, "Laplace", spying_on(library.Laplace))
    monkeypatch.setattr(library, "LaplaceFolded", spying_on(library.LaplaceFolded))
    return found


def test_the_ledger_lists_exactly_what_the_library_draws(released):
    X, y = rows(100)
    ledger = build("dp-linear-fair", epsilon=3.0).fit(X, y).ledger_
    stated = [(e.sensitivity, e.sensitivity / e.scale) for e in ledger.entries]
    repeated = np.repeat(stated, [e.uses for e in ledger.entries], axis=0)
    drawn = [noise for _, *noise in released]
    np.testing.assert_allclose(sorted(drawn), sorted(repeated.tolist()))
    assert sum(epsilon for _, epsilon in drawn) == pytest.approx(3.0)
    assert ledger.spent_epsilon() == pytest.approx(3.0)
    assert ledger.holds


def exchanges(released, columns):
    """Return how far each release moves, in its own unit and in that of its noise (pairs, T).

    For every exchange of a row by another; the columns given as numbers are constant.
    """
    sides = [[c] if isinstance(c, float) else np.linspace(-1, 1, c) for c in columns]
    X, y = np.array([[1.0, -0.5, 1.0][-len(columns) + 1 :]]), np.array([0.3])
    values = []
    for *row, target in itertools.product(*sides):
        released.clear()
        DPLinearRegression(domain=DOMAIN)._release(np.vstack([X, row]), np.append(y, target))
        values.append([value for value, *_ in released])
    moved = np.abs(np.array(values)[:, None] - np.array(values)).reshape(-1, len(released))
    scales = np.array([sensitivity / epsilon for _, sensitivity, epsilon in released])
    return moved, moved / scales


def test_the_noise_is_what_the_worst_exchange_of_a_row_needs_at_every_release(released):
    moved, _ = exchanges(released, (3, 3, 3, 3))
    np.testing.assert_allclose(moved.max(axis=0), [sensitivity for _, sensitivity, _ in released])


def test_no_exchange_moves_all_releases_at_once(released):
    """Together they cost 7/12 of epsilon with a column and the constant; without y'y, half.

    Which is how much an audit of this mechanism can find.
    """
    _, losses = exchanges(released, (5, 1.0, 5))
    assert losses.sum(axis=1).max() == pytest.approx(7 / 12)
    assert losses[:, 1:].sum(axis=1).max() == pytest.approx(1 / 2)


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
        "range of the target" in build("dp-linear-fair", domain=observed).fit(X, y).ledger_.unpaid
    )
    assert not build("dp-linear-fair", seed=0).fit(X, y).ledger_.holds


@pytest.mark.parametrize("epsilon", [0, -1.0, np.inf, np.nan])
def test_an_impossible_budget_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        build("dp-linear-fair", epsilon).fit(*rows(50))


def test_target_bounds_that_coincide_are_refused():
    with pytest.raises(ValueError, match="lower < upper, and they coincide"):
        build("linear-fair", domain=Domain(DOMAIN.features, (1.0, 1.0))).fit(*rows(50))


def test_without_noise_trimming_only_regularises():
    X, y = rows()
    gram, products = X.T @ X, X.T @ y
    np.testing.assert_allclose(
        trim_and_solve(gram, products, 0.0), np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-9
    )
    ridge = np.linalg.solve(gram + 4 * np.sqrt(2) * 10 * np.eye(COLUMNS), products)
    np.testing.assert_allclose(trim_and_solve(gram, products, 10.0), ridge, rtol=1e-9)


def test_directions_without_a_minimum_are_dropped():
    gram, products = np.diag([4.0, -50.0, 0.0]), np.array([8.0, 3.0, 5.0])
    np.testing.assert_allclose(trim_and_solve(gram, products, 0.0), [2, 0, 0])


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
