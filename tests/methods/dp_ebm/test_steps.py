"""Lines 16 to 22 of Algorithm 2 in whole numbers, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.methods.dp_ebm.kernel import add_to_shape

FAR = 10**12


def added(
    shape: list[int], cuts: list[int], released: list[int], lowest: int = -FAR, highest: int = FAR
) -> tuple[list[int], list[int]]:
    """Add leaf sums at rate 0.5 to a function of bins of two rows; return it, and the rises."""
    whole, counts = np.array(shape, np.int64), np.full(len(shape), 2.0)
    rises = np.full(len(cuts) + 1, 77, np.int32)
    add_to_shape(
        whole, np.array(cuts, np.uint8), np.array(released, np.int64), counts, len(cuts) + 1, 0.5,
        lowest, highest, rises,
    )  # fmt: skip
    return whole.tolist(), rises.tolist()


def test_every_bin_of_a_leaf_rises_by_the_average_and_scores_by_what_it_rises_more() -> None:
    assert added([0, 1, 2, 3, 4], [2, 3], [80, 8, -40]) == ([10, 11, 4, -2, -1], [10, -8, -7])


def test_averages_are_rounded_to_the_nearest_whole_number() -> None:
    assert added([0, 0], [1], [7, 9]) == ([2, 2], [2, 0])
    assert added([0, 0], [1], [-11, 5]) == ([-3, 1], [-3, 4])


@pytest.mark.parametrize("empty", [255, 3])
def test_a_leaf_without_bins_is_passed_over(empty: int) -> None:
    """What it was released is not added anywhere, and later leaves get theirs."""
    assert added([0, 0, 0], [0, 2], [99, 8, -8])[0] == [1, 1, -2]
    assert added([0, 0, 0], [2, 2], [8, 99, -8]) == ([1, 1, -2], [1, 0, -3])
    assert added([0, 0, 0], [1, empty], [8, 8, 99]) == ([2, 1, 1], [2, -1, 0])


def test_a_leaf_of_no_rows_adds_nothing() -> None:
    shape, rises = np.zeros(2, np.int64), np.zeros(2, np.int32)
    add_to_shape(
        shape, np.array([1], np.uint8), np.array([80, 80]), np.array([0.0, 4.0]), 2, 0.5, -FAR,
        FAR, rises,
    )  # fmt: skip
    assert (shape.tolist(), rises.tolist()) == ([0, 10], [0, 10])


def test_no_bin_leaves_its_range() -> None:
    """The whole leaf then rises by less, so that its bins keep their differences."""
    assert added([5, 9, 0], [2], [800, 8], highest=20) == ([16, 20, 2], [11, -9])
    assert added([5, 9, 0], [2], [-800, 8], lowest=-20) == ([-20, -16, 2], [-25, 27])
    assert added([5, 9, 0], [2], [800, -8], -3, 20) == ([16, 20, -2], [11, -13])
