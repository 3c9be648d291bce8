"""Boosting: the budget of every release, clipped and noisy leaves, disjoint rows."""

import dataclasses

import numpy as np
import pytest

from dprepro.methods.dpboost.estimator import boost
from dprepro.methods.dpboost.kernel import UNIT, whole
from dprepro.methods.dpboost.subsets import IndependentRows
from dprepro.methods.dpboost.variants import AS_PUBLISHED, SOUND
from tests.methods.dpboost.lab import curator, encoded, params, problem, scores_of

VARIANTS = pytest.mark.parametrize("variant", [AS_PUBLISHED, SOUND], ids=["as-published", "sound"])


def fit(variant, seed=0, n=4000, start=0.0, **changes):
    codes, targets = problem(n)
    settings = params(**changes)
    made = curator(variant, codes, targets, settings, seed)
    trees = boost(made, start, settings, variant)
    scores = scores_of(trees, encoded(made, codes), int(whole(np.array(start))))
    return trees, scores * UNIT, targets


def test_the_published_code_leaves_a_quarter_of_epsilon_unspent():
    assert AS_PUBLISHED.split_share == 0.25
    assert SOUND.split_share == 0.5


@VARIANTS
def test_with_a_huge_budget_the_trees_fit_and_leaves_keep_their_bounds(variant):
    trees, scores, targets = fit(variant, epsilon=1e9)
    assert np.corrcoef(scores, targets)[0, 1] > 0.95
    assert np.sqrt(np.mean((scores - targets) ** 2)) < 0.2
    for k, tree in enumerate(trees):
        assert np.abs(tree.value).max() <= 0.1 * 0.9**k + 1e-6


@VARIANTS
def test_scores_are_the_shrunken_clipped_means_of_the_residuals(variant):
    """One tree, no noise: every leaf against its rows' mean."""
    everyone = dataclasses.replace(variant, subsets=_Everyone)
    _, scores, targets = fit(everyone, epsilon=1e9, n_trees=1, learning_rate=0.5)
    for value in np.unique(scores):
        members = targets[scores == value]
        expected = 0.5 * members.sum() / (members.size + 0.1)
        assert value == pytest.approx(expected, abs=1e-6)
    assert len(np.unique(scores)) > 2


class _Everyone:
    independent = True

    def __init__(self, sampler, n_rows, shares):
        self.rows = np.arange(n_rows)

    def draw(self, fits):
        return self.rows[fits(self.rows)]


@VARIANTS
def test_rows_with_large_gradients_are_filtered_out(variant):
    """From a start of 0.9 the rows with targets below -0.1 have gradients above 1."""
    seen = []

    class Watched(IndependentRows):
        def draw(self, fits):
            seen.append(fits(np.arange(4000)))
            return super().draw(fits)

    watching = dataclasses.replace(variant, subsets=Watched)
    _, _, targets = fit(watching, epsilon=1e9, start=0.9, n_trees=1)
    np.testing.assert_array_equal(seen[0], targets >= -0.1)


@VARIANTS
def test_ensembles_start_over_with_all_rows_and_the_first_bounds(variant):
    trees, scores, targets = fit(variant, epsilon=1e9, n_trees=40, trees_per_ensemble=10)
    one, one_scores, _ = fit(variant, epsilon=1e9, n_trees=10, trees_per_ensemble=10)
    # The same noise stream has other shapes, so trees differ; their fit must improve.
    assert len(trees) == 4 * len(one)
    assert np.mean((scores - targets) ** 2) < 0.5 * np.mean((one_scores - targets) ** 2)


def test_published_trees_without_rows_to_split_count_for_nothing():
    trees, scores, _ = fit(AS_PUBLISHED, n=390)
    assert all(tree.feature.tolist() == [-1] for tree in trees)
    np.testing.assert_array_equal(scores, 0.0)


def test_published_trees_of_late_small_subsets_are_constant_and_early_ones_are_not():
    trees, _, _ = fit(AS_PUBLISHED, n=26_000, epsilon=50.0)
    splits = [(tree.feature >= 0).any() for tree in trees]
    assert all(splits[:20])
    # floor(26,000 * share_k) < 40 rows from k = 40 on.
    assert not any(splits[41:])


@pytest.mark.parametrize("n", [2, 4000])
def test_sound_trees_are_complete_and_every_leaf_is_noised(n):
    trees, _, _ = fit(SOUND, n=n)
    assert len(trees) == 50
    for tree in trees:
        leaves = tree.feature < 0
        assert leaves.sum() == 64
        # Two of the latest trees' leaves may get the same whole number.
        assert len(np.unique(tree.value[leaves])) >= 62
        assert (tree.value[leaves] != 0).all()


def test_a_sound_tree_without_any_cut_is_one_noisy_leaf():
    codes, targets = np.zeros((100, 2)), np.linspace(-1, 1, 100)
    trees = boost(curator(SOUND, codes, targets, bins=(1, 1)), 0.0, params(), SOUND)
    assert all(tree.feature.tolist() == [-1] and tree.value[0] != 0 for tree in trees)


@VARIANTS
def test_trees_hold_nothing_exact(variant):
    """What is released are splits and noisy values: no counts, sums or gains."""
    trees, _, _ = fit(variant)
    fields = {field.name for field in dataclasses.fields(trees[0])}
    assert fields == {"feature", "cut", "left", "value"}
    again, _, _ = fit(variant, seed=1)
    assert not np.array_equal(trees[0].value, again[0].value)


def test_prediction_noise_has_the_size_that_theory_gives():
    """Without rows every tree is pure noise: variance sum of 2 (eta b_k)^2 over the trees."""
    codes, targets = np.zeros((0, 2)), np.zeros(0)
    settings, at_one_row = params(epsilon=4.0), np.zeros((300, 1), np.int64)
    row = np.array([[3, 2]], dtype=np.uint8)
    for seed, score in enumerate(at_one_row):
        made = curator(SOUND, codes, targets, settings, seed)
        score[:] = scores_of(boost(made, 0.0, settings, SOUND), row)
    scales = np.minimum(1 / 1.1, 2 * 0.9 ** np.arange(50)) / (4.0 / 2)
    expected = np.sqrt((2 * (0.1 * scales) ** 2).sum())
    assert expected == pytest.approx(0.92 / 4.0, rel=0.01)
    assert np.std(at_one_row) * UNIT == pytest.approx(expected, rel=0.15)


# --- the same bits --------------------------------------------------------------------------------


@VARIANTS
def test_the_order_of_the_rows_moves_no_bit(variant):
    """Of a tree that all rows train: sums of integers are exact in any order."""
    everyone = dataclasses.replace(variant, subsets=_Everyone)
    codes, targets = problem(4000)
    targets = targets * np.random.default_rng(1).random(4000)
    settings = params(n_trees=5, trees_per_ensemble=1)
    made = [
        boost(curator(everyone, codes[order], targets[order], settings), 0.0, settings, everyone)
        for order in (np.arange(4000), np.random.default_rng(2).permutation(4000))
    ]
    for one, two in zip(*made, strict=True):
        for field in dataclasses.fields(one):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name))


@VARIANTS
@pytest.mark.parametrize("epsilon", [0.01, 2.0])
def test_leaf_values_are_whole_numbers_of_the_public_unit(variant, epsilon):
    trees, scores, _ = fit(variant, epsilon=epsilon)
    values = np.concatenate([tree.value for tree in trees])
    np.testing.assert_array_equal(values / UNIT, np.rint(values / UNIT))
    assert len(np.unique(values)) > 5
    np.testing.assert_array_equal(scores / UNIT, np.rint(scores / UNIT))
