"""The kernel against NumPy, and the rules by which trees grow."""

import numpy as np
import pytest
from scipy import stats

from dprepro.dpboost.kernel import add_values, choose, grow, split_gains

STARTS = np.array([0, 4, 10, 13])
TINY = 1e-9
"""A scale at which the exponential mechanism takes the best split."""


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, b, n) for b in np.diff(STARTS)]).astype(np.uint8)
    gradients = np.clip((codes[:, 1] > 2) - 0.5 * codes[:, 0] + rng.normal(size=n), -1, 1)
    return codes, gradients


def gain(gradients, left, ridge=0.1):
    """The gain of a split, in NumPy."""

    def score(side):
        return side.sum() ** 2 / (side.size + ridge) if side.size else 0.0

    return score(gradients[left]) + score(gradients[~left]) - score(gradients)


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
    uniforms = np.random.default_rng(seed).random(2 * max_leaves - 1)
    return grow(
        codes, gradients, STARTS, uniforms, scale, 0.1, max_depth, max_leaves, min_rows, complete
    )


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
    best = max(found, key=lambda split: (found[split][0] > -np.inf, round(found[split][0], 9)))
    left = codes[:, best[0]] <= best[1]
    tree = {(): best}
    for side, mask in enumerate((left, ~left)):
        below = naive_tree(codes[mask], gradients[mask], depth - 1)
        tree |= {(side, *path): split for path, split in below.items()}
    return tree


def test_gains_equal_numpy():
    codes, gradients = rows()
    histogram = np.zeros((STARTS[-1], 2))
    for j, start in enumerate(STARTS[:-1]):
        np.add.at(histogram, (start + codes[:, j], 0), gradients)
        np.add.at(histogram, (start + codes[:, j], 1), 1)
    gains = np.empty(STARTS[-1])
    best = split_gains(histogram, STARTS, 0.1, 0, -np.inf, np.ones(3, bool), gains)
    expected = all_gains(codes, gradients)
    for (j, cut), (value, _) in expected.items():
        assert gains[STARTS[j] + cut] == pytest.approx(value, abs=1e-9)
    # There is nothing to the right of a feature's last bin.
    assert (gains[STARTS[1:] - 1] == -np.inf).all()
    assert best == pytest.approx(max(value for value, _ in expected.values()))


@pytest.mark.parametrize("min_rows", [20, 120])
def test_small_sides_and_losses_are_no_candidates_as_published(min_rows):
    codes, gradients = rows()
    histogram = np.zeros((STARTS[-1], 2))
    for j, start in enumerate(STARTS[:-1]):
        np.add.at(histogram, (start + codes[:, j], 0), gradients)
        np.add.at(histogram, (start + codes[:, j], 1), 1)
    gains, splittable = np.empty(STARTS[-1]), np.ones(3, bool)
    split_gains(histogram, STARTS, 0.1, min_rows, 0.0, splittable, gains)
    expected = all_gains(codes, gradients)
    for (j, cut), (value, smaller) in expected.items():
        assert (gains[STARTS[j] + cut] > -np.inf) == (value > 0 and smaller >= min_rows)
    for j in range(3):
        assert splittable[j] == (gains[STARTS[j] : STARTS[j + 1]] > -np.inf).any()


def test_choices_have_the_exponential_mechanisms_probabilities():
    gains = np.array([0.0, -np.inf, 4.0, 2.0, -np.inf, -3.0, -np.inf])
    scale, draws = 2.0, np.random.default_rng(0).random(50_000)
    running = np.empty(gains.size)
    chosen = [choose(gains, 4.0, scale, draw, running) for draw in draws]
    counts = np.bincount(chosen, minlength=gains.size)
    weights = np.exp(gains / scale)
    assert (counts[weights == 0] == 0).all()
    possible = weights > 0
    expected = draws.size * weights[possible] / weights.sum()
    assert stats.chisquare(counts[possible], expected).pvalue > 1e-4


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_choose_possible_splits(uniform):
    gains = np.array([-np.inf, 1.0, 2.0, -np.inf])
    assert choose(gains, 2.0, 1.0, uniform, np.empty(4)) == (1 if uniform == 0 else 2)


def test_a_split_moves_by_no_more_than_epsilon_when_a_row_comes_or_goes():
    """The exact probabilities of all splits on neighbouring nodes, with the paper's sensitivity."""
    epsilon, worst = 0.7, 0.0
    scale = 2 * 3.0 / epsilon
    for seed in range(30):
        codes, gradients = rows(n=12, seed=seed)
        probabilities = []
        for kept in (slice(None), slice(1, None)):
            found = all_gains(codes[kept], gradients[kept])
            weights = np.exp(np.array([value for value, _ in found.values()]) / scale)
            probabilities.append(weights / weights.sum())
        worst = max(worst, np.abs(np.log(probabilities[0] / probabilities[1])).max())
    assert 0.05 < worst <= epsilon


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
        sums = np.bincount(reached, weights=gradients, minlength=tree[0].size)
        counts = np.bincount(reached, minlength=tree[0].size)
        leaves = tree[0] < 0
        np.testing.assert_allclose(tree[3][leaves], sums[leaves], atol=1e-9)
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


@pytest.mark.parametrize("spoil", ["few rows", "equal gradients"])
def test_best_first_trees_stay_a_leaf_where_no_split_helps(spoil):
    codes, gradients = rows(39) if spoil == "few rows" else (rows()[0], np.ones(400))
    # Equal gradients: lambda makes every split a loss.
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
    tree = grow(
        codes, gradients, np.array([0, 2, 4, 5]), np.full(61, 0.5), TINY, 0.1, 6, 31, 20, False
    )
    assert set(tree[0]) <= {-1, 0}
    complete = grow(
        codes, gradients, np.array([0, 2, 4, 5]), np.full(7, 0.5), TINY, 0.1, 2, 4, 0, True
    )
    assert 1 in complete[0]


def test_values_are_added_where_rows_end_up():
    codes, gradients = rows()
    tree = fit(codes, gradients)
    values = np.arange(tree[0].size, dtype=float)
    scores = np.full(len(codes), 0.5)
    add_values(scores, codes, *tree[:3], values)
    np.testing.assert_array_equal(scores, 0.5 + leaves_of(tree, codes))
