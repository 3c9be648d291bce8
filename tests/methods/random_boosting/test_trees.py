"""Random trees: drawn from public choices, and the same rows in the same leaves by bin or value."""

import numpy as np
import pytest

from dprepro.methods.random_boosting.candidates import bins
from dprepro.methods.random_boosting.trees import draw_tree, sum_of_steps

CANDIDATES = [np.arange(4.0), np.arange(2.0), np.array([0.5])]


def tree(seed=0, features=(0, 1, 2), depth=4):
    return draw_tree(np.random.default_rng(seed), CANDIDATES, features, depth)


def rows(n=500, seed=1):
    values = np.random.default_rng(seed).uniform(-1, 5, (3, n))
    values[:, 0] = np.nan
    codes = [bins(v, c) for v, c in zip(values, CANDIDATES, strict=True)]
    return values, np.stack(codes).astype(np.uint8)


@pytest.mark.parametrize("features", [(0, 1, 2), (0,)])
@pytest.mark.parametrize("seed", range(5))
def test_a_row_has_one_leaf_whether_it_is_found_by_bin_or_by_value(features, seed):
    drawn = tree(seed, features)
    values, codes = rows()
    places = drawn.places(codes)
    np.testing.assert_array_equal(places, drawn.places_of(values))
    assert set(places.tolist()) <= set(range(drawn.leaves))


def test_a_tree_of_one_feature_numbers_its_leaves_from_left_to_right():
    drawn = tree(3, (0,))
    values, _ = rows()
    order = np.argsort(values[0][1:])
    assert drawn.only_feature == 0
    assert (np.diff(drawn.places_of(values)[1:][order]) >= 0).all()
    assert drawn.places_of(values)[0] == drawn.leaves - 1  # missing: above all


def test_splits_stop_at_the_depth_and_where_no_candidate_is_left():
    assert tree(depth=1).leaves == 2
    assert tree(features=(2,)).leaves == 2  # one candidate
    assert max(tree(seed).leaves for seed in range(20)) <= 16


def test_features_and_candidates_are_all_alike_likely():
    first = [tree(seed, depth=1) for seed in range(3000)]
    chosen = np.bincount([t.feature[0] for t in first], minlength=3)
    assert (np.abs(chosen - 1000) < 150).all()  # standard deviation 26
    cuts = np.bincount([t.cut[0] for t in first if t.feature[0] == 0], minlength=4)
    assert (np.abs(cuts - chosen[0] / 4) < 100).all()


def test_the_candidate_just_below_a_split_takes_no_part_on_its_left():
    for seed in range(50):
        drawn = tree(seed, (0,))
        cuts = np.sort(drawn.cut[drawn.feature >= 0])
        left = cuts[cuts < drawn.cut[0]]
        assert drawn.cut[0] - 1 not in left


def test_trees_of_one_feature_add_up_to_one_function():
    trees = [tree(seed, (0,)) for seed in range(6)]
    values = [np.random.default_rng(k).normal(size=t.leaves) for k, t in enumerate(trees)]
    given, _ = rows()
    thresholds, steps = sum_of_steps(trees, values)
    wanted = sum(v[t.places_of(given)] for t, v in zip(trees, values, strict=True))
    found = steps[np.searchsorted(thresholds, given[0], side="left")]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert sum_of_steps([], [])[1].tolist() == [0.0]
