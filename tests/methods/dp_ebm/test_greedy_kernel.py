"""The kernel of the EBM without privacy against the same sums in plain Python, to the last bit."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from dprepro.methods.dp_ebm.greedy_kernel import BLOCK_ROWS, boost_greedily

RATE, RIDGE, MIN_LEAF = 0.3, 0.1, 2


def best_cut(sums, counts, start, stop):
    def score(gradient, rows):
        return gradient * gradient / (rows + RIDGE)

    gradient, rows = 0.0, 0.0
    for b in range(start, stop):
        gradient += sums[b]
        rows += counts[b]
    best, left, left_rows = (0.0, -1), 0.0, 0.0
    for b in range(start, stop - 1):
        left += sums[b]
        left_rows += counts[b]
        if min(left_rows, rows - left_rows) < MIN_LEAF:
            continue
        gain = score(left, left_rows) + score(gradient - left, rows - left_rows)
        gain -= score(gradient, rows)
        if gain > best[0]:
            best = gain, b + 1
    return best


def leaves_of(sums, counts, max_leaves):
    """Return the borders of up to so many leaves, cut best-first."""
    edges = [0, len(sums)]
    while len(edges) <= max_leaves:
        found = [best_cut(sums, counts, a, b) for a, b in itertools.pairwise(edges)]
        gain, cut = max(found, key=lambda pair: pair[0])
        if gain <= 0:
            break
        edges = sorted([*edges, cut])
    return edges


def sums_of(residuals, codes, bins):
    """Add up rows with an even number and those with an odd one, in order, then both."""
    parts = np.zeros((2, bins))
    for i, (residual, code) in enumerate(zip(residuals.astype(float), codes, strict=True)):
        parts[i % 2, code] += residual
    return parts[0] + parts[1]


def plain(codes, y, held_codes, held_y, n_bins, max_leaves, epochs, patience):
    """Squared error: scores are float32, sums float64."""
    shapes = np.zeros((len(n_bins), max(n_bins)))
    scores, held = np.zeros(y.size, np.float32), np.zeros(held_y.size, np.float32)

    def loss():
        total = 0.0
        for target, score in zip(held_y.astype(float), held.astype(float), strict=True):
            total += (target - score) ** 2
        return total / held_y.size

    best = (loss() if held_y.size else 0.0), 0, shapes.copy()
    for epoch in range(1, epochs + 1):
        for k, bins in enumerate(n_bins):
            sums = sums_of(y - scores, codes[k], bins)
            counts = np.bincount(codes[k], minlength=bins).astype(float)
            edges = leaves_of(sums, counts, max_leaves)
            for first, last in itertools.pairwise(edges):
                step = RATE * sum(sums[first:last].tolist()) / (counts[first:last].sum() + RIDGE)
                shapes[k, first:last] += step
                for moved, bins_of in ((scores, codes[k]), (held, held_codes[k])):
                    moved[(first <= bins_of) & (bins_of < last)] += np.float32(step)
        if held_y.size:
            now = loss()
            if now < best[0]:
                best = now, epoch, shapes.copy()
            elif epoch - best[1] >= patience:
                break
    return best[2] if held_y.size else shapes


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(("n", "held"), [(7, 0), (BLOCK_ROWS + 1, 0), (700, 151)])
def test_squared_error_has_the_bits_of_plain_sums(max_leaves, n, held):
    """Cuts at the last of 256 bins, a feature that is constant, one that is almost."""
    rng = np.random.default_rng(max_leaves)
    n_bins = np.array([256, 2, 1, 40])
    codes = np.array([rng.integers(0, bins, n + held) for bins in n_bins], dtype=np.uint8)
    codes[0, rng.random(n + held) < 0.3] = 255
    codes[3, rng.random(n + held) < 0.9] = 0
    y = np.sin(codes[0] / 40) + (codes[0] == 255) + 0.2 * codes[3] + rng.normal(size=n + held)
    y = y.astype(np.float32)
    counts = np.zeros((4, 256))
    for k, bins in enumerate(n_bins):
        counts[k, :bins] = np.bincount(codes[k, :n], minlength=bins)
    parts = codes[:, :n].copy(), y[:n], codes[:, n:].copy(), y[n:]
    found, _ = boost_greedily(
        *parts, 0.0, n_bins, counts, RATE, False, max_leaves, MIN_LEAF, RIDGE, 4, 2, 0.0
    )
    np.testing.assert_array_equal(found, plain(*parts, n_bins, max_leaves, 4, 2))


@pytest.mark.parametrize(("held", "tolerance"), [(0, 0.0), (100, 0.0), (100, 0.02)])
def test_log_loss_takes_newton_steps_until_the_held_out_loss_is_least(held, tolerance):
    """Two features of two bins, each a leaf; among held-out rows the labels depend less on them."""
    rng = np.random.default_rng(3)
    n, epochs = 201, 30
    codes = rng.integers(0, 2, (2, n + held)).astype(np.uint8)
    depends = np.where(np.arange(n + held) < n, 0.6, 0.3)
    y = (rng.random(n + held) < 0.2 + depends * codes[0]).astype(np.float32)
    parts = codes[:, :n].copy(), y[:n], codes[:, n:].copy(), y[n:]
    counts = np.array([np.bincount(feature, minlength=2) for feature in parts[0]], float)
    found = boost_greedily(
        *parts, 0.4, np.array([2, 2]), counts, RATE, True, 2, 1, 0.0, epochs, 3, tolerance
    )
    shapes, path, losses = np.zeros((2, 2)), [np.zeros((2, 2))], []
    for _ in range(epochs + 1):
        scores = 0.4 + shapes[0][codes[0]] + shapes[1][codes[1]]
        losses.append((np.logaddexp(0, scores) - scores * y)[n:].mean() if held else 0.0)
        for k in (0, 1):
            p = expit(0.4 + shapes[0][codes[0]] + shapes[1][codes[1]])[:n]
            gradient = np.bincount(codes[k, :n], y[:n] - p)
            shapes[k] += RATE * gradient / np.bincount(codes[k, :n], p * (1 - p))
        path.append(shapes.copy())
    best = epochs
    if held:
        best = 0
        for epoch in range(1, epochs + 1):
            if losses[epoch] < losses[best] * (1 - tolerance):
                best = epoch
            elif epoch - best >= 3:
                break
        assert (0 < best <= np.argmin(losses) < epochs, best < np.argmin(losses)) == (
            True,
            tolerance > 0,
        )
    assert found[1] == best
    np.testing.assert_allclose(found[0], path[best], atol=1e-4)
