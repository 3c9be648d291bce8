"""Batches are what the accounting assumes, and exact sums are those of their rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, kstest

from dprepro.methods.locally_linear.gradients import ExactGradients, batches
from dprepro.methods.locally_linear.maps import clipped_sum, draw_projections, squared_norms
from tests.methods.locally_linear.lab import CLASSES, FEATURES, MAPS, PARAMS, rows, theta


def test_poisson_batches_take_each_row_independently():
    n, params = 50, replace(PARAMS, epochs=2000, batch_size=10)
    taken = np.zeros((params.steps(n), n), dtype=bool)
    for step, batch in enumerate(batches(np.random.default_rng(0), n, params)):
        assert len(np.unique(batch)) == len(batch)
        taken[step, batch] = True
    sizes, rate = taken.sum(axis=1), params.rate(n)
    # Independence: sizes are binomial, each row comes equally often, two rows are uncorrelated.
    expected = binom.pmf(np.arange(n + 1), n, rate)
    assert np.abs(np.bincount(sizes, minlength=n + 1) / len(sizes) - expected).max() < 0.012
    assert np.abs(taken.mean(axis=0) - rate).max() < 0.02
    correlations = np.corrcoef(taken.T)[np.triu_indices(n, 1)]
    assert abs(correlations.mean()) < 1e-3
    assert kstest(correlations * np.sqrt(len(taken)), "norm").pvalue > 1e-3


def test_a_batch_as_large_as_the_table_takes_all_rows():
    for batch in batches(np.random.default_rng(0), 15, PARAMS):
        np.testing.assert_array_equal(batch, np.arange(15))


def test_shuffled_batches_use_each_row_once_an_epoch():
    params = replace(PARAMS, sampling="shuffle")
    found = [*batches(np.random.default_rng(0), 50, params)]
    assert [len(batch) for batch in found] == [20, 20, 10] * 4
    for epoch in range(4):
        dealt = np.concatenate(found[3 * epoch : 3 * epoch + 3])
        np.testing.assert_array_equal(np.sort(dealt), np.arange(50))


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("clip", [0.5, np.inf])
def test_each_sum_is_that_of_the_next_batch(projected, clip):
    given = rows()
    R = draw_projections(np.random.default_rng(1), MAPS, 3, FEATURES, 0.7) if projected else None
    start = theta((MAPS, CLASSES, 4 if projected else FEATURES + 1)) + np.float32(0.1)
    exact = ExactGradients(given, PARAMS, np.random.default_rng(0))
    exact.project(R)
    norms = squared_norms(given.X, R)
    for batch in batches(np.random.default_rng(0), len(given), PARAMS):
        total, size = exact.next_sum(start, clip)
        assert size == len(batch)
        expected = clipped_sum(
            given.X[batch], given.labels[batch], norms[batch], start, R, PARAMS.beta, clip
        )
        np.testing.assert_array_equal(total, expected)


def test_after_the_last_batch_there_are_no_rows():
    exact = ExactGradients(rows(), PARAMS, np.random.default_rng(0))
    sizes = [exact.next_sum(theta(), 0.5)[1] for _ in range(PARAMS.steps(60))]
    assert len(set(sizes)) > 4
    total, size = exact.next_sum(theta(), 0.5)
    assert size == 0
    assert not total.any()


def test_other_projections_measure_the_rows_anew():
    """Norms of the projections before would let a row pass for shorter than it is."""
    R = draw_projections(np.random.default_rng(1), MAPS, 3, FEATURES, 0.7)
    given, start = rows(1), theta((MAPS, CLASSES, 4))
    exact = ExactGradients(given, replace(PARAMS, batch_size=1), np.random.default_rng(0))
    for projections in (R, 1000 * R):
        exact.project(projections)
        total, _ = exact.next_sum(start, 0.01)
        assert 0.0099 < np.linalg.norm(total.astype(float)) <= 0.01
