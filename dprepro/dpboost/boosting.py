"""Boosting trees under one budget: ensembles of trees on disjoint rows, one after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.dpboost.kernel import add_values, grow
from dprepro.dpboost.sensitivity import GAIN, leaf_clip, leaf_sensitivity
from dprepro.dpboost.subsets import expected_shares
from dprepro.dpboost.variants import Variant
from dprepro.privacy.mechanisms import NoiseSource


@dataclass(frozen=True)
class Tree:
    """A released tree. `kernel.grow` has the arrays; none holds a count or an exact sum.

    Attributes
    ----------
    feature, cut, left : int64 (nodes,)
        Rows with ``codes[feature] <= cut`` go to node `left`, others to ``left + 1``. Feature -1
        marks a leaf.
    value : float64 (nodes,)
        The learning rate times the noisy value of each leaf; 0 at inner nodes.
    """

    feature: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    value: np.ndarray

    def add_to(self, scores: np.ndarray, codes: np.ndarray) -> None:
        """Add the tree's values to `scores`, float64 (n,), of rows with `codes`, uint8 (n, K)."""
        add_values(scores, codes, self.feature, self.cut, self.left, self.value)


@dataclass(frozen=True)
class Plan:
    """The size of the model and its budget; see `DPBoostClassifier` for the fields."""

    epsilon: float
    n_trees: int
    trees_per_ensemble: int
    learning_rate: float
    max_depth: int
    ridge: float

    @property
    def n_ensembles(self) -> int:
        """Ensembles, which share the budget equally: ceil(n_trees / trees_per_ensemble)."""
        return math.ceil(self.n_trees / self.trees_per_ensemble)


@dataclass(frozen=True)
class Noise:
    """All the noise of a fit, drawn before the first tree.

    Attributes
    ----------
    split_scale, splits : float, float64 (T, nodes)
        s of P(split) ~ exp(gain / s), and one uniform draw a node.
    leaves : float64 (T, leaves)
        Laplace noise, scaled for each tree.
    """

    split_scale: float
    splits: np.ndarray
    leaves: np.ndarray


def draw_noise(source: NoiseSource, plan: Plan, variant: Variant) -> Noise:
    """Draw the noise of every split and leaf and enter it in the ledger.

    The nodes of one level and the trees of one ensemble hold disjoint rows: a row takes part in
    `max_depth` splits and one leaf an ensemble (Li et al. 2020, sections 4.2 and 4.3).
    """
    max_leaves = _max_leaves(plan, variant)
    depth, ensembles = plan.max_depth, plan.n_ensembles
    scale, splits = source.exponential_by_inversion(
        (plan.n_trees, 2 * max_leaves - 1),
        releases="feature and cut of each split, by its gain",
        epsilon=variant.split_share * plan.epsilon / (ensembles * depth),
        sensitivity=GAIN,
        uses=ensembles * depth,
    )
    leaves = source.laplace(
        (plan.n_trees, max_leaves),
        releases="value of each leaf, in units of its tree's sensitivity",
        epsilon=plan.epsilon / (2 * ensembles),
        sensitivity=1.0,
        uses=ensembles,
    )
    position = np.arange(plan.n_trees) % plan.trees_per_ensemble
    units = leaf_sensitivity(plan.learning_rate, plan.ridge, position)
    return Noise(scale, splits, leaves * units[:, None])


def boost(
    codes: np.ndarray,
    n_bins: np.ndarray,
    targets: np.ndarray,
    start: float,
    plan: Plan,
    variant: Variant,
    source: NoiseSource,
) -> list[Tree]:
    """Fit trees to the squared loss (F - y)^2 / 2, one after the other.

    Parameters
    ----------
    codes, n_bins : uint8 (n, K), int64 (K,)
        The binned rows, and the bins of each feature.
    targets : float64 (n,)
        In [-1, 1].
    start
        The score from which all rows start.

    Returns
    -------
    list of `n_trees` trees
    """
    noise = draw_noise(source, plan, variant)
    starts = np.concatenate([[0], np.cumsum(n_bins)]).astype(np.int64)
    shares = expected_shares(plan.learning_rate, plan.trees_per_ensemble)
    scores = np.full(targets.size, start)
    trees = []
    for t in range(plan.n_trees):
        if t % plan.trees_per_ensemble == 0:
            subsets = variant.subsets(source.generator, targets.size, shares)
        gradients = scores - targets
        rows = subsets.draw(np.abs(gradients) <= 1 + variant.tolerance)
        tree = _fit_tree(codes[rows], gradients[rows], starts, t, noise, plan, variant)
        tree.add_to(scores, codes)
        trees.append(tree)
    return trees


def _fit_tree(
    codes: np.ndarray,
    gradients: np.ndarray,
    starts: np.ndarray,
    t: int,
    noise: Noise,
    plan: Plan,
    variant: Variant,
) -> Tree:
    """Grow tree `t` on the given rows, clip and noise its leaves."""
    feature, cut, left, sums, rows = grow(
        codes, gradients, starts, noise.splits[t], noise.split_scale, plan.ridge,
        plan.max_depth, _max_leaves(plan, variant), variant.min_rows, variant.complete,
    )  # fmt: skip
    values = np.zeros(feature.size)
    leaves = np.flatnonzero(feature < 0)
    if variant.complete or leaves.size > 1:
        clip = leaf_clip(plan.learning_rate, t % plan.trees_per_ensemble)
        exact = -sums[leaves] / np.maximum(rows[leaves] + plan.ridge, np.finfo(float).tiny)
        noisy = np.clip(exact, -clip, clip) + noise.leaves[t, : leaves.size]
        values[leaves] = plan.learning_rate * noisy
    return Tree(feature, cut, left, values)


def _max_leaves(plan: Plan, variant: Variant) -> int:
    return 2**plan.max_depth if variant.complete else variant.max_leaves
