"""The pass over the rows against NumPy, and its sensitivities by brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit, logit

from dprepro.methods.dp_ebm_plus.kernel import (
    UNIT,
    add_by_code,
    from_units,
    limited_residuals,
    magnitude_counts,
    move_and_weigh,
    move_scores,
    residual_sums,
    rounded,
    to_units,
)
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED

KINDS = pytest.mark.parametrize("logistic", [True, False])
BOUNDS = pytest.mark.parametrize("bound", [0.05, 0.3, 0.5, 0.6, 0.75, 0.9, 0.99, 1.0])


def problem(rows, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    scores = to_units(spread * rng.normal(size=rows))
    targets = to_units(rng.integers(0, 2, rows))
    last, codes = rng.integers(0, 4, (2, rows)).astype(np.uint8)
    return scores, targets, last, to_units(rng.normal(size=4)), codes


def predictions(scores, logistic):
    """Return probabilities, or scores clipped to the range of a regression's targets."""
    return expit(from_units(scores)) if logistic else from_units(scores).clip(-0.5, 0.5)


@KINDS
@pytest.mark.parametrize("rows", [1, 7, 2049, 5000])
def test_it_does_what_numpy_does(rows, logistic):
    scores, targets, last, change, codes = problem(rows)
    updated = scores + change[last]
    residuals = np.clip(from_units(targets) - predictions(updated, logistic), -0.8, 0.8)
    curvatures = np.abs(residuals) * (1 - np.abs(residuals)) if logistic else np.zeros(rows)
    sums = residual_sums(scores, targets, last, change, codes, 4, to_units(0.8), logistic)
    assert sums.shape == (2, 4)
    sums = from_units(sums)
    np.testing.assert_allclose(sums[0], np.bincount(codes, residuals, 4), atol=1e-6 * rows)
    np.testing.assert_allclose(sums[1], np.bincount(codes, curvatures, 4), atol=1e-6 * rows)
    np.testing.assert_array_equal(scores, updated)


def one_row(scores, target, bound, *, logistic):
    """Return the norm of the part of each of 256 rows, which lie in a bin each."""
    codes = np.arange(256, dtype=np.uint8)
    targets, none = np.full(256, to_units(target)), np.zeros(256, np.uint8)
    sums = residual_sums(
        to_units(scores), targets, none, np.zeros(1, np.int32), codes, 256,
        math.floor(bound * 2**24), logistic,
    )  # fmt: skip
    return np.linalg.norm(from_units(sums), axis=0)


@BOUNDS
def test_the_part_of_a_label_is_as_large_as_is_paid_for_and_no_larger(bound):
    """Brute force over p = sigmoid(score), certain ones too, and both labels."""
    scores = np.concatenate([logit(np.linspace(0.002, 0.998, 252)), [-60.0, 60.0, -1e4, 1e4]])
    norms = [one_row(scores, label, bound, logistic=True).max() for label in (0.0, 1.0)]
    paid = LOGISTIC.part_norm(bound)
    for largest in norms:
        assert 0.99 * paid < largest <= paid


@BOUNDS
def test_the_part_of_a_number_is_as_large_as_is_paid_for_and_no_larger(bound):
    scores = np.linspace(-1.6, 1.6, 256)
    largest = max(one_row(scores, y, bound, logistic=False).max() for y in (-0.5, 0.0, 0.5))
    paid = SQUARED.part_norm(bound)
    assert 0.99 * paid < largest <= paid


@KINDS
def test_a_row_less_moves_the_sums_by_its_own_part(logistic):
    bound, nothing = to_units(0.3), np.zeros(4, np.int32)
    for seed in range(10):
        rows = problem(9, seed, spread=20.0)
        scores = rows[0].copy()
        whole = residual_sums(scores, *rows[1:], 4, bound, logistic)
        for gone in range(9):
            kept = [np.delete(part, gone) if part.size == 9 else part for part in rows]
            alone = [part[gone : gone + 1] for part in (scores, rows[1], rows[2], rows[4])]
            part = residual_sums(*alone[:3], nothing, alone[3], 4, bound, logistic)
            less = residual_sums(*kept, 4, bound, logistic)
            np.testing.assert_array_equal(whole - less, part)


def test_magnitudes_are_counted_by_half_octaves_and_one_row_counts_once():
    targets = to_units([1.5, 1.0, 0.8, -0.5, 0.1, 0.0])
    zeros, none = np.zeros(6, np.uint8), np.zeros(1, np.int32)
    counts = magnitude_counts(np.zeros(6, np.int32), targets, zeros, none, 6)
    # Above 2^-1/2: three; 1/2 lies at the lower edge of its cell; 0.1 and 0 are below 2^-5/2.
    np.testing.assert_array_equal(counts, [3, 0, 1, 0, 0, 2])
    for row in range(6):
        scores = np.zeros(5, np.int32)
        less = magnitude_counts(scores, np.delete(targets, row), zeros[:5], none, 6)
        assert np.abs(counts - less).sum() == 1


BEYOND = to_units([0.5, 0.5 + UNIT, 0.7, 1.0, 3.0, 63.9])
BEYOND = np.concatenate([BEYOND, -BEYOND])
"""Scores at the ends of the range of a regression's targets, and beyond."""


@pytest.mark.parametrize("target", [-0.5, -0.3, 0.0, 0.2, 0.5])
def test_scores_beyond_the_range_of_targets_count_as_its_end(target):
    """As predictions do: in sums of residuals, in those of codes, and in counts of their sizes."""
    targets, n = np.full(12, to_units(target)), BEYOND.size
    ends = np.sign(BEYOND) * np.int32(2**23)
    rows, none = np.zeros(n, np.uint8), np.zeros(1, np.int32)
    codes, ones, found = np.arange(n, dtype=np.uint8), np.ones(n, np.int32), []
    for scores in (BEYOND, ends):
        limited = np.empty(n, np.int32)
        limited_residuals(scores.copy(), targets, ones, 2.0**24, False, limited)
        sums = residual_sums(scores.copy(), targets, rows, none, codes, n, 2**24, False)
        sizes = [
            magnitude_counts(scores[[i]], targets[[i]], rows[[i]], none, 20).argmax()
            for i in range(n)
        ]
        found.append(np.stack([limited, sums[0], sizes]))
    np.testing.assert_array_equal(*found)
    residuals = to_units(target) - ends
    np.testing.assert_array_equal(found[0][:2], np.stack([residuals, residuals]))


def test_scores_stay_where_they_are_though_they_count_as_the_end_of_the_range():
    """Else a change that takes them back would not be the one that took them there."""
    scores, n = BEYOND.copy(), BEYOND.size
    targets, rows, none = np.zeros(n, np.int32), np.zeros(n, np.uint8), np.zeros(1, np.int32)
    limited_residuals(scores, targets, np.ones(n, np.int32), 9.0, False, np.empty(n, np.int32))
    residual_sums(scores, targets, rows, none, rows, 1, 2**24, False)
    magnitude_counts(scores, targets, rows, none, 20)
    np.testing.assert_array_equal(scores, BEYOND)


def test_every_magnitude_has_the_cell_that_whole_numbers_say():
    """r^2 is at most 2^-j and above 2^-(j + 1): no root, no logarithm."""
    none = np.zeros(1, np.int32)
    for size in (*range(1, 300), 2**23, 2**24 - 1, 2**24, 2**24 + 1, 2**30):
        (cell,) = [j for j in range(49) if 2 ** (48 - j - 1) < size**2 <= 2 ** (48 - j)] or [0]
        for target in (size, -size):
            rows = np.array([target], np.int32)
            counts = magnitude_counts(none.copy(), rows, np.zeros(1, np.uint8), none, 60)
            assert (target, counts.argmax()) == (target, cell)


def residual_of(score, label, bound):
    sums = residual_sums(
        np.array([score], np.int32), np.array([label << 24], np.int32), np.zeros(1, np.uint8),
        np.zeros(1, np.int32), np.zeros(1, np.uint8), 1, bound, True,
    )  # fmt: skip
    return sums[:, 0]


@pytest.mark.parametrize("bound", [0, 1, 2**12 + 1, 2**23, 2**24])
@pytest.mark.parametrize("label", [0, 1])
def test_no_score_has_a_part_above_the_bound(label, bound):
    """Every score that can be, in steps that are no power of two, and the ends."""
    ends = [2**30 - 1, 2**24, 1]
    scores = [*range(-(2**30), 2**30, 104_729 * 20), *ends, *(-score for score in ends)]
    parts = np.array([residual_of(score, label, bound) for score in scores])
    size = np.abs(parts[:, 0])
    assert bound - 2 <= size.max() <= bound
    assert (parts[:, 0] >= 0).all() if label else (parts[:, 0] <= 0).all()
    np.testing.assert_array_equal(parts[:, 1], size * (2**24 - size) >> 24)


def test_a_part_depends_on_nothing_but_the_row():
    """One by one, in any order, in blocks of any length: the same scores and sums, to the bit."""
    scores, targets, last, change, codes = problem(5003)
    whole = scores.copy()
    sums = residual_sums(whole, targets, last, change, codes, 4, to_units(0.9), True)
    order = np.random.default_rng(1).permutation(5003)
    for pieces in (1, 2, 17, 1000):
        again, moved = np.zeros_like(sums), []
        for at in np.array_split(order, pieces):
            piece = scores[at]
            again += residual_sums(
                piece, targets[at], last[at], change, codes[at], 4, to_units(0.9), True
            )
            moved.append(piece)
        np.testing.assert_array_equal(again, sums)
        np.testing.assert_array_equal(np.concatenate(moved), whole[order])


def test_scores_stop_at_the_largest():
    scores = to_units([60.0, -60.0, 0.0])
    move_scores(scores, np.array([0, 1, 0], np.uint8), to_units([50.0, -50.0]))
    np.testing.assert_array_equal(scores, [2**30 - 1, 1 - 2**30, 50 * 2**24])
    assert from_units(to_units(1e300)) == (2**30 - 1) * UNIT


def test_values_are_rounded_to_the_nearest_whole_number_of_units():
    values = np.random.default_rng(0).normal(size=1000)
    found = rounded(values)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found / UNIT, np.rint(values / UNIT))
    np.testing.assert_array_equal(rounded(found), found)


def test_counting_magnitudes_applies_the_change_too():
    scores, targets, last, change, _ = problem(50)
    updated = scores + change[last]
    magnitude_counts(scores, targets, last, change, 20)
    np.testing.assert_array_equal(scores, updated)


# --- codes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 7, 2049])
def test_scores_move_and_norms_grow_by_what_a_code_says(rows):
    scores, _, _, change, codes = problem(rows)
    norms, squares = np.arange(rows, dtype=np.int32), np.array([5, 2**30, 0, 7], np.int32)
    moved, grown = scores + change[codes], norms + squares[codes]
    move_and_weigh(scores, norms, codes, change, squares)
    np.testing.assert_array_equal(scores, moved)
    np.testing.assert_array_equal(norms, grown)
    assert norms.dtype == np.int32


def test_scores_that_move_with_norms_stop_at_the_largest():
    scores, norms = to_units([60.0, -60.0, 1.0]), np.zeros(3, np.int32)
    codes, change = np.array([0, 1, 0], np.uint8), to_units([50.0, -50.0])
    expected = scores.copy()
    move_scores(expected, codes, change)
    move_and_weigh(scores, norms, codes, change, np.zeros(2, np.int32))
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(scores, [2**30 - 1, 1 - 2**30, 51 * 2**24])


@pytest.mark.parametrize("bound", [0.5, 2.0**24, 3.7e8, 2.0**50])
@pytest.mark.parametrize("rows", [1, 7, 5000])
@KINDS
def test_residuals_are_limited_by_the_root_of_the_norm(rows, bound, logistic):
    scores, targets, *_ = problem(rows)
    norms = np.random.default_rng(1).integers(1, 2**31, rows).astype(np.int32)
    norms[0] = 1
    out, before = np.empty(rows, np.int32), scores.copy()
    limited_residuals(scores, targets, norms, bound, logistic, out)
    free = np.empty(rows, np.int32)
    limited_residuals(scores, targets, np.ones(rows, np.int32), 2.0**24, logistic, free)
    residuals = (from_units(targets) - predictions(scores, logistic)).clip(-1, 1)
    np.testing.assert_allclose(from_units(free), residuals, atol=3e-7)
    limits = np.floor(np.minimum(bound / np.sqrt(norms.astype(float)), 2.0**24))
    np.testing.assert_array_equal(out, np.clip(free, -limits, limits))
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("norm", [1, 2, 3, 2**20, 2**20 + 1, 2**31 - 1])
@pytest.mark.parametrize("bound", [0.999, 1.0, 2.0**24 - 1, 2.0**24, 2.0**34 / 3, 1e300])
@KINDS
def test_no_limited_residual_times_the_root_of_its_norm_exceeds_the_bound(norm, bound, logistic):
    """In whole numbers: r^2 times the norm is at most the square of the bound."""
    scores = np.array([-(2**30) + 1, -(2**24), 0, 2**24, 2**30 - 1], np.int32)
    norms, out, found = np.full(5, norm, np.int32), np.empty(5, np.int32), []
    for target in (0, 2**24) if logistic else (-(2**23), 2**23):
        limited_residuals(scores, np.full(5, target, np.int32), norms, bound, logistic, out)
        found += out.tolist()
    assert all(Fraction(r) ** 2 * norm <= Fraction(bound) ** 2 for r in found)
    # No probability is 0 or 1; from one end of the targets' range to the other it is 1.
    limit = 2**24 - 2 if logistic else 2**24
    limit = min(math.isqrt(math.floor(Fraction(bound) ** 2 / norm)), limit)
    assert limit - 1 <= max(found) <= limit
    assert -limit <= min(found) <= -limit + 1


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 4099])
def test_numbers_are_added_by_their_code_to_what_is_there(rows):
    rng = np.random.default_rng(rows)
    numbers = rng.integers(-(2**24), 2**24, rows).astype(np.int32)
    codes = rng.integers(0, 5, rows).astype(np.uint8)
    sums = np.arange(6) * 10**15
    expected = sums.copy()
    np.add.at(expected, codes, numbers.astype(np.int64))
    add_by_code(numbers, codes, sums)
    np.testing.assert_array_equal(sums, expected)
    assert sums[5] == 5 * 10**15


def test_sums_by_code_do_not_overflow():
    numbers, sums = np.full(2**12, 2**31 - 1, np.int32), np.zeros(256, np.int64)
    add_by_code(numbers, np.full(2**12, 255, np.uint8), sums)
    assert sums[255] == 2**12 * (2**31 - 1)
    assert not sums[:255].any()
