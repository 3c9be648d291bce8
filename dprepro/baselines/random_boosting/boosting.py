"""From noisy sums to trees: what a fit does with the answers of its curator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dprepro.baselines.random_boosting.candidates import mean_total, refined
from dprepro.baselines.random_boosting.curator import (
    UNIT,
    AddTrees,
    CurvatureHistogram,
    LeafSums,
    RandomBoostingCurator,
    UseCandidates,
)
from dprepro.baselines.random_boosting.settings import Size
from dprepro.baselines.random_boosting.trees import Tree, draw_tree


@dataclass(frozen=True)
class Plan:
    """The course of a fit, all public; `DPRandomBoostingClassifier` has the other fields.

    Attributes
    ----------
    size
        How many answers it takes.
    batch
        Trees that are grown on the same scores and added averaged; all, where trees average labels.
    rounds
        Trees, from the first one on, with which histograms are asked for.
    looks_at_all
        Whether these are of all features, also where a tree has one.
    """

    size: Size
    additive: bool
    max_depth: int
    n_candidates: int
    batch: int
    rounds: int
    looks_at_all: bool
    learning_rate: float
    ridge: float
    largest_value: float


def boost(
    curator: RandomBoostingCurator, candidates: Sequence[np.ndarray], plan: Plan
) -> tuple[list[Tree], list[np.ndarray]]:
    """Return the trees and what each adds to a score, float64 (leaves,), in `UNIT`s."""
    course = _Course(curator, list(candidates), plan)
    trees, values, batch = list[Tree](), list[np.ndarray](), list[Tree]()
    batch_values = list[np.ndarray]()
    for number in range(plan.size.trees):
        tree, raw = course.step(number)
        batch.append(tree)
        batch_values.append(raw)
        is_last = number + 1 == plan.size.trees
        if len(batch) < plan.batch and not is_last:
            continue
        added = [np.rint(value / len(batch) / UNIT) * UNIT for value in batch_values]
        if not is_last:
            curator.tell(AddTrees(tuple(batch), tuple(added)))
        trees, values = trees + batch, values + added
        batch, batch_values = [], []
    return trees, values


class _Course:
    """A fit under way: the candidates as they are, and the latest histogram of each feature."""

    def __init__(
        self, curator: RandomBoostingCurator, candidates: list[np.ndarray], plan: Plan
    ) -> None:
        self._curator, self._plan = curator, plan
        self._candidates = candidates
        self._histograms: dict[int, np.ndarray] = {}
        for feature in range(len(candidates)):
            self._use(feature)

    def step(self, number: int) -> tuple[Tree, np.ndarray]:
        """Return the next tree and the values of its leaves, and renew candidates if it is time.

        As in the authors' program, the histograms of the last round that is paid for are not used.
        """
        plan, all_features = self._plan, range(len(self._candidates))
        features = [number % len(self._candidates)] if plan.additive else list(all_features)
        tree = draw_tree(self._curator.public_generator, self._candidates, features, plan.max_depth)
        value = leaf_values(*self._sums(tree), plan)
        looked_at = all_features if plan.looks_at_all else features
        if number < plan.rounds:
            for feature in looked_at:
                self._look(feature)
        if number + 1 < plan.rounds:
            for feature in looked_at:
                self._renew(feature)
        return tree, value

    def _sums(self, tree: Tree) -> tuple[np.ndarray, np.ndarray]:
        size = self._plan.size
        if not size.separate:
            query = LeafSums(size.both.stated, 1.0, tree, size.update, ("gradient", "curvature"))
            gradient, curvature = self._curator.leaf_sums(query).value
            return gradient, curvature
        gradient, curvature = (
            self._curator.leaf_sums(LeafSums(charged, 1.0, tree, size.update, (part,))).value[0]
            for charged, part in (
                (size.gradient.stated, "gradient"),
                (size.curvature.stated, "curvature"),
            )
        )
        return gradient, curvature

    def _look(self, feature: int) -> None:
        size = self._plan.size
        query = CurvatureHistogram(size.curvature.stated, 1.0, feature, size.update)
        n_bins = len(self._candidates[feature]) + 1
        self._histograms[feature] = self._curator.histogram(query, n_bins).value

    def _renew(self, feature: int) -> None:
        number = self._plan.n_candidates
        wanted = mean_total(list(self._histograms.values())) / number
        self._candidates[feature] = refined(
            self._candidates[feature], self._histograms[feature], wanted, number
        )
        self._use(feature)

    def _use(self, feature: int) -> None:
        self._curator.tell(UseCandidates(feature, self._candidates[feature]))


def leaf_values(gradient: np.ndarray, curvature: np.ndarray, plan: Plan) -> np.ndarray:
    """Return the value of each leaf from noisy sums, float64 (leaves,).

    Boosting: -learning_rate G / (H + ridge) within +-learning_rate largest_value, and 0 unless H is
    above 0. Averaging: G / H within [0, 1], and 1/2 unless H is above 0.
    """
    known = curvature > 0
    if plan.size.update == "averaging":
        share = np.clip(gradient / np.where(known, curvature, 1.0), 0.0, 1.0)
        return np.where(known, share, 0.5)
    step = -gradient / (np.where(known, curvature, 1.0) + plan.ridge)
    limited = np.clip(step, -plan.largest_value, plan.largest_value)
    return np.where(known, plan.learning_rate * limited, 0.0)
