"""Boosting trees under one budget: ensembles of trees on disjoint rows, one after the other.

Everything here is made of releases: the rows are the curator's.
"""

from __future__ import annotations

import numpy as np

from dprepro.dpboost.curator import AddTree, DPBoostCurator, LeafQuery, SplitQuery, Start
from dprepro.dpboost.grid import on_grid
from dprepro.dpboost.sensitivity import gain_sensitivity, leaf_clip, leaf_sensitivity
from dprepro.dpboost.tree import FitSettings, Tree
from dprepro.dpboost.variants import Variant


def boost(
    curator: DPBoostCurator, start: float, params: FitSettings, variant: Variant
) -> list[Tree]:
    """Fit `n_trees` trees to the squared loss (F - y)^2 / 2, one after the other.

    `start` is the score from which all rows start, a multiple of `grid.UNIT`.
    """
    curator.tell(Start(start))
    units = leaf_sensitivity(
        params.learning_rate, params.ridge, np.arange(params.n_trees) % params.trees_per_ensemble
    )
    trees = []
    for t in range(params.n_trees):
        feature, cut, left = curator.splits(split_query(variant, params.ridge)).value
        values = np.zeros(feature.size)
        leaves = np.flatnonzero(feature < 0)
        if variant.complete or leaves.size > 1:
            query = leaf_query(t, float(units[t]), params, variant)
            values[leaves] = on_grid(params.learning_rate * curator.leaf_values(query).value)
        trees.append(Tree(feature, cut, left, values))
        curator.tell(AddTree(trees[-1]))
    return trees


def split_query(variant: Variant, ridge: float) -> SplitQuery:
    """Return the query for the splits of any tree."""
    return SplitQuery(
        gain_sensitivity(1.0, variant.gain(ridge)), 1.0, bound=1 + variant.tolerance,
        complete=variant.complete, gap=variant.split_gap,
    )  # fmt: skip


def leaf_query(t: int, unit: float, params: FitSettings, variant: Variant) -> LeafQuery:
    """Return the query for the leaves of tree `t`, whose sensitivity is `unit`."""
    return LeafQuery(
        unit, 1.0, bound=1 + variant.tolerance, ridge=params.ridge,
        clip=float(leaf_clip(params.learning_rate, t % params.trees_per_ensemble)),
        independent=variant.subsets.independent, gap=variant.leaf_gap,
    )  # fmt: skip
