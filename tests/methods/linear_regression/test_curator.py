"""The curator: no exchange of a row moves a product further than is charged, and all are noised."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dprepro.estimators.inputs import Arrays
from dprepro.methods.diffprivlib_adapter import linear_regression as library
from dprepro.methods.linear_regression.curator import LinearCurator, Products, shares
from dprepro.methods.linear_regression.products import Grid
from dprepro.privacy.curator_base import listening
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from tests.methods.linear_regression.lab import COLUMNS, build, curator, rows, scaled

QUERY = Products(1.0, 1.0, bound=1.0)


def noise_of_releases(epsilon, fits):
    """Return what is added to X'y (fits, 3) and to X'X (fits, 3, 3)."""
    X, y = rows(500)
    target = scaled(y)
    releases = [curator(X, target, epsilon, seed).products(QUERY) for seed in range(fits)]
    products = np.array([release.of_target for release in releases])
    grams = np.array([release.value for release in releases])
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


def test_the_sum_of_squares_of_the_target_has_the_noise_that_the_ledger_states():
    """It fits no coefficient, but it leaves the curator."""
    X, y = rows(500)
    target = scaled(y)
    scale = build("dp-linear-fair").fit(X, y).ledger_.entries[0].scale
    squares = [curator(X, target, 1.0, seed).products(QUERY).target_square for seed in range(100)]
    noise = np.array(squares) - target @ target
    assert np.unique(noise).size == noise.size
    assert np.abs(noise).mean() == pytest.approx(scale, rel=0.4)


@pytest.fixture
def released(monkeypatch):
    """Every (value, scale) that noise is about to be added to, in order."""
    found, add = [], NoiseSource.add_laplace

    def spy(self, exact, scale, unit):
        assert exact.dtype == np.int64
        found.extend((value, scale) for value in exact * unit)
        return add(self, exact, scale, unit)

    monkeypatch.setattr(NoiseSource, "add_laplace", spy)
    return found


@pytest.fixture
def drawn_by_the_library(monkeypatch):
    """Every (value, sensitivity, epsilon) that diffprivlib adds noise to, in order."""
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


def test_the_mechanism_is_that_of_the_library(released, drawn_by_the_library):
    """The same values with the same scales: only their arithmetic is another."""
    X, y = rows(100)
    ledger = build("dp-linear-fair", epsilon=3.0).fit(X, y).ledger_
    one = np.ones(COLUMNS)
    library._construct_regression_obj(
        X, scaled(y), bounds_X=(-one, one), bounds_y=(-one[:1], one[:1]), epsilon=3.0, alpha=0,
        random_state=np.random.RandomState(0),
    )  # fmt: skip
    theirs = sorted(
        (value, sensitivity / epsilon) for value, sensitivity, epsilon in drawn_by_the_library
    )
    np.testing.assert_allclose(sorted(released), theirs, atol=1e-3)
    stated = [(e.sensitivity, e.sensitivity / e.scale) for e in ledger.entries]
    repeated = np.repeat(stated, [e.uses for e in ledger.entries], axis=0)
    np.testing.assert_allclose(
        sorted(noise for _, *noise in drawn_by_the_library), sorted(repeated.tolist())
    )
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
        curator(np.vstack([X, row]), np.append(y, target)).products(QUERY)
        values.append([value for value, *_ in released])
    moved = np.abs(np.array(values)[:, None] - np.array(values)).reshape(-1, len(released))
    return moved, moved / np.array([scale for _, scale in released])


def test_the_noise_is_what_the_worst_exchange_of_a_row_needs_at_every_release(released):
    moved, _ = exchanges(released, (3, 3, 3, 3))
    each = 1.0 / sum(share.number for share in shares(COLUMNS, 1.0))
    np.testing.assert_array_equal(moved.max(axis=0), [scale * each for _, scale in released])


def test_no_exchange_moves_all_releases_at_once(released):
    """Together they cost 7/12 of epsilon with a column and the constant; without y'y, half.

    Which is how much an audit of this mechanism can find.
    """
    _, losses = exchanges(released, (5, 1.0, 5))
    assert losses.sum(axis=1).max() == pytest.approx(7 / 12)
    assert losses[:, 1:].sum(axis=1).max() == pytest.approx(1 / 2)


@pytest.mark.parametrize("bound", [0.5, 1.0])
def test_rows_beyond_the_bound_of_the_query_are_clipped_to_it(released, bound):
    """And the noise follows the bound that is charged: it covers what is enforced."""
    X, y = np.full((3, 2), 1e9), np.array([-1e9, 1.0, -1.0])
    query = Products(bound**2, 1.0, bound=bound)
    curator(X, y).products(query)
    exact = np.array([value for value, *_ in released])
    np.testing.assert_allclose(np.abs(exact).max(), 3 * query.enforced)
    each = 1.0 / sum(share.number for share in shares(2, 1.0))
    assert {scale * each for _, scale in released} == {bound**2, 2 * bound**2}


def test_a_query_that_charges_less_than_it_enforces_cannot_be_built():
    with pytest.raises(SensitivityError, match="charge at least"):
        Products(1.0, 1.0, bound=1.1)


def test_the_products_are_answered_once():
    made = curator(*rows(50))
    made.products(QUERY)
    with pytest.raises(BudgetError, match="answered before"):
        made.products(QUERY)


def test_a_ledger_that_has_spent_its_budget_is_refused():
    X, y = rows(50)
    spent = curator(X, y)._source.ledger
    with pytest.raises(BudgetError, match="divide the budget"):
        LinearCurator(Private(Arrays(X, y)), (-1.0, 1.0), spent, None, ())


def test_listeners_hear_the_noisy_products():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append((query, release))

    X, y = rows(50)
    with listening(Listener()):
        made = curator(X, y)
    release = made.products(QUERY)
    assert heard == [(QUERY, release)]
    assert release.scale == max(entry.scale for entry in made._source.ledger.entries)


def test_what_is_released_lies_on_the_grid_and_has_no_order_of_rows():
    X, y = rows(300)
    order = np.random.default_rng(1).permutation(300)
    one, other = (
        curator(X[rows], scaled(y)[rows], seed=3).products(QUERY)
        for rows in (np.arange(300), order)
    )
    unit = Grid.of(300, one.scale).unit
    for name in ("value", "of_target", "target_square"):
        values = np.asarray(getattr(one, name))
        np.testing.assert_array_equal(values, getattr(other, name))
        np.testing.assert_array_equal(values / unit, np.round(values / unit))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1e6])
def test_noise_of_any_scale_has_room(epsilon):
    X, y = rows(300)
    release = curator(X, scaled(y), epsilon).products(QUERY)
    assert np.isfinite(release.value).all()
    assert release.scale == pytest.approx(20 / epsilon)
