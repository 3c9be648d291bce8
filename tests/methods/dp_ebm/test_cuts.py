import numpy as np
import pytest

from dprepro.methods.dp_ebm.binning import random_cuts
from dprepro.methods.dp_ebm.kernel import NEVER


def test_cuts_are_distinct_ascending_uniform_and_padded():
    cuts = random_cuts(np.random.default_rng(0), np.array([5, 2, 1]), 6000, 4)
    assert cuts.shape == (18_000, 4)
    by_feature = cuts.reshape(6000, 3, 4).astype(int)
    wide = by_feature[:, 0, :3]
    assert (np.diff(wide, axis=1) > 0).all()
    # Three of the four gaps, each left out equally often (chi-square, 3 degrees of freedom).
    left_out = 10 - wide.sum(axis=1)
    observed = np.bincount(left_out, minlength=5)[1:]
    assert ((observed - 1500) ** 2 / 1500).sum() < 30
    assert (by_feature[:, 1, 0] == 1).all()
    assert (by_feature[:, 1, 1:] == NEVER).all()
    assert (by_feature[:, 2] == NEVER).all()
    assert (by_feature[:, 0, 3] == NEVER).all()


def test_random_cuts_are_those_of_their_generator():
    first = random_cuts(np.random.default_rng(5), np.array([9, 4]), 3, 3)
    second = random_cuts(np.random.default_rng(5), np.array([9, 4]), 3, 3)
    np.testing.assert_array_equal(first, second)


def test_with_an_empty_first_bin_its_gap_is_drawn_as_often_as_any_and_parts_nothing():
    cuts = random_cuts(np.random.default_rng(0), np.array([5, 2, 1]), 6000, 3, True)
    wide, two, one = cuts.reshape(6000, 3, 2).astype(int).transpose(1, 0, 2)
    # Two of the five gaps of 1 + 5 bins: all ten pairs equally often (9 degrees of freedom).
    pairs, observed = np.unique(wide, axis=0, return_counts=True)
    assert pairs.tolist() == [
        [1, 2], [1, 3], [1, 4], [1, NEVER], [2, 3], [2, 4], [2, NEVER], [3, 4], [3, NEVER],
        [4, NEVER],
    ]  # fmt: skip
    assert ((observed - 600) ** 2 / 600).sum() < 30
    # 1 + 2 bins have two gaps, and both are drawn: the cut between the two bins is always there.
    assert (two == [1, NEVER]).all()
    assert (one == NEVER).all()


def test_an_empty_first_bin_needs_a_cut_that_stands_for_none():
    random_cuts(np.random.default_rng(0), np.array([255]), 2, 3, True)
    with pytest.raises(ValueError, match="at most 255 bins"):
        random_cuts(np.random.default_rng(0), np.array([256]), 2, 3, True)


def test_cuts_are_drawn_in_blocks_with_the_same_bits(monkeypatch):
    n_bins = np.array([1, 2, 7, 200, 256])
    at_once = random_cuts(np.random.default_rng(3), n_bins, 500, 4)
    monkeypatch.setattr("dprepro.methods.dp_ebm.binning._DRAWN", 7)
    np.testing.assert_array_equal(random_cuts(np.random.default_rng(3), n_bins, 500, 4), at_once)
