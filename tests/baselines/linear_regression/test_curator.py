"""The curator: no exchange of a row moves a product further than is charged, and all are noised."""

import itertools

import diffprivlib.models.linear_regression as library
import numpy as np
import pytest
from scipy import stats

from dprepro.baselines.linear_regression.curator import LinearCurator, Products, library_entries
from dprepro.estimators.inputs import Arrays
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private import Private
from dprepro.privacy.release import BudgetError, SensitivityError, listening
from tests.baselines.linear_regression.lab import COLUMNS, build, curator, rows, scaled

QUERY = Products(1.0, 1.0, bound=1.0)


def noise_of_releases(epsilon, fits):
    """Return what the library adds to X'y (fits, 3) and to X'X (fits, 3, 3)."""
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
        curator(np.vstack([X, row]), np.append(y, target)).products(QUERY)
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


@pytest.mark.parametrize("bound", [0.5, 1.0])
def test_rows_beyond_the_bound_of_the_query_are_clipped_to_it(released, bound):
    """And the library is told of the bound that is charged: its noise covers what is enforced."""
    X, y = np.full((3, 2), 1e9), np.array([-1e9, 1.0, -1.0])
    query = Products(bound**2, 1.0, bound=bound)
    curator(X, y).products(query)
    exact = np.array([value for value, *_ in released])
    np.testing.assert_allclose(np.abs(exact).max(), 3 * query.enforced)
    assert {sensitivity for _, sensitivity, _ in released} == {bound**2, 2 * bound**2}


def test_a_query_that_charges_less_than_it_enforces_cannot_be_built():
    with pytest.raises(SensitivityError, match="charge at least"):
        Products(1.0, 1.0, bound=1.1)


def test_the_products_are_answered_once():
    made = curator(*rows(50))
    made.products(QUERY)
    with pytest.raises(BudgetError, match="one use"):
        made.products(QUERY)


def test_a_ledger_that_has_spent_its_budget_is_refused():
    X, y = rows(50)
    spent = Ledger(1.0, 0.0, "replace-one", library_entries(COLUMNS, 1.0))
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
    assert release.scale == max(entry.scale for entry in library_entries(COLUMNS, 1.0))
