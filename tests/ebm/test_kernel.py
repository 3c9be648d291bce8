"""The kernel against `algorithm2` with the same cuts and the same noise.

The tolerance of 2e-5 is for float32 scores and residuals in multiples of 2^-20.
"""

import numpy as np
import pytest
from scipy.special import expit

from dprepro.additive.exact_sums import BLOCK_ROWS
from dprepro.additive.sigmoid import sigmoid
from dprepro.ebm import algorithm2
from dprepro.ebm.cuts import random_cuts
from dprepro.ebm.kernel import boost, largest_residual
from dprepro.ebm.losses import LogisticLoss, SquaredLoss


def by_the_paper(codes, y, cuts, noise, counts, n_bins, rate, logistic, bound):
    """Algorithm 2 as it is to be read, with the kernel's arguments."""
    loss = LogisticLoss() if logistic else SquaredLoss(clip=bound)
    return algorithm2.boost(codes, y, cuts, noise, counts, n_bins, rate, loss)


def problem(n_bins, max_leaves, rows=3000, epochs=5, seed=0):
    rng = np.random.default_rng(seed)
    n_bins = np.array(n_bins)
    codes = np.array([rng.integers(0, b, rows) for b in n_bins], dtype=np.uint8)
    counts = np.zeros((n_bins.size, n_bins.max()))
    for k, bins in enumerate(n_bins):
        counts[k, :bins] = np.bincount(codes[k], minlength=bins) + rng.uniform(1, 5, bins)
    cuts = random_cuts(rng, n_bins, epochs, max_leaves)
    noise = rng.normal(0, 0.5, (len(cuts), max_leaves))
    targets = rng.integers(0, 2, rows).astype(np.float32)
    return codes, targets, cuts, noise, counts, n_bins


def run(
    codes,
    targets,
    cuts,
    noise,
    counts,
    n_bins,
    rate=0.3,
    logistic=True,
    bound=np.inf,
    adaptive=False,
):
    scores = np.zeros(targets.size, dtype=np.float32)
    shapes, _, _ = boost(
        codes,
        targets,
        scores,
        cuts,
        noise,
        counts,
        n_bins,
        rate,
        logistic,
        np.float32(bound),
        adaptive,
    )
    return shapes, scores


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("logistic", [True, False])
def test_kernel_equals_numpy_for_any_number_of_leaves(max_leaves, logistic):
    case = problem([7, 32, 1, 2, 5], max_leaves)
    shapes, _ = run(*case, logistic=logistic)
    expected = by_the_paper(*case, 0.3, logistic, np.inf)
    np.testing.assert_allclose(shapes, expected, atol=2e-5)
    assert np.abs(expected).max() > 0.005


@pytest.mark.parametrize("n_bins", [1, 2, 3, 255, 256])
def test_kernel_equals_numpy_from_1_to_256_bins(n_bins):
    case = problem([n_bins, 3], max_leaves=3)
    shapes, _ = run(*case)
    np.testing.assert_allclose(shapes, by_the_paper(*case, 0.3, True, np.inf), atol=2e-5)


@pytest.mark.parametrize("rows", [1, 2, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS])
def test_kernel_equals_numpy_at_the_borders_of_a_block(rows):
    case = problem([4, 9], max_leaves=3, rows=rows)
    shapes, _ = run(*case)
    np.testing.assert_allclose(shapes, by_the_paper(*case, 0.3, True, np.inf), atol=2e-5)


def test_residuals_are_clipped_to_the_bound():
    codes, targets, *rest = problem([6, 8], max_leaves=3)
    targets = targets * 10
    clipped, _ = run(codes, targets, *rest, logistic=False, bound=0.5)
    expected = by_the_paper(codes, targets, *rest, 0.3, False, 0.5)
    np.testing.assert_allclose(clipped, expected, atol=2e-5)
    unclipped, _ = run(codes, targets, *rest, logistic=False)
    assert np.abs(clipped - unclipped).max() > 0.5


def test_adaptive_noise_is_scaled_by_what_the_released_functions_allow():
    case = problem([7, 4, 12], max_leaves=3, epochs=8)
    codes, targets, cuts, noise, counts, n_bins = case
    noise = 30 * noise
    adaptive, _ = run(codes, targets, cuts, noise, counts, n_bins, adaptive=True)
    scaled = noise.copy()
    for step in range(len(cuts)):
        released = by_the_paper(
            codes, targets, cuts[:step], scaled[:step], counts, n_bins, 0.3, True, np.inf
        )
        by_feature = [released[k, :b] for k, b in enumerate(n_bins)]
        reach = max(sum(f.max() for f in by_feature), -sum(f.min() for f in by_feature))
        scaled[step] *= expit(reach)
    expected = by_the_paper(codes, targets, cuts, scaled, counts, n_bins, 0.3, True, np.inf)
    np.testing.assert_allclose(adaptive, expected, atol=1e-3)
    assert np.abs(adaptive - run(codes, targets, cuts, noise, counts, n_bins)[0]).max() > 0.01


def test_the_largest_residual_bounds_every_residual():
    for highest, lowest in [(0.0, 0.0), (2.0, -0.5), (0.5, -3.0), (40.0, -1.0)]:
        scores = np.linspace(lowest, highest, 1001).astype(np.float32)
        residuals = np.array([[y - sigmoid(s) for s in scores] for y in (0.0, 1.0)])
        bound = largest_residual(highest, lowest)
        assert np.abs(residuals).max() <= bound <= min(1.0, np.abs(residuals).max() + 2e-6)


@pytest.mark.parametrize("max_leaves", [3, 4])  # in odds, in scores
def test_scores_stray_from_the_shapes_by_less_than_is_allowed_for(max_leaves):
    codes, targets, cuts, noise, counts, n_bins = problem([7, 4, 12], max_leaves, epochs=3000)
    order = np.argsort(targets, kind="stable")
    case = (np.ascontiguousarray(codes[:, order]), targets[order], cuts, noise, counts, n_bins)
    _, scores = run(*case)
    before, _ = run(case[0], case[1], cuts[:-1], noise[:-1], counts, n_bins)
    exact = sum(before[k][case[0][k]] for k in range(3))
    strayed = np.abs(scores - exact).max()
    assert 0 < strayed <= len(cuts) * 2.0**-22


def test_a_bound_caps_what_one_row_can_move():
    codes, targets, cuts, noise, counts, n_bins = problem([6], max_leaves=3, epochs=1)
    noise = np.zeros_like(noise)
    outlier = targets.copy()
    outlier[0] = 1e6
    zeroed, _ = run(codes, targets * 0, cuts, noise, counts, n_bins, logistic=False, bound=0.5)
    moved, _ = run(codes, outlier * 0 + np.eye(1, targets.size)[0].astype(np.float32) * 1e6, cuts,
                   noise, counts, n_bins, logistic=False, bound=0.5)  # fmt: skip
    leaf_sum_shift = np.abs((moved - zeroed)[0] * counts[0]).sum() / 0.3
    assert leaf_sum_shift == pytest.approx(0.5, rel=1e-4)


def test_the_kernel_is_deterministic():
    case = problem([7, 32, 3], max_leaves=3)
    first, _ = run(*case)
    second, _ = run(*case)
    np.testing.assert_array_equal(first, second)


def test_scores_end_one_update_behind_the_shapes():
    codes, targets, cuts, noise, counts, n_bins = problem([7, 4], max_leaves=3)
    shapes, scores = run(codes, targets, cuts, noise, counts, n_bins)
    before, _ = run(codes, targets, cuts[:-1], noise[:-1], counts, n_bins)
    by_shapes = sum(before[k][codes[k]] for k in range(2))
    np.testing.assert_allclose(scores, by_shapes, atol=1e-5)
    assert np.abs(shapes - before).max() > 0


def test_an_empty_leaf_stays_where_it_is():
    codes, targets, cuts, noise, counts, n_bins = problem([5], max_leaves=3)
    shapes, _ = run(codes, targets, cuts, noise, counts * 0, n_bins)
    np.testing.assert_array_equal(shapes, 0.0)


def test_sigmoid_is_accurate_and_stays_a_probability():
    scores = np.r_[np.linspace(-40, 40, 400_001), -1e30, 1e30, 0.0].astype(np.float32)
    values = np.array([sigmoid(s) for s in scores])
    assert np.abs(values - expit(scores.astype(float))).max() < 3e-7
    assert values.min() >= 0.0
    assert values.max() <= 1.0
