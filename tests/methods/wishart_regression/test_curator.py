"""The Wishart curator: means that are charged for, moments that no charge covers, each once."""

import math

import numpy as np
import pytest

from dprepro.estimators.inputs import Arrays
from dprepro.methods.wishart_regression import estimator
from dprepro.methods.wishart_regression.curator import (
    BOUNDS,
    GAPS,
    LARGEST_NORM,
    NOT_PRIVATE,
    ONE_MEAN_PAID,
    TARGET_LEFT_OUT,
    UNIT,
    UNPAID,
    Centre,
    ColumnMeans,
    ExactMoments,
    SecondMoments,
    WishartCurator,
)
from dprepro.privacy.curator_base import listening
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, SensitivityError
from dprepro.privacy.sensitivity import REPLACE_ONE

MEANS = ColumnMeans(1.0, 1.0)
MOMENTS = SecondMoments(1.0, 1.0, gap=TARGET_LEFT_OUT)


def rows(n=200, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(5, 1, (n, columns))
    return X, X @ np.arange(1, columns + 1) + 7 + rng.normal(size=n)


def curator(X, y, epsilon=1.0, seed=0, gaps=GAPS, unpaid=UNPAID):
    ledger = Ledger(epsilon, 0.0, REPLACE_ONE, unaccounted=list(unpaid), gaps=list(gaps))
    return WishartCurator(Private(Arrays(X, y)), ledger, seed, ())


def test_an_exchange_of_a_row_moves_a_mean_by_at_most_what_is_charged():
    """In units of range / n, the bounds being known: between them, and from one to the other."""
    X = np.array([[0.0], [4.0], [0.0], [1.0]])
    y = np.array([-1.0, 1.0, -1.0, 0.5])
    unit = np.array([4.0, 2.0]) / 4
    largest = np.zeros(2)
    before = curator(X, y, 1e9).means(MEANS).value
    for value in np.linspace(0, 1, 9):
        X_other, y_other = X.copy(), y.copy()
        X_other[2], y_other[2] = 4 * value, 2 * value - 1
        after = curator(X_other, y_other, 1e9).means(MEANS).value
        largest = np.maximum(largest, np.abs(after - before) / unit)
    np.testing.assert_allclose(largest, MEANS.enforced, rtol=1e-6)


def test_a_target_moves_the_moments_by_more_than_is_charged():
    """In units of the largest squared norm: why the gap must be named, and nothing else helps."""
    X, y = rows(50)
    moved = [
        np.linalg.norm(curator(X, np.append(y[:-1], last), 1e9).moments(MOMENTS).value)
        for last in (0.0, 1000.0)
    ]
    assert moved[1] - moved[0] > 100 * np.square(np.linalg.norm(X, axis=1)).max()
    assert MOMENTS.enforced == math.inf
    for query, charged in ((ColumnMeans, 0.99), (SecondMoments, 1.0), (SecondMoments, 1e300)):
        with pytest.raises(SensitivityError, match="charge at least"):
            query(charged, 1.0)


@pytest.mark.parametrize("missing", [NOT_PRIVATE, TARGET_LEFT_OUT, ONE_MEAN_PAID])
def test_a_ledger_that_is_silent_about_a_gap_gets_no_moments(missing):
    silent = [gap for gap in GAPS if gap != missing]
    with pytest.raises(SensitivityError, match="has to list the gap"):
        curator(*rows(), gaps=silent).moments(MOMENTS)


def test_means_and_moments_are_answered_once():
    made = curator(*rows())
    made.means(MEANS)
    made.moments(MOMENTS)
    with pytest.raises(BudgetError, match="answered before"):
        made.means(MEANS)
    with pytest.raises(BudgetError, match="answered before"):
        made.moments(MOMENTS)


def test_noise_is_in_proportion_to_one_over_epsilon_squared():
    X, y = rows(2000)
    X -= X.mean(axis=0)
    norm = np.linalg.norm(X, axis=1).max()
    centred = np.column_stack([X, y - y.mean()])

    def excess(epsilon):
        """The trace of what is added to the moments."""
        made = curator(X, y - y.mean(), epsilon, seed=1)
        return np.trace(made.moments(MOMENTS).value - centred.T @ centred)

    # The same draw at both budgets: quadruple noise at half the budget, to rounding.
    assert excess(0.5) == pytest.approx(4 * excess(1.0), rel=1e-6)
    # E trace = p (p + 1) s^2 with p = 4 and s = norm / (2 * 3/4 epsilon); one draw scatters.
    assert excess(1.0) == pytest.approx(20 * (norm / 1.5) ** 2, rel=1.0)


def test_the_means_have_the_noise_that_the_ledger_states():
    X, y = rows()
    table = np.column_stack([X, y])
    found = np.array([curator(X, y, 2.0, seed).means(MEANS).value for seed in range(3000)])
    unit = np.ptp(table, axis=0) / len(table)
    off = (found - table.mean(axis=0)) / unit
    made = curator(X, y, 2.0)
    assert made.means(MEANS).scale == made._source.ledger.entries[0].scale == pytest.approx(2.0)
    assert np.unique(off).size == off.size
    # The mean absolute value of Laplace noise is its scale.
    np.testing.assert_allclose(np.abs(off).mean(axis=0), 2.0, rtol=0.1)


def test_places_are_whole_numbers_whose_sums_have_no_order():
    X, y = rows(500)
    X[:, 1] = 2.5  # a column of width 0
    places = ExactMoments(Arrays(X, y)).places()
    order = np.random.default_rng(0).permutation(500)
    assert places.dtype == np.int64
    np.testing.assert_array_equal(ExactMoments(Arrays(X[order], y[order])).places(), places)
    assert places[1] == 0
    expected = (y - y.min()) / np.ptp(y)
    assert 0 <= expected.sum() - places[3] * UNIT < 501 * UNIT


def test_means_that_were_told_are_subtracted():
    X, y = rows()
    told, centred = curator(X, y), curator(X - 3.0, y - 3.0)
    told.tell(Centre(np.full(4, 3.0)))
    np.testing.assert_allclose(told.moments(MOMENTS).value, centred.moments(MOMENTS).value)


def test_what_is_read_without_noise_is_listed():
    made = curator(*rows(), unpaid=())
    unpaid = made._source.ledger.unaccounted
    made.means(MEANS)
    assert unpaid[1:] == [BOUNDS]
    made.moments(MOMENTS)
    assert unpaid[1:] == [BOUNDS, LARGEST_NORM]


def test_listeners_hear_a_whole_fit():
    heard = []

    class Listener:
        def asked(self, query, release):
            heard.append(type(query))

        def told(self, instruction):
            heard.append(type(instruction))

    with listening(Listener()):
        estimator.WishartLinearRegression().fit(*rows())
    assert heard == [ColumnMeans, Centre, SecondMoments]
