import numpy as np

from dprepro.ebm.cuts import random_cuts
from dprepro.ebm.kernel import NEVER


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
