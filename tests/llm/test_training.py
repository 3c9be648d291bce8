"""Batches are what the accounting assumes; Adam and its schedule; the noise that is added."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, kstest

from dprepro.llm.maps import squared_norms
from dprepro.llm.training import Adam, Plan, _gradient, batches, train

PLAN = Plan(
    epochs=4, batch_size=20, learning_rate=0.1, decay=0.5, decay_every=2, beta=1.0, clip=0.5,
    sampling="poisson",
)  # fmt: skip


def test_poisson_batches_take_each_row_independently():
    rows, plan = 50, replace(PLAN, epochs=2000, batch_size=10)
    taken = np.zeros((plan.steps(rows), rows), dtype=bool)
    for step, batch in enumerate(batches(np.random.default_rng(0), rows, plan)):
        assert len(np.unique(batch)) == len(batch)
        taken[step, batch] = True
    sizes, rate = taken.sum(axis=1), plan.rate(rows)
    # Independence: sizes are binomial, each row comes equally often, two rows are uncorrelated.
    expected = binom.pmf(np.arange(rows + 1), rows, rate)
    assert np.abs(np.bincount(sizes, minlength=rows + 1) / len(sizes) - expected).max() < 0.012
    assert np.abs(taken.mean(axis=0) - rate).max() < 0.02
    correlations = np.corrcoef(taken.T)[np.triu_indices(rows, 1)]
    assert abs(correlations.mean()) < 1e-3
    assert kstest(correlations * np.sqrt(len(taken)), "norm").pvalue > 1e-3


def test_a_batch_as_large_as_the_table_takes_all_rows():
    for batch in batches(np.random.default_rng(0), 15, PLAN):
        np.testing.assert_array_equal(batch, np.arange(15))


def test_shuffled_batches_use_each_row_once_an_epoch():
    plan = replace(PLAN, sampling="shuffle")
    found = [*batches(np.random.default_rng(0), 50, plan)]
    assert [len(batch) for batch in found] == [20, 20, 10] * 4
    for epoch in range(4):
        rows = np.concatenate(found[3 * epoch : 3 * epoch + 3])
        np.testing.assert_array_equal(np.sort(rows), np.arange(50))


def test_adam_moves_by_the_learning_rate_at_first_and_finds_the_minimum():
    values = np.array([3.0, -2.0], dtype=np.float32)
    adam = Adam(values.shape)
    adam.step(values, 2 * values, 0.1)
    np.testing.assert_allclose(values, [2.9, -1.9], rtol=1e-5)
    for _ in range(2000):
        adam.step(values, 2 * values, 0.01)
    np.testing.assert_allclose(values, 0, atol=1e-3)


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    return X, rng.integers(0, 3, 60), np.zeros((2, 3, 5), dtype=np.float32)


def test_noise_alone_moves_the_parameters_where_no_row_does():
    # Rows whose gradients are clipped to nothing leave the noise, over L, to Adam.
    X, labels, theta = problem()
    noise = np.ones_like(theta)
    plan = replace(PLAN, clip=1e-12, epochs=1, batch_size=60)
    train(X, labels, theta, None, plan, np.random.default_rng(0), iter([noise]))
    np.testing.assert_allclose(theta, -0.1, rtol=1e-4)


def test_the_learning_rate_falls_and_adam_starts_anew():
    X, labels, theta = problem()
    plan = replace(PLAN, clip=1e-12, epochs=4, batch_size=60)
    signs = [1, 1, -1, 1]  # two steps at 0.1; then, without memory, -0.05 and about 0
    noise = (np.full_like(theta, sign) for sign in signs)
    train(X, labels, theta, None, plan, np.random.default_rng(0), noise)
    fresh = np.zeros(1, dtype=np.float32)
    for rate, gradients in ((0.1, (1, 1)), (0.05, (-1, 1))):
        adam = Adam((1,))
        for gradient in gradients:
            adam.step(fresh, np.full(1, gradient / 60, dtype=np.float32), rate)
    np.testing.assert_allclose(theta, fresh[0], rtol=1e-4)


@pytest.fixture
def received(monkeypatch):
    """What Adam gets, step by step; the parameters stay where they are."""
    found = []
    monkeypatch.setattr(Adam, "step", lambda _, values, gradient, rate: found.append(gradient))
    return found


def test_noise_is_divided_by_the_expected_size_of_a_sample(received):
    X, labels, theta = problem()
    noise = [*np.random.default_rng(1).normal(size=(12, *theta.shape)).astype(np.float32)]
    plan = replace(PLAN, clip=1e-12)  # leaves nothing of any row
    train(X, labels, theta, None, plan, np.random.default_rng(0), iter([*noise]))
    assert len(received) == plan.steps(60) == len(noise)
    np.testing.assert_allclose(received, np.divide(noise, 20), atol=1e-9)


@pytest.mark.parametrize("private", [True, False])
def test_private_sums_are_divided_by_the_expected_size_others_by_that_of_the_batch(
    private, received
):
    X, labels, theta = problem()
    noise = iter([np.zeros_like(theta)] * 12) if private else None
    train(X, labels, theta, None, PLAN, np.random.default_rng(0), noise)
    samples = [*batches(np.random.default_rng(0), 60, PLAN)]
    assert len({len(rows) for rows in samples}) > 4
    norms = squared_norms(X, None)
    for rows, found in zip(samples, received, strict=True):
        total = _gradient(X[rows], labels[rows], norms[rows], theta, None, PLAN)
        np.testing.assert_allclose(found, total / (20 if private else len(rows)), atol=1e-8)


def test_every_step_takes_a_draw_of_noise():
    X, labels, theta = problem()
    with pytest.raises(StopIteration):
        train(X, labels, theta, None, PLAN, np.random.default_rng(0), iter([theta] * 11))
