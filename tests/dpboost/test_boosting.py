"""Boosting: the budget of every release, clipped and noisy leaves, disjoint rows."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dprepro.dpboost.boosting import Plan, boost, draw_noise
from dprepro.dpboost.subsets import IndependentRows
from dprepro.dpboost.variants import AS_PUBLISHED, SOUND
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import ADD_REMOVE

VARIANTS = pytest.mark.parametrize("variant", [AS_PUBLISHED, SOUND], ids=["as-published", "sound"])
N_BINS = np.array([8, 5])


def plan(**changes):
    settings = {
        "epsilon": 2.0, "n_trees": 50, "trees_per_ensemble": 50, "learning_rate": 0.1,
        "max_depth": 6, "ridge": 0.1,
    }  # fmt: skip
    return Plan(**settings | changes)


def source(seed=0, epsilon=2.0):
    return NoiseSource(Ledger(epsilon, 0.0, ADD_REMOVE), seed)


def problem(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, b, n) for b in N_BINS]).astype(np.uint8)
    targets = np.where(codes[:, 0] > 3, 0.6, -0.6) + 0.2 * (codes[:, 1] > 2)
    return codes, targets


def fit(variant, seed=0, n=4000, start=0.0, **changes):
    codes, targets = problem(n)
    trees = boost(codes, N_BINS, targets, start, plan(**changes), variant, source(seed))
    scores = np.full(n, start)
    for tree in trees:
        tree.add_to(scores, codes)
    return trees, scores, targets


@VARIANTS
@pytest.mark.parametrize(("n_trees", "per_ensemble"), [(50, 50), (100, 50), (120, 50), (3, 1)])
def test_the_ledger_adds_up_to_the_share_of_epsilon_that_a_path_spends(
    variant, n_trees, per_ensemble
):
    drawn = source()
    settings = plan(n_trees=n_trees, trees_per_ensemble=per_ensemble)
    draw_noise(drawn, settings, variant)
    splits, leaves = drawn.ledger.entries
    ensembles = -(-n_trees // per_ensemble)
    assert (splits.uses, leaves.uses) == (6 * ensembles, ensembles)
    assert splits.budget[0] == pytest.approx(2.0 * variant.split_share)
    assert leaves.budget[0] == pytest.approx(1.0)
    assert drawn.ledger.spent_epsilon() == pytest.approx(2.0 * (0.5 + variant.split_share))


def test_the_published_code_leaves_a_quarter_of_epsilon_unspent():
    assert AS_PUBLISHED.split_share == 0.25
    assert SOUND.split_share == 0.5


@VARIANTS
def test_split_probabilities_are_those_of_the_documents(variant):
    """Exponent epsilon gain / 72 in the paper, / 144 in the code (one ensemble, depth 6)."""
    scale = draw_noise(source(), plan(epsilon=1.0), variant).split_scale
    assert scale == pytest.approx(144 if variant is AS_PUBLISHED else 72)


def test_leaf_noise_has_the_scale_of_its_tree():
    settings = plan(epsilon=1.5, n_trees=100, max_depth=10)
    leaves = draw_noise(source(), settings, SOUND).leaves
    assert leaves.shape == (100, 1024)
    for tree in (0, 7, 8, 30, 58):
        sensitivity = min(1 / 1.1, 2 * 0.9 ** (tree % 50))
        scale = sensitivity / (1.5 / 2 / 2)
        assert stats.kstest(leaves[tree] / scale, "laplace").pvalue > 1e-5


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
    everyone = dataclasses.replace(variant, subsets=lambda g, n, s: _Everyone(n))
    _, scores, targets = fit(everyone, epsilon=1e9, n_trees=1, learning_rate=0.5)
    for value in np.unique(scores):
        members = targets[scores == value]
        expected = 0.5 * members.sum() / (members.size + 0.1)
        assert value == pytest.approx(expected, abs=1e-6)
    assert len(np.unique(scores)) > 2


class _Everyone:
    def __init__(self, n):
        self.rows = np.arange(n)

    def draw(self, fits):
        return self.rows[fits]


@VARIANTS
def test_rows_with_large_gradients_are_filtered_out(variant):
    """From a start of 0.9 the rows with targets below -0.1 have gradients above 1."""
    seen = []

    class Watched(IndependentRows):
        def draw(self, fits):
            seen.append(fits)
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
        assert len(np.unique(tree.value[leaves])) == 64


def test_a_sound_tree_without_any_cut_is_one_noisy_leaf():
    targets = np.linspace(-1, 1, 100)
    codes = np.zeros((100, 2), np.uint8)
    trees = boost(codes, np.array([1, 1]), targets, 0.0, plan(), SOUND, source())
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
    nobody = dataclasses.replace(SOUND, subsets=lambda g, n, s: _Everyone(0))
    codes, targets = np.zeros((0, 2), np.uint8), np.zeros(0)
    at_one_row = np.zeros((300, 1))
    for seed, score in enumerate(at_one_row):
        for tree in boost(codes, N_BINS, targets, 0.0, plan(epsilon=4.0), nobody, source(seed)):
            tree.add_to(score, np.array([[3, 2]], dtype=np.uint8))
    scales = np.minimum(1 / 1.1, 2 * 0.9 ** np.arange(50)) / (4.0 / 2)
    expected = np.sqrt((2 * (0.1 * scales) ** 2).sum())
    assert expected == pytest.approx(0.92 / 4.0, rel=0.01)
    assert np.std(at_one_row) == pytest.approx(expected, rel=0.15)
