"""Closed forms equal finite differences and the naive version, row by row."""

import numpy as np
import pytest

from dprepro.methods.locally_linear.maps import (
    class_scores,
    clipped_sum,
    draw_parameters,
    draw_projections,
    filters_of,
    inner_gradient,
    score_gradients,
    scores_of,
    squared_norms,
)
from tests.methods.locally_linear import naive

ROWS, FEATURES, MAPS, CLASSES = 12, 5, 3, 4


def problem(projected, seed=0):
    rng = np.random.default_rng(seed)
    R = draw_projections(rng, MAPS, 6, FEATURES, 0.7) if projected else None
    theta = draw_parameters(rng, MAPS, CLASSES, 6 if projected else FEATURES, projected)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return X, rng.integers(0, CLASSES, ROWS), theta, R


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("clip", [np.inf, 2.0, 0.1])
def test_the_gradient_is_the_sum_of_clipped_finite_differences(projected, beta, clip):
    X, labels, theta, R = problem(projected)
    fast = clipped_sum(X, labels, squared_norms(X, R), theta, R, beta, clip)
    wide = None if R is None else R.astype(float)
    slow, norms = naive.clipped_sum(X, labels, theta.astype(float), wide, beta, clip)
    np.testing.assert_allclose(fast, slow, atol=5e-4 * np.abs(slow).max())
    assert (norms.min() < clip) or clip == 0.1


@pytest.mark.parametrize("projected", [True, False])
def test_no_row_moves_the_sum_by_more_than_the_clip_norm(projected):
    clip, largest = 0.5, 0.0
    for seed in range(20):
        X, labels, theta, R = problem(projected, seed)
        X *= np.float32(10.0 ** (seed % 5 - 2))
        norms = squared_norms(X, R)
        for row in range(ROWS):
            one = slice(row, row + 1)
            alone = clipped_sum(X[one], labels[one], norms[one], theta, R, 0.3, clip)
            largest = max(largest, float(np.linalg.norm(alone.astype(float))))
    assert 0.999 * clip < largest <= clip


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("size", [1e8, 1e25, 3e38])
def test_a_row_too_large_for_float32_adds_at_most_the_clip_norm(projected, size):
    X, labels, theta, R = problem(projected)
    X[3] *= np.float32(size / np.abs(X[3]).max())
    one = slice(3, 4)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = squared_norms(X, R)
    alone = clipped_sum(np.nan_to_num(X[one]), labels[one], norms[one], theta, R, 0.3, 0.2)
    assert np.linalg.norm(alone.astype(float)) <= 0.2  # and so it is no NaN


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_scores_and_norms_that_are_not_finite_leave_nothing(broken):
    z, norms = np.ones((3, 2, 2), "f4"), np.ones((3, 1), "f4")
    z[0, 1, 1], norms[1] = broken, broken
    score_gradients(z, np.zeros(3, int), 0.3, norms, 0.2)
    assert not z[:2].any()
    assert z[2].all()


def test_norms_are_exact_where_squares_underflow():
    z = np.array([[[-3.0, 45.0], [-3.0, 45.0]]], dtype=np.float32)  # 1 - p is about 1e-21
    norms = np.full((1, 1), 1e36, "f4")
    score_gradients(z, np.array([1]), 0.0, norms, 1e-4)
    norm = 1e18 * np.linalg.norm(z.astype(float))
    assert 0.999e-4 < norm <= 1e-4


def test_a_row_in_the_null_space_of_the_projections_leaves_rounding_within_the_clip_norm():
    rng = np.random.default_rng(0)
    R = draw_projections(rng, 1, 40, 784, 50.0)  # so that rounding shows
    theta = draw_parameters(rng, 1, 10, 40, True)
    X = rng.normal(size=(4, 784))
    X -= X @ R[0].T @ np.linalg.pinv(R[0].astype(float)).T
    X = (100 * X / np.abs(X).max()).astype(np.float32)
    for row in range(4):
        one, norms = X[row : row + 1], squared_norms(X[row : row + 1], R)
        alone = clipped_sum(one, np.array([row]), norms, theta, R, 0.3, 1e-3)
        assert np.linalg.norm(alone.astype(float)) <= 1e-3


def test_leaving_out_a_row_leaves_out_its_gradient_alone():
    X, labels, theta, R = problem(True)
    norms, kept = squared_norms(X, R), np.arange(ROWS) != 3
    whole = clipped_sum(X, labels, norms, theta, R, 0.3, 0.2)
    without = clipped_sum(X[kept], labels[kept], norms[kept], theta, R, 0.3, 0.2)
    assert np.linalg.norm(whole - without) <= 0.2


@pytest.mark.parametrize("projected", [True, False])
def test_an_empty_sample_adds_nothing(projected):
    X, labels, theta, R = problem(projected)
    empty = clipped_sum(X[:0], labels[:0], squared_norms(X, R)[:0], theta, R, 0.3, 0.5)
    assert empty.shape == theta.shape
    assert not empty.any()


@pytest.mark.parametrize("projected", [True, False])
def test_scores_weights_and_class_scores_are_those_of_the_paper(projected):
    X, _, theta, R = problem(projected)
    z = scores_of(X, filters_of(theta, R), theta[..., -1])
    s, f = class_scores(z, 1.7)
    for row, x in enumerate(X):
        expected = naive.scores(x, theta, R, 1.7)
        np.testing.assert_allclose(z[row], expected[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(s[row], expected[1], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(f[row], expected[2], rtol=1e-4, atol=1e-5)


def test_the_softmax_does_not_overflow():
    z = np.array([[[300.0], [-300.0], [299.0]]], dtype=np.float32)
    s, f = class_scores(z, 100.0)
    np.testing.assert_allclose(s[0, :, 0], [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(f, [[300]])
    both = np.repeat(z, 2, axis=2)
    score_gradients(both, np.array([0]), 100.0, np.ones((1, 1), "f4"), 1.0)
    np.testing.assert_allclose(both[0], [[-0.5, 0.5], [0, 0], [0, 0]], atol=1e-4)


def test_norms_in_blocks_are_those_of_the_projected_rows():
    _, _, _, R = problem(True)
    X = np.random.default_rng(1).normal(size=(9000, FEATURES)).astype(np.float32)
    expected = [[(R[m] @ x) @ (R[m] @ x) + 1 for m in range(MAPS)] for x in X[8190:8195]]
    np.testing.assert_allclose(squared_norms(X, R)[8190:8195], expected, rtol=1e-4)
    np.testing.assert_allclose(squared_norms(X, None)[:, 0], (X * X).sum(axis=1) + 1, rtol=1e-4)


def test_carrying_the_gradient_back_is_the_transpose_of_carrying_theta_over():
    _, _, theta, R = problem(True)
    gradient = np.random.default_rng(2).normal(size=(MAPS, CLASSES, FEATURES)).astype(np.float32)
    left = np.sum(filters_of(theta, R) * gradient)
    right = np.sum(theta[..., :-1] * inner_gradient(gradient, R))
    assert left == pytest.approx(right, rel=1e-4)


def test_projections_and_starting_values_have_the_documented_spread():
    rng = np.random.default_rng(3)
    assert draw_projections(rng, 4, 50, 60, 0.7).std() == pytest.approx(0.7, rel=0.03)
    assert np.abs(draw_parameters(rng, 8, 10, 99, True)).max() == pytest.approx(
        1 / np.sqrt(10 * 100), rel=0.01
    )
    assert np.abs(draw_parameters(rng, 8, 10, 99, False)).max() == pytest.approx(
        1 / np.sqrt(80), rel=0.01
    )
