"""The pass over the rows against NumPy, and its sensitivities by brute force."""

import numpy as np
import pytest
from scipy.special import expit

from dprepro.ebm.histogram_kernel import magnitude_counts, residual_sums


def problem(rows, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    scores = (spread * rng.normal(size=rows)).astype(np.float32)
    targets = rng.integers(0, 2, rows).astype(np.float32)
    last, codes = rng.integers(0, 4, (2, rows)).astype(np.uint8)
    return scores, targets, last, rng.normal(size=4).astype(np.float32), codes


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("rows", [1, 7, 5000])
def test_it_does_what_numpy_does(rows, logistic):
    scores, targets, last, change, codes = problem(rows)
    updated = scores + change[last]
    prediction = expit(updated) if logistic else updated
    residuals = np.clip(targets - prediction, -0.8, 0.8)
    sums = residual_sums(scores, targets, last, change, codes, 4, np.float32(0.8), logistic)
    np.testing.assert_allclose(sums, np.bincount(codes, residuals, 4), atol=1e-6 * rows)
    np.testing.assert_array_equal(scores, updated)


@pytest.mark.parametrize("logistic", [True, False])
def test_any_row_moves_the_sums_by_at_most_the_bound(logistic):
    bound, largest = np.float32(0.3), 0.0
    for seed in range(30):
        rows = problem(4, seed, spread=20.0)
        whole = residual_sums(rows[0].copy(), *rows[1:], 4, bound, logistic)
        for gone in range(4):
            kept = [np.delete(part, gone) if part.size == 4 else part for part in rows]
            kept[3] = rows[3]
            part = residual_sums(*kept, 4, bound, logistic)
            largest = max(largest, float(np.linalg.norm(whole - part)))
    assert largest <= bound * (1 + 1e-6)
    assert largest == pytest.approx(float(bound), rel=1e-5)


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
