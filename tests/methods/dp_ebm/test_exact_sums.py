"""What is released of a sum moves by a row's own part and by nothing else, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprepro.methods.dp_ebm.losses import BLOCK_ROWS, LARGEST, LogisticLoss, SquaredLoss
from dprepro.methods.dp_ebm_plus.kernel import (
    BITS,
    COUNTS,
    LABELS,
    NUMBERS,
    add_by_code,
    from_units,
    limited_residuals,
    magnitude_cells,
    move_scores,
    to_units,
)
from dprepro.methods.dp_ebm_plus.queries import INTERCEPT, Code, CodedResiduals
from dprepro.methods.dp_ebm_plus.sums import coded_sums
from tests.methods.dp_ebm.lab import parts, pass_sums

LAST, CUTS = np.array([10, 21], np.uint8), np.array([5, 29], np.uint8)
RISES = np.array([1_677_722, 6_710_886, -5_033_165], np.int32)

LOSSES = {
    "labels": LogisticLoss(),
    "numbers": SquaredLoss(clip=0.5),
    "unbounded numbers": SquaredLoss(),
}
"""Of DP-EBM."""
PASSES = tuple(LOSSES)


def rows(n, seed=0):
    """Return scores, targets, codes before and codes now; rows of label 0 come first."""
    rng = np.random.default_rng(seed)
    scores = (4 * rng.standard_normal(n, np.float32)).astype(np.float32)
    codes = rng.integers(0, 32, (2, n), np.uint8)
    return scores, (np.arange(n) > n // 3).astype(np.float32), codes[0], codes[1]


def step_sums(which, scores, targets, before, now):
    """Return the sums of one step of DP-EBM, in units of what a row can add at most."""
    loss = LOSSES[which]
    whole = np.rint(np.ldexp(scores.astype(float), loss.score_bits))
    sums = pass_sums(loss, whole, loss.whole(targets), before, LAST, RISES, now, CUTS)
    return sums / (LARGEST if loss.whole_bound > LARGEST else loss.whole_bound)


def limited(scores, targets, before, kind, bound):
    """Return residuals, int32 (n,), of rows whose scores have moved."""
    scores, found = to_units(scores), np.empty(targets.size, np.int32)
    move_scores(scores, before, to_units(np.linspace(-1, 1, 32)))
    ones = np.ones(targets.size, np.int32)
    limited_residuals(scores, to_units(targets), ones, bound * 2.0**BITS, kind, found)
    return found


def sums_of_bins(which, scores, targets, before, now):
    sums = np.zeros(32, np.int64)
    kind = LABELS if which == "labels" else NUMBERS
    add_by_code(limited(scores, targets, before, kind, 0.7), now, sums)
    return from_units(sums)


def sums_by_codes(_, scores, targets, before, now):
    weights = 2.0 ** (np.arange(32) % 3 - 1)
    asked = (
        Code(INTERCEPT, np.ones(1), np.zeros(1, int)),
        Code(1, weights, np.full(32, 8)),
    )
    bins = {INTERCEPT: np.zeros(now.size, np.uint8), 0: before, 1: now}
    changes = {0: to_units(np.linspace(-1, 1, 32))}
    query = CodedResiduals(1.0, 1.0, asked, 1.0)
    # Weights are powers of 2: so many rows' sums are exact in float64, too.
    return coded_sums(
        to_units(scores), to_units(targets), bins.__getitem__, query, changes, LABELS
    ).value


SUMS = [
    *[pytest.param(step_sums, which, id=which) for which in PASSES],
    pytest.param(sums_of_bins, "labels", id="bins of labels"),
    pytest.param(sums_of_bins, "numbers", id="bins of numbers"),
    pytest.param(sums_by_codes, "labels", id="codes of labels"),
]


@pytest.mark.parametrize(("sums", "which"), SUMS)
@pytest.mark.parametrize("n", [1, 3, 63, 64, 65, 1000, BLOCK_ROWS, 2 * BLOCK_ROWS + 77])
def test_the_order_of_rows_changes_no_bit(n, sums, which):
    table = rows(n)
    found = sums(which, *table)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(n)
        np.testing.assert_array_equal(sums(which, *(column[order] for column in table)), found)


@pytest.mark.parametrize(("sums", "which"), SUMS)
def test_a_table_in_parts_has_the_same_sums(sums, which):
    """Wherever it is cut: a row ends up at other places in other vectors, or in what is left."""
    table = rows(2 * BLOCK_ROWS + 50)
    found = sums(which, *table)
    for cut in (1, 2, 15, 16, 17, 100, BLOCK_ROWS - 1, BLOCK_ROWS + 31):
        parts = [sums(which, *(column[part] for column in table)) for part in
                 (slice(cut), slice(cut, None))]  # fmt: skip
        np.testing.assert_array_equal(parts[0] + parts[1], found)


@pytest.mark.parametrize(("sums", "which"), SUMS)
def test_a_row_less_moves_the_sums_by_its_own_part_and_that_is_at_most_1(sums, which):
    table = rows(100_003)
    if which == "unbounded numbers":
        table = (table[0] / 40, *table[1:])
    whole = sums(which, *table)
    largest = 0.0
    for gone in (0, 1, 40_000, 77_777, 100_002):
        less = sums(which, *(np.delete(column, gone) for column in table))
        own = sums(which, *(column[gone : gone + 1] for column in table))
        np.testing.assert_array_equal(whole - less, own)
        largest = max(largest, np.abs(own).max())
    assert 0.1 < largest <= (1.5 if which == "unbounded numbers" else 1.0)


@pytest.mark.parametrize("which", PASSES)
def test_the_sums_of_a_step_are_what_numpy_says(which):
    scores, targets, before, now = rows(30_000)
    loss = LOSSES[which]
    whole = np.rint(np.ldexp(scores.astype(float), loss.score_bits)).astype(np.int64)
    whole += RISES[0] + (before[:, None] >= LAST) @ RISES[1:].astype(np.int64)
    part = parts(loss, loss.whole(targets).astype(np.int64), whole, loss.whole_bound)
    expected = [part.sum(), part[now >= CUTS[0]].sum(), part[now >= CUTS[1]].sum()]
    unit = LARGEST if which == "unbounded numbers" else loss.whole_bound
    np.testing.assert_array_equal(step_sums(which, scores, targets, before, now) * unit, expected)


@pytest.mark.parametrize("which", PASSES)
def test_sums_of_twenty_million_rows_are_exact(which):
    """The same thousand rows again and again: so many times the sums of a thousand."""
    n, times = 1000, 20_000
    scores, targets, before, now = rows(n)
    few = step_sums(which, scores, targets, before, now)
    # Each row's copies lie together, which keeps labels ascending.
    many = step_sums(which, *(np.repeat(c, times) for c in (scores, targets, before, now)))
    np.testing.assert_array_equal(many, times * few)


@pytest.mark.parametrize("which", PASSES)
def test_a_block_of_the_largest_parts_does_not_overflow(which):
    """All rows contradict what is predicted of them, as much as they can."""
    n = 3 * BLOCK_ROWS
    for target in (0.0, 1.0):
        scores = np.full(n, 40 * (1 - 2 * target), np.float32)
        codes = np.full(n, 31, np.uint8)
        targets = np.full(n, target, np.float32)
        if which == "unbounded numbers":
            scores /= 40
        sums = step_sums(which, scores, targets, codes, codes)
        least = 0.5 if which == "unbounded numbers" else 1 - 1 / LARGEST
        assert (np.abs(sums) >= least * n).all()
        assert (np.sign(sums) == 2 * target - 1).all()


@pytest.mark.parametrize("kind", [LABELS, NUMBERS, COUNTS])
@settings(max_examples=300, deadline=None)
@given(
    st.floats(-1e4, 1e4, width=32),
    st.sampled_from([0.0, 1.0, 0.25]),
    st.one_of(st.integers(1, 256).map(lambda k: k / 256), st.floats(2**-10, 1.0, width=32)),
)
def test_no_residual_is_longer_than_what_is_charged(kind, score, target, bound):
    target = round(target) if kind == LABELS else target
    one = np.zeros(1, np.uint8)
    found = limited(np.array([score]), np.array([target]), one, kind, bound)
    assert abs(int(found[0])) <= bound * 2**BITS


@pytest.mark.parametrize("n", [5, 3000])
def test_a_residual_lies_in_the_half_octave_that_its_size_says(n):
    scores, targets, before, _ = rows(n)
    residuals = limited(scores, targets, before, NUMBERS, 1.0)
    cells = magnitude_cells(residuals, 20)
    sizes = np.maximum(np.abs(from_units(residuals)), 2.0**-30)
    expected = np.clip(np.floor(-2 * np.log2(sizes) + 1e-12), 0, 19)
    np.testing.assert_array_equal(cells, expected)
