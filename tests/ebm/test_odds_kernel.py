"""The pass in odds against NumPy, and against the pass in scores."""

from itertools import pairwise

import numpy as np
import pytest

from dprepro.additive.exact_sums import BLOCK_ROWS
from dprepro.ebm import kernel
from dprepro.ebm.odds_kernel import ODDS_LIMIT
from tests.ebm.test_kernel import by_the_paper, problem, run


def ascending(case):
    codes, targets, *rest = case
    order = np.argsort(targets, kind="stable")
    return np.ascontiguousarray(codes[:, order]), targets[order], *rest


@pytest.mark.parametrize("max_leaves", [1, 2, 3])
@pytest.mark.parametrize("rows", [2, 63, 3000, 2 * BLOCK_ROWS + 1])
def test_odds_equal_numpy(rows, max_leaves):
    case = ascending(problem([7, 32, 1, 2, 256], max_leaves, rows=rows))
    shapes, _ = run(*case)
    expected = by_the_paper(*case, 0.3, True, np.inf)
    np.testing.assert_allclose(shapes, expected, atol=2e-6, rtol=1e-5)
    assert np.abs(expected).max() > 2e-4


def test_order_of_rows_changes_rounding_only():
    case = problem([7, 32], 3)
    order = np.argsort(case[1], kind="stable")
    shapes, scores = run(*case)
    by_label, scores_by_label = run(*ascending(case))
    np.testing.assert_allclose(shapes, by_label, atol=2e-6)
    np.testing.assert_allclose(scores[order], scores_by_label, atol=2e-5)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_single_label_is_enough(label):
    codes, targets, *rest = problem([5, 6], 3)
    case = (codes, np.full_like(targets, label), *rest)
    np.testing.assert_allclose(run(*case)[0], by_the_paper(*case, 0.3, True, np.inf), atol=2e-5)


def test_scores_beyond_the_limit_are_followed_and_come_back():
    codes, targets, cuts, noise, counts, n_bins = ascending(problem([6, 8], 3, epochs=40))
    noise *= 0
    # Thrown far beyond what float32 odds could hold, then back again.
    for step, shove in ((6, 300.0), (30, -600.0), (50, 300.0)):
        k = step % 2
        edges = np.r_[0, cuts[step, :2], n_bins[k]]
        noise[step] = [shove * counts[k, a:b].sum() for a, b in pairwise(edges)]
    case = (codes, targets, cuts, noise, counts, n_bins)
    shapes, _ = run(*case)
    expected = by_the_paper(*case, 0.3, True, np.inf)
    np.testing.assert_allclose(shapes, expected, atol=1e-4)
    half_way = by_the_paper(codes, targets, cuts[:20], noise, counts, n_bins, 0.3, True, np.inf)
    assert np.abs(half_way).max() > 2 * ODDS_LIMIT
    assert 0.1 < np.abs(expected).max() < 1


def test_initial_scores_count():
    codes, targets, cuts, noise, counts, n_bins = ascending(problem([6, 8], 3))
    start = np.random.default_rng(1).normal(0, 2, targets.size).astype(np.float32)
    arguments = (cuts, noise, counts, n_bins, 0.3, True, np.float32(np.inf), False)
    by_label, _, _ = kernel.boost(codes, targets, start.copy(), *arguments)
    shuffle = np.random.default_rng(2).permutation(targets.size)
    shuffled, _, _ = kernel.boost(
        np.ascontiguousarray(codes[:, shuffle]), targets[shuffle], start[shuffle], *arguments
    )
    np.testing.assert_allclose(by_label, shuffled, atol=2e-6)
    assert np.abs(by_label - run(codes, targets, cuts, noise, counts, n_bins)[0]).max() > 0.005
