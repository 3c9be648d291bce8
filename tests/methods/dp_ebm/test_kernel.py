"""The kernel: bit by bit what whole numbers in Python give, and nearly what Algorithm 2 gives.

The tolerance of 2e-5 to Algorithm 2 is for residuals and leaf averages that are rounded to grids.
"""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm import kernel
from dprepro.methods.dp_ebm.losses import BLOCK_ROWS, LARGEST, LogisticLoss, SquaredLoss
from dprepro.runtime.threads import Threads
from tests.methods.dp_ebm.lab import LIMIT, boost_whole, problem

LABELS, ADAPTIVE = LogisticLoss(), LogisticLoss(adaptive=True)
CLIPPED, PUBLISHED = SquaredLoss(clip=0.5), SquaredLoss()
FAR_OFF = SquaredLoss.published(Domain((NumericFeature("x", 0, 1),), (100.0, 101.0)))
LOSSES = {
    "labels": LABELS,
    "adaptive": ADAPTIVE,
    "a start": replace(ADAPTIVE, start=0.7),
    "clipped": CLIPPED,
    "published": PUBLISHED,
    "far off": FAR_OFF,
}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def assert_whole(case, loss):
    """Compare with the reference to the last bit: functions, factors and leaf sums."""
    for found, expected in zip(case.boost(loss), boost_whole(case, loss), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 4, 5, 6])
@EVERY_LOSS
def test_the_kernel_is_the_reference_for_any_number_of_leaves(max_leaves, loss):
    case = problem([7, 32, 1, 2, 5], max_leaves)
    if loss is FAR_OFF:
        case = replace(case, targets=case.targets + 100.0)
    assert_whole(case, loss)
    assert np.abs(case.shapes(loss)).max() > 0.005


@EVERY_LOSS
@pytest.mark.parametrize("max_leaves", [1, 3, 5])
def test_few_rows(max_leaves, loss, monkeypatch):
    """As above, and quick without compiled code; there blocks are short, too."""
    monkeypatch.setattr(kernel, "BLOCK_ROWS", 16)
    case = problem([3, 6], max_leaves, rows=40, epochs=2)
    if loss is FAR_OFF:
        case = replace(case, targets=case.targets + 100.0)
    assert_whole(case, loss)


@pytest.mark.parametrize("logistic", [True, False])
@pytest.mark.parametrize("sizes", [0, 50])
def test_few_rows_move_without_a_sum(sizes, logistic):
    rng = np.random.default_rng(0)
    targets, codes = rng.integers(0, 2, sizes).astype(np.int32), rng.integers(0, 256, sizes)
    codes, below = codes.astype(np.uint8), np.array([20, 120, 200, 254], np.uint8)
    states, rises = np.arange(sizes, dtype=np.int32), np.array([3, 50, -700, 9000, 1], np.int32)
    blocks = kernel.cut_into_blocks(targets, logistic)
    kernel.move_states(states, targets, blocks, codes, below, rises, logistic)
    sign = np.where((targets > 0) & logistic, 1, -1)
    moved = rises[0] + (codes[:, None] > below) @ rises[1:]
    np.testing.assert_array_equal(states, np.arange(sizes) + sign * moved)


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("loss", [LABELS, CLIPPED, PUBLISHED], ids=str)
def test_the_kernel_is_algorithm_2_but_for_rounding(max_leaves, loss):
    case = problem([7, 32, 1, 2, 5], max_leaves)
    np.testing.assert_allclose(case.shapes(loss), case.by_the_paper(loss), atol=2e-5)


@pytest.mark.parametrize("n_bins", [1, 2, 3, 255, 256])
def test_from_1_to_256_bins(n_bins):
    case = problem([n_bins, 3], max_leaves=3)
    assert_whole(case, ADAPTIVE)
    np.testing.assert_allclose(case.shapes(LABELS), case.by_the_paper(LABELS), atol=2e-5)


@pytest.mark.parametrize(
    "rows", [0, 1, 2, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS]
)
@pytest.mark.parametrize("loss", [ADAPTIVE, CLIPPED], ids=str)
def test_at_the_borders_of_a_block(rows, loss):
    assert_whole(problem([4, 9], max_leaves=3, rows=rows), loss)


@EVERY_LOSS
@pytest.mark.parametrize("max_leaves", [3, 5])
def test_the_order_of_rows_is_in_no_bit(loss, max_leaves):
    case = problem([7, 32, 12], max_leaves, rows=5000, epochs=20)
    found = case.boost(loss)
    by_label = np.argsort(case.targets, kind="stable")
    for order in (by_label, by_label[::-1], np.random.default_rng(1).permutation(5000)):
        for one, other in zip(case.reordered(order).boost(loss), found, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("label", [0, 1])
def test_a_single_label_is_enough(label):
    case = problem([5, 6], 3)
    assert_whole(replace(case, targets=np.full_like(case.targets, label)), ADAPTIVE)


def test_residuals_are_clipped_to_the_bound():
    case = problem([6, 8], max_leaves=3)
    case = replace(case, targets=10.0 * case.targets)
    np.testing.assert_allclose(case.shapes(CLIPPED), case.by_the_paper(CLIPPED), atol=2e-5)
    assert np.abs(case.shapes(CLIPPED) - case.shapes(PUBLISHED)).max() > 0.5


def test_a_bound_caps_what_one_row_can_move():
    case = problem([6], max_leaves=3, epochs=1)
    outlier = np.zeros(case.targets.size)
    outlier[0] = 1e6
    moved = replace(case, targets=outlier).boost(CLIPPED)[2]
    zeroed = replace(case, targets=0.0 * outlier).boost(CLIPPED)[2]
    assert np.abs(moved - zeroed).sum() == LARGEST // 2


def test_adaptive_noise_is_scaled_by_what_the_released_functions_allow():
    case = replace(problem([7, 4, 12], max_leaves=3, epochs=8), scale=50.0 * LARGEST)
    shapes, factors, _ = case.boost(ADAPTIVE)
    for step in range(len(case.cuts)):
        so_far = np.ldexp(case.first(step).boost(ADAPTIVE)[0].astype(float), -24)
        by_feature = [so_far[k, :b] for k, b in enumerate(case.n_bins)]
        reach = max(sum(f.max() for f in by_feature), -sum(f.min() for f in by_feature))
        assert factors[step] == pytest.approx(1 / (1 + np.exp(-reach)), abs=4e-6)
    expected = case.by_the_paper(LABELS, factors)
    np.testing.assert_allclose(np.ldexp(shapes.astype(float), -24), expected, atol=1e-4)
    assert 0.5 < factors.min() < factors.max() < 1.0


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-10, 1.0, 2.0**30, 2.0**52.9])
@EVERY_LOSS
def test_any_noise_leaves_scores_in_range_and_is_that_of_the_reference(loss, scale):
    """Noise of 2^52.9 would throw scores far beyond int32: they stop at the limit."""
    case = replace(problem([7, 3, 40], 4, rows=500, epochs=6), scale=scale)
    assert_whole(case, loss)
    shapes = case.boost(loss)[0]
    reach = [np.abs([f[:b].max(), f[:b].min()]) for f, b in zip(shapes, case.n_bins, strict=True)]
    if scale > 2.0**52:
        assert sum(reach).max() > LIMIT // 2


def test_an_empty_leaf_stays_where_it_is():
    case = problem([5], max_leaves=3)
    shapes = replace(case, counts=0 * case.counts).boost(LABELS)[0]
    np.testing.assert_array_equal(shapes, 0)


def test_without_noise_the_released_sums_are_the_exact_ones():
    case = problem([6, 9], max_leaves=3)
    quiet = replace(case, normals=0 * case.normals)
    sums = quiet.boost(LABELS)[2]
    first = np.where(case.targets > 0, LARGEST // 2, -LARGEST // 2)
    leaf = (case.codes[0][:, None] >= case.cuts[0]).sum(axis=1)
    np.testing.assert_array_equal(sums[0], [first[leaf == k].sum() for k in range(3)])
    assert (case.boost(LABELS)[2] != sums).all()


def test_an_error_in_one_thread_ends_the_others(monkeypatch):
    """They wait for its sums, and would do so for ever."""
    given = problem([8, 8], 3)
    blocks = kernel._boost_blocks

    def fails(*arguments):
        if arguments[-3] == 1:
            raise MemoryError("thread 1")
        return blocks(*arguments)

    monkeypatch.setattr(kernel, "_boost_blocks", fails)
    with Threads(3) as threads, pytest.raises(MemoryError, match="thread 1"):
        given.boost(LogisticLoss(), threads=threads)
