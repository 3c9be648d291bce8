"""The kernel against fractions, and the rules by which trees grow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dprepro.methods.dpboost.kernel import (
    GAIN_UNIT,
    LARGEST,
    LARGEST_GRADIENT,
    UNIT,
    add_trees,
    grow,
    on_grid,
    pack_tree,
    split_runs,
    truncated,
    whole,
)
from dprepro.methods.dpboost.sensitivity import gain_sensitivity
from dprepro.privacy.sampling import Bits
from dprepro.privacy.sampling.sampler import SMALLEST_SCALE, dyadic
from tests.methods.dpboost import plain
from tests.privacy.sampling import reference

STARTS = np.array([0, 4, 10, 13])
TINY = SMALLEST_SCALE * GAIN_UNIT
"""A scale at which the exponential mechanism takes the best split."""

ALL = -(2**62)
"""A floor that lets all gains pass."""


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, b, n) for b in np.diff(STARTS)]).astype(np.uint8)
    gradients = np.clip((codes[:, 1] > 2) - 0.5 * codes[:, 0] + rng.normal(size=n), -1, 1)
    return codes, truncated(gradients)


def columns(codes):
    """Return codes (n, K) feature by feature, as trees are grown from them."""
    return np.ascontiguousarray(codes.T)


def gain(gradients, left, ridge=0.1):
    """The gain of a split in units of `GAIN_UNIT`: what is rounded down is an exact fraction."""

    def score(side):
        total = Fraction(int(side.sum()), 2**24)
        return total**2 / (side.size + Fraction(ridge)) / Fraction(GAIN_UNIT) if side.size else 0

    both = math.floor(score(gradients[left]) + score(gradients[~left]))
    return both - math.floor(score(gradients))


def all_gains(codes, gradients, starts=STARTS, ridge=0.1):
    """(feature, cut) -> (gain, the smaller side's rows) for every candidate."""
    found = {}
    for j, bins in enumerate(np.diff(starts)):
        for cut in range(bins - 1):
            left = codes[:, j] <= cut
            found[j, cut] = gain(gradients, left, ridge), min(left.sum(), (~left).sum())
    return found


def fit(codes, gradients, *, scale=TINY, seed=0, max_depth=6, max_leaves=31, min_rows=20,
        complete=False):  # fmt: skip
    return grow(
        columns(codes), gradients, STARTS, Bits(seed).state, *dyadic(scale / GAIN_UNIT), 0.1,
        max_depth, max_leaves, min_rows, complete,
    )  # fmt: skip


def found_gains(codes, gradients, min_rows=0, floor=ALL):
    """Return (feature, cut) -> gain by the kernel, and which features are splittable."""
    splittable = np.ones(len(STARTS) - 1, bool)
    bins, runs = np.zeros((3, 256), np.int64), np.empty((5, STARTS[-1]), np.int64)
    n = split_runs(
        columns(codes), np.arange(len(codes)), gradients, STARTS, 0.1, min_rows, floor, splittable,
        bins, runs,
    )  # fmt: skip
    assert not bins.any()
    gains, first, lengths = runs[:3, :n]
    cuts = np.concatenate(
        [np.arange(a, a + b) for a, b in zip(first, lengths, strict=True)] or [[]]
    )
    features = np.searchsorted(STARTS, cuts, side="right") - 1
    places = zip(features.tolist(), (cuts - STARTS[features]).tolist(), strict=True)
    return dict(zip(places, np.repeat(gains, lengths).tolist(), strict=True)), splittable


def leaves_of(tree, codes):
    """Return the leaf (node) of every row, by walking the tree in NumPy."""
    feature, cut, left, *_ = tree
    node = np.zeros(len(codes), dtype=int)
    while (feature[node] >= 0).any():
        inner = feature[node] >= 0
        goes_right = codes[np.arange(len(codes)), feature[node]] > cut[node]
        node = np.where(inner, left[node] + goes_right, node)
    return node


def depths(tree):
    feature, _, left, *_ = tree
    depth = np.zeros(feature.size, dtype=int)
    for node in np.flatnonzero(feature >= 0):
        depth[left[node] : left[node] + 2] = depth[node] + 1
    return depth


def naive_tree(codes, gradients, depth):
    """Greedy and complete: {(): split, (0,): its left child's, ...}."""
    if depth == 0:
        return {}
    found = all_gains(codes, gradients)
    best = max(found, key=lambda split: found[split][0])
    left = codes[:, best[0]] <= best[1]
    tree = {(): best}
    for side, mask in enumerate((left, ~left)):
        below = naive_tree(codes[mask], gradients[mask], depth - 1)
        tree |= {(side, *path): split for path, split in below.items()}
    return tree


def test_gains_are_exact_fractions_rounded_down():
    """At 400 rows no floating-point error reaches the next whole number; every cut has a gain."""
    codes, gradients = rows()
    expected = all_gains(codes, gradients)
    assert found_gains(codes, gradients)[0] == {cut: value for cut, (value, _) in expected.items()}


@pytest.mark.parametrize("min_rows", [20, 120])
def test_small_sides_and_losses_are_no_candidates_as_published(min_rows):
    codes, gradients = rows()
    found, splittable = found_gains(codes, gradients, min_rows, floor=0)
    assert found == {
        place: value
        for place, (value, smaller) in all_gains(codes, gradients).items()
        if value > 0 and smaller >= min_rows
    }
    assert splittable.tolist() == [any(j == feature for feature, _ in found) for j in range(3)]


def test_splits_have_the_exponential_mechanisms_probabilities():
    codes, gradients = rows(n=60)
    scale, draws = 3.0, 20_000
    gains = np.array([value for value, _ in all_gains(codes, gradients).values()]) * GAIN_UNIT
    state, places = Bits(1).state, {place: i for i, place in enumerate(all_gains(codes, gradients))}
    counts = np.zeros(len(places))
    for _ in range(draws):
        feature, cut, *_ = grow(
            columns(codes), gradients, STARTS, state, *dyadic(scale / GAIN_UNIT), 0.1, 1, 2, 0, True
        )
        counts[places[feature[0], cut[0]]] += 1
    weights = np.exp((gains - gains.max()) / scale)
    assert weights.max() > 1.5 * weights.min()
    assert stats.chisquare(counts, draws * weights / weights.sum()).pvalue > 1e-4


def test_a_split_moves_by_no_more_than_epsilon_when_a_row_comes_or_goes():
    """The probabilities of all splits on neighbouring nodes, at the charged sensitivity."""
    epsilon, worst = 0.7, 0.0
    scale = 2 * gain_sensitivity(1.0) / epsilon
    for seed in range(30):
        codes, gradients = rows(n=12, seed=seed)
        probabilities = []
        for kept in (slice(None), slice(1, None)):
            found, _ = found_gains(codes[kept], gradients[kept])
            weights = np.exp(np.array(list(found.values())) * GAIN_UNIT / scale)
            probabilities.append(weights / weights.sum())
        worst = max(worst, np.abs(np.log(probabilities[0] / probabilities[1])).max())
    assert 0.05 < worst <= epsilon


def test_the_order_of_the_rows_moves_no_bit():
    codes, gradients = rows(n=3000)
    order = np.random.default_rng(5).permutation(3000)
    for one, two in zip(
        fit(codes, gradients, scale=5.0), fit(codes[order], gradients[order], scale=5.0),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(one, two)


def test_a_complete_tree_is_the_naive_one_when_nothing_is_random():
    codes, gradients = rows(n=3000)
    feature, cut, left, *_ = fit(
        codes, gradients, max_depth=3, max_leaves=8, min_rows=0, complete=True
    )
    expected = naive_tree(codes, gradients, 3)
    paths, seen = {0: ()}, {}
    for node in range(feature.size):
        if feature[node] >= 0:
            seen[paths[node]] = (feature[node], cut[node])
            paths[left[node]], paths[left[node] + 1] = (*paths[node], 0), (*paths[node], 1)
    assert seen == expected


def test_sums_and_counts_are_those_of_the_rows_that_reach_a_leaf():
    codes, gradients = rows()
    for limits in ({}, {"max_leaves": 64, "min_rows": 0, "complete": True}):
        tree = fit(codes, gradients, scale=5.0, **limits)
        reached = leaves_of(tree, codes)
        sums = np.zeros(tree[0].size, np.int64)
        np.add.at(sums, reached, gradients)
        counts = np.bincount(reached, minlength=tree[0].size)
        leaves = tree[0] < 0
        np.testing.assert_array_equal(tree[3][leaves], sums[leaves])
        np.testing.assert_array_equal(tree[4][leaves], counts[leaves])


@pytest.mark.parametrize("n", [0, 1, 400])
@pytest.mark.parametrize("depth", [1, 4])
def test_complete_trees_have_the_same_shape_whatever_the_rows(n, depth):
    codes, gradients = rows(n)
    tree = fit(codes, gradients, max_depth=depth, max_leaves=2**depth, min_rows=0, complete=True)
    assert tree[0].size == 2 ** (depth + 1) - 1
    assert (depths(tree)[tree[0] < 0] == depth).all()


def test_an_empty_node_chooses_uniformly():
    codes, gradients = rows(0)
    splits = [
        (tree[0][0], tree[1][0])
        for tree in (
            fit(codes, gradients, max_depth=1, max_leaves=2, min_rows=0, complete=True, seed=s)
            for s in range(2000)
        )
    ]
    _, counts = np.unique([10 * j + cut for j, cut in splits], return_counts=True)
    assert counts.size == STARTS[-1] - 3
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(
    ("max_depth", "max_leaves", "min_rows"), [(2, 31, 20), (6, 5, 20), (6, 31, 90)]
)
def test_best_first_trees_keep_their_limits(max_depth, max_leaves, min_rows):
    codes, gradients = rows(1000)
    tree = fit(
        codes, gradients, scale=50.0, max_depth=max_depth, max_leaves=max_leaves, min_rows=min_rows
    )
    leaves = tree[0] < 0
    assert 2 < leaves.sum() <= max_leaves
    assert depths(tree).max() <= max_depth
    assert tree[4][leaves].min() >= min_rows


def test_best_first_splits_the_leaf_with_the_largest_gain():
    codes, gradients = rows(1000)
    tree = fit(codes, gradients, max_leaves=3)
    second = tree[2].max() - 2
    root = codes[:, tree[0][0]] <= tree[1][0]
    best = [
        max(
            value
            for value, smaller in all_gains(codes[side], gradients[side]).values()
            if smaller >= 20
        )
        for side in (root, ~root)
    ]
    assert second == 1
    assert tree[0][1 + int(np.argmax(best))] >= 0
    assert tree[0][2 - int(np.argmax(best))] == -1


@pytest.mark.parametrize("spoil", ["few rows", "equal gradients", "no gradients"])
def test_best_first_trees_stay_a_leaf_where_no_split_helps(spoil):
    codes, gradients = rows(39 if spoil == "few rows" else 400)
    if spoil != "few rows":
        # Of equal ones lambda makes every split a loss; without any, a split gains 0.
        gradients = np.full(400, 2**24 if spoil == "equal gradients" else 0)
    assert fit(codes, gradients)[0].tolist() == [-1]


def test_a_feature_without_a_gain_is_not_tried_again_below():
    """As in LightGBM: it must not come back although a descendant could be split by it."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    # Balanced, the second feature says nothing by itself but everything given the first.
    gradients = np.where(first == second, 0.9, -0.9) + 0.1 * first
    for value in (0, 1):
        mask = second == value
        gradients[mask] -= gradients[mask].mean() - 0.05
    codes = np.column_stack([first, second, np.zeros(4000)]).astype(np.uint8)
    shared = columns(codes), truncated(gradients), np.array([0, 2, 4, 5]), Bits(0).state
    scale = dyadic(SMALLEST_SCALE)
    tree = grow(*shared, *scale, 0.1, 6, 31, 20, False)
    assert set(tree[0]) <= {-1, 0}
    complete = grow(*shared, *scale, 0.1, 2, 4, 0, True)
    assert 1 in complete[0]


def test_values_are_added_where_rows_end_up_and_once():
    codes, gradients = rows(n=3000)
    trees = [fit(codes, gradients, seed=seed, scale=5.0) for seed in range(3)]
    trees.insert(1, (np.array([-1]), np.zeros(1, int), np.zeros(1, int)))  # a leaf alone
    sizes = np.array([tree[0].size for tree in trees])
    roots = np.cumsum(sizes) - sizes
    values = [(1 + np.arange(size)) * 10**t for t, size in enumerate(sizes)]
    nodes, depth_of = np.stack([np.empty_like(np.concatenate(values)), np.concatenate(values)]), []
    for tree, root in zip(trees, roots, strict=True):
        depth_of.append(pack_tree(*tree[:3], root, nodes[0, root : root + tree[0].size]))
        assert depth_of[-1] == depths(tree).max()
    packed = np.ascontiguousarray(np.stack([roots, depth_of]))
    scores, added = np.full(len(codes), 5), np.zeros(len(codes), np.int64)
    some = np.arange(0, len(codes), 3)
    for asked, known in ((some, 1), (np.arange(len(codes)), 3), (some, 4), (some, 4)):
        add_trees(scores, added, codes, asked, nodes, packed[:, :known].copy())
    reached = [value[leaves_of(tree, codes)] for tree, value in zip(trees, values, strict=True)]
    expected = 5 + reached[0] + reached[1] + reached[2]
    expected[some] += reached[3][some]
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(added, np.where(np.isin(np.arange(len(codes)), some), 4, 3))


# --- against plain Python -------------------------------------------------------------------------


def hard_rows(kind):
    """Return codes (n, 4) of 1, 2, 40 and 255 bins, and gradients."""
    rng = np.random.default_rng(4)
    n = {"none": 0, "one": 1, "few": 9, "last bins": 30}.get(kind, 90)
    bins = np.array([1, 2, 40, 255])
    codes = rng.integers(0, bins, (n, 4)).astype(np.uint8)
    gradients = truncated(rng.uniform(-1, 1, n))
    if kind == "last bins":
        codes[:] = bins - 1
    if kind == "first bins":
        codes[:] = 0
    if kind == "two bins":
        codes = np.where(codes % 2, bins - 1, 0).astype(np.uint8)
    if kind == "extreme":
        gradients = rng.choice([-1, 1], n) * (LARGEST_GRADIENT - 1)
    return codes, gradients, bins


@pytest.mark.parametrize(
    "kind", ["none", "one", "few", "many", "last bins", "first bins", "two bins", "extreme"]
)
@pytest.mark.parametrize(
    ("max_depth", "max_leaves", "min_rows", "complete"),
    [(3, 8, 0, True), (1, 2, 0, True), (6, 5, 3, False), (3, 31, 20, False)],
)
@pytest.mark.parametrize("scale", [2.0**-10, 3e4, 1e9])
def test_trees_are_those_of_plain_python(kind, max_depth, max_leaves, min_rows, complete, scale):
    """The same nodes, sums and rows, from the same random words; and no word more is drawn."""
    codes, gradients, bins = hard_rows(kind)
    bits = Bits(9)
    words = reference.chacha20([int(word) for word in bits.state[4:12]])
    starts = np.concatenate([[0], np.cumsum(bins)])
    limits = 0.1, max_depth, max_leaves, min_rows, complete
    for _ in range(2):
        found = grow(columns(codes), gradients, starts, bits.state, *dyadic(scale), *limits)
        expected = plain.grow(columns(codes), gradients, bins, words, scale, *limits)
        assert [part.tolist() for part in found] == [*expected]
    assert int(bits.words(1)[0]) == next(words)


def test_sums_of_many_rows_with_the_largest_gradients_are_exact():
    """More rows than are added up in one word, some of them in the node alone."""
    rng = np.random.default_rng(0)
    n = 40_000
    codes = np.column_stack([np.full(n, 7), rng.integers(0, 255, n)]).astype(np.uint8)
    gradients = np.where(rng.random(n) < 0.9, LARGEST_GRADIENT - 1, 1 - LARGEST_GRADIENT)
    members = np.flatnonzero(rng.random(n) < 0.9)
    bins, runs = np.zeros((3, 256), np.int64), np.empty((5, 510), np.int64)
    found = split_runs(
        columns(codes), members, gradients[members], np.array([0, 255, 510]), 0.1, 0, ALL,
        np.ones(2, bool), bins, runs,
    )  # fmt: skip
    _, cuts, lengths, left_gradients, left_rows = runs[:, :found]
    assert lengths.sum() == 2 * 254
    assert not bins.any()
    for cut, gradient, count in zip(cuts, left_gradients, left_rows, strict=True):
        left = codes[members, cut // 255] <= cut % 255
        assert count == left.sum()
        assert gradient == sum(gradients[members][left].tolist())


def test_targets_are_rounded_towards_zero():
    targets = np.array([-1.0, -0.3, -UNIT * 0.99, 0.0, 0.3, np.nextafter(1.0, 0), 1.0])
    found = truncated(targets)
    assert found.dtype == np.int64
    exact = targets / UNIT
    assert (np.abs(found) <= np.abs(exact)).all()
    assert (np.abs(found - exact) < 1).all()
    assert found[[0, 2, 5, 6]].tolist() == [-(2**24), 0, 2**24 - 1, 2**24]


def test_released_values_are_rounded_to_the_nearest_and_keep_their_bits():
    values = np.random.default_rng(0).normal(0, 1e3, 1000)
    rounded = on_grid(values)
    assert np.abs(rounded - values).max() <= UNIT / 2
    np.testing.assert_array_equal(on_grid(rounded), rounded)
    np.testing.assert_array_equal(whole(rounded) * UNIT, rounded)


def test_huge_values_are_clipped_so_that_sums_of_scores_fit():
    np.testing.assert_array_equal(whole(np.array([1e300, -1e300])), [LARGEST, -LARGEST])
    assert 2000 * LARGEST < 2**63
