"""What is done with each row against NumPy, and that its part is limited, by brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit

from dprepro.methods.dp_ebm_plus.kernel import (
    COUNTS,
    LABELS,
    NUMBERS,
    UNIT,
    add_by_code,
    from_units,
    limited_residuals,
    magnitude_cells,
    move_and_weigh,
    move_scores,
    rounded,
    to_units,
)

KINDS = pytest.mark.parametrize(
    "kind", [LABELS, NUMBERS, COUNTS], ids=["labels", "numbers", "counts"]
)


def problem(rows, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    scores = to_units(spread * rng.normal(size=rows))
    targets = to_units(rng.integers(0, 2, rows))
    last, codes = rng.integers(0, 4, (2, rows)).astype(np.uint8)
    return scores, targets, last, to_units(rng.normal(size=4)), codes


def predictions(scores, kind):
    """Return probabilities, scores clipped to the range of a regression's targets, or rates."""
    scores = from_units(scores)
    return {
        LABELS: expit(scores), NUMBERS: scores.clip(-0.5, 0.5), COUNTS: np.exp(scores.clip(max=0)),
    }[kind]  # fmt: skip


def limited(scores, targets, kind, bound=2.0**24, norm=1):
    """Return what `limited_residuals` writes of rows whose norms are alike."""
    found = np.empty(scores.size, np.int32)
    norms = np.full(scores.size, norm, np.int32)
    limited_residuals(scores, targets, norms, float(bound), kind, found)
    return found


def test_sizes_are_half_octaves():
    residuals = to_units([1.5, 1.0, 0.8, -0.5, 0.1, 0.0])
    # 1/2 lies at the lower edge of its cell; 0.1 and 0 are below 2^-5/2, where the last one ends.
    np.testing.assert_array_equal(magnitude_cells(residuals, 6), [0, 0, 0, 2, 5, 5])


def test_every_size_has_the_cell_that_whole_numbers_say():
    """r^2 is at most 2^-j and above 2^-(j + 1): no root, no logarithm."""
    for size in (*range(1, 300), 2**23, 2**24 - 1, 2**24, 2**24 + 1, 2**30):
        (cell,) = [j for j in range(49) if 2 ** (48 - j - 1) < size**2 <= 2 ** (48 - j)] or [0]
        found = magnitude_cells(np.array([size, -size], np.int32), 60)
        assert (size, found.tolist()) == (size, [cell, cell])


@pytest.mark.parametrize("target", [-0.5, -0.3, 0.0, 0.2, 0.5])
def test_scores_beyond_the_range_of_targets_count_as_its_end(target):
    """As predictions do. They stay where they are: else a change back would not lead back."""
    beyond = to_units([0.5, 0.5 + UNIT, 0.7, 1.0, 3.0, 63.9])
    beyond = np.concatenate([beyond, -beyond])
    scores, targets = beyond.copy(), np.full(12, to_units(target))
    found = limited(scores, targets, NUMBERS)
    np.testing.assert_array_equal(found, to_units(target) - np.sign(beyond) * np.int32(2**23))
    np.testing.assert_array_equal(scores, beyond)


@pytest.mark.parametrize("bound", [0, 1, 2**12 + 1, 2**23, 2**24])
@pytest.mark.parametrize("label", [0, 1])
def test_no_score_has_a_part_above_the_bound(label, bound):
    """Every score that can be, in steps that are no power of two, and the ends."""
    ends = [2**30 - 1, 2**24, 1]
    scores = [*range(-(2**30), 2**30, 104_729 * 20), *ends, *(-score for score in ends)]
    scores = np.array(scores, np.int32)
    parts = limited(scores, np.full(scores.size, label << 24, np.int32), LABELS, bound)
    assert bound - 2 <= np.abs(parts).max() <= bound
    assert (parts >= 0).all() if label else (parts <= 0).all()


@KINDS
def test_a_part_depends_on_nothing_but_the_row(kind):
    """One by one, in any order, in blocks of any length: the same residuals, to the bit."""
    scores, targets, *_ = problem(5003)
    whole = limited(scores, targets, kind, 0.9 * 2**24)
    order = np.random.default_rng(1).permutation(5003)
    for pieces in (1, 2, 17, 1000):
        parts = [
            limited(scores[at], targets[at], kind, 0.9 * 2**24)
            for at in np.array_split(order, pieces)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), whole[order])


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
def test_residuals_are_limited_by_the_root_of_the_norm(rows, bound, kind):
    scores, targets, *_ = problem(rows)
    norms = np.random.default_rng(1).integers(1, 2**31, rows).astype(np.int32)
    norms[0] = 1
    out, before = np.empty(rows, np.int32), scores.copy()
    limited_residuals(scores, targets, norms, bound, kind, out)
    free = limited(scores, targets, kind)
    residuals = (from_units(targets) - predictions(scores, kind)).clip(-1, 1)
    np.testing.assert_allclose(from_units(free), residuals, atol=3e-7)
    limits = np.floor(np.minimum(bound / np.sqrt(norms.astype(float)), 2.0**24))
    np.testing.assert_array_equal(out, np.clip(free, -limits, limits))
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("norm", [1, 2, 3, 2**20, 2**20 + 1, 2**31 - 1])
@pytest.mark.parametrize("bound", [0.999, 1.0, 2.0**24 - 1, 2.0**24, 2.0**34 / 3, 1e300])
@KINDS
def test_no_limited_residual_times_the_root_of_its_norm_exceeds_the_bound(norm, bound, kind):
    """In whole numbers: r^2 times the norm is at most the square of the bound."""
    scores = np.array([-(2**30) + 1, -(2**24), 0, 2**24, 2**30 - 1], np.int32)
    found = []
    for target in (-(2**23), 2**23) if kind == NUMBERS else (0, 2**24):
        found += limited(scores, np.full(5, target, np.int32), kind, bound, norm).tolist()
    assert all(Fraction(r) ** 2 * norm <= Fraction(bound) ** 2 for r in found)
    # No probability is 0 or 1; from one end of the targets' range to the other it is 1.
    limit = 2**24 - 2 if kind == LABELS else 2**24
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
