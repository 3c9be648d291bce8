"""The pass over the rows against NumPy, and its sensitivities by brute force."""

import numpy as np
import pytest
from scipy.special import expit, logit

from dprepro.ebm_plus.kernel import magnitude_counts, residual_sums
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED

KINDS = pytest.mark.parametrize("logistic", [True, False])
BOUNDS = pytest.mark.parametrize("bound", [0.05, 0.3, 0.5, 0.6, 0.75, 0.9, 0.99, 1.0])


def problem(rows, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    scores = (spread * rng.normal(size=rows)).astype(np.float32)
    targets = rng.integers(0, 2, rows).astype(np.float32)
    last, codes = rng.integers(0, 4, (2, rows)).astype(np.uint8)
    return scores, targets, last, rng.normal(size=4).astype(np.float32), codes


@KINDS
@pytest.mark.parametrize("rows", [1, 7, 2049, 5000])
def test_it_does_what_numpy_does(rows, logistic):
    scores, targets, last, change, codes = problem(rows)
    updated = scores + change[last]
    prediction = expit(updated) if logistic else updated
    residuals = np.clip(targets - prediction, -0.8, 0.8)
    curvatures = np.abs(residuals) * (1 - np.abs(residuals)) if logistic else np.zeros(rows)
    sums = residual_sums(scores, targets, last, change, codes, 4, np.float32(0.8), logistic)
    assert sums.shape == (2, 4)
    np.testing.assert_allclose(sums[0], np.bincount(codes, residuals, 4), atol=1e-6 * rows)
    np.testing.assert_allclose(sums[1], np.bincount(codes, curvatures, 4), atol=1e-6 * rows)
    np.testing.assert_array_equal(scores, updated)


def one_row(scores, target, bound, *, logistic):
    """Return the norm of the part of each of 256 rows, which lie in a bin each."""
    codes = np.arange(256, dtype=np.uint8)
    targets, none = np.full(256, target, np.float32), np.zeros(256, np.uint8)
    change = np.zeros(1, np.float32)
    sums = residual_sums(
        scores.astype(np.float32), targets, none, change, codes, 256, np.float32(bound), logistic
    )
    return np.linalg.norm(sums, axis=0)


@BOUNDS
def test_the_part_of_a_label_is_as_large_as_is_paid_for_and_no_larger(bound):
    """Brute force over p = sigmoid(score), certain ones too, and both labels."""
    scores = np.concatenate([logit(np.linspace(0.002, 0.998, 252)), [-60.0, 60.0, -1e4, 1e4]])
    norms = [one_row(scores, label, bound, logistic=True).max() for label in (0.0, 1.0)]
    paid = LOGISTIC.part_norm(bound)
    for largest in norms:
        assert 0.99 * paid < largest <= paid * (1 + 1e-6)


@BOUNDS
def test_the_part_of_a_number_is_as_large_as_is_paid_for_and_no_larger(bound):
    scores = np.linspace(-1.6, 1.6, 256)
    largest = max(one_row(scores, y, bound, logistic=False).max() for y in (-0.5, 0.0, 0.5))
    paid = SQUARED.part_norm(bound)
    assert 0.99 * paid < largest <= paid * (1 + 1e-6)


@KINDS
def test_a_row_less_moves_the_sums_by_its_own_part(logistic):
    bound, nothing = np.float32(0.3), np.zeros(4, np.float32)
    for seed in range(10):
        rows = problem(9, seed, spread=20.0)
        scores = rows[0].copy()
        whole = residual_sums(scores, *rows[1:], 4, bound, logistic)
        for gone in range(9):
            kept = [np.delete(part, gone) if part.size == 9 else part for part in rows]
            alone = [part[gone : gone + 1] for part in (scores, rows[1], rows[2], rows[4])]
            part = residual_sums(*alone[:3], nothing, alone[3], 4, bound, logistic)
            less = residual_sums(*kept, 4, bound, logistic)
            # float32: a row's residual is rounded by where it stands among the others.
            np.testing.assert_allclose(whole - less, part, atol=2e-6)


def test_magnitudes_are_counted_by_half_octaves_and_one_row_counts_once():
    targets = np.array([1.5, 1.0, 0.8, -0.5, 0.1, 0.0], np.float32)
    zeros, none = np.zeros(6, np.uint8), np.zeros(1, np.float32)
    counts = magnitude_counts(np.zeros(6, np.float32), targets, zeros, none, 6)
    # Above 2^-1/2: three; 1/2 lies at the lower edge of its cell; 0.1 and 0 are below 2^-5/2.
    np.testing.assert_array_equal(counts, [3, 0, 1, 0, 0, 2])
    for row in range(6):
        scores = np.zeros(5, np.float32)
        less = magnitude_counts(scores, np.delete(targets, row), zeros[:5], none, 6)
        assert np.abs(counts - less).sum() == 1


def test_counting_magnitudes_applies_the_change_too():
    scores, targets, last, change, _ = problem(50)
    updated = scores + change[last]
    magnitude_counts(scores, targets, last, change, 20)
    np.testing.assert_array_equal(scores, updated)
