"""Private gradient boosting with totally random trees, for two labels: from noisy sums to trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.data.domain import Domain
from dprepro.estimators.base import BinaryModel, DPEstimator
from dprepro.estimators.inputs import DOMAIN, SEED, fitting, read_training_rows, resolve_domain_of
from dprepro.methods.random_boosting import ADJACENCY
from dprepro.methods.random_boosting.candidates import (
    CANDIDATES,
    COMPOSITIONS,
    UPDATES,
    Size,
    as_numbers,
    bounds_of,
    mean_total,
    ranks,
    refined,
    uniform,
)
from dprepro.methods.random_boosting.curator import (
    UNIT,
    UNPAID_HISTOGRAMS,
    AddTrees,
    CurvatureHistogram,
    LeafSums,
    RandomBoostingCurator,
    UseCandidates,
    delta_of_rows,
)
from dprepro.methods.random_boosting.trees import Tree, draw_tree, sum_of_steps
from dprepro.runtime.arguments import DELTA, EPSILON, SHARE, Integer, Number, OneOf, OrNone, flag

_MOST_CANDIDATES = 127  # twice as many, as refining can make, have bins that fit into a byte

_MOST_DEPTH = 8

_ONE_PAID = "all, one paid"

HISTOGRAMS = ("own", "all", _ONE_PAID)


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


@dataclass(eq=False, repr=False, kw_only=True)
class DPRandomBoostingClassifier(BinaryModel, DPEstimator):
    """Boosting of trees whose splits are random (Maddock et al. 2022, "TR").

    A split is a random candidate of a random feature, so only the leaves are asked for: sums of
    gradients and of curvatures, with Gaussian noise. What is known of
    the authors' program is named as such; none of its code is used.

    Formal guarantee: (epsilon, delta)-DP under add/remove-one.

    Parameters
    ----------
    n_trees : int
        Trees; with `full_cycles` so many for each feature.
    max_depth : int
        The most splits from the root to a leaf, up to 8.
    additive : bool
        Whether each tree splits on one feature alone, one feature after the other.
    full_cycles : bool
        See `n_trees`; only for additive models. With ``update="gbm"`` it is their DP-EBM.
    update : {"newton", "gbm", "averaging"}
        The value of a leaf: sum of gradients over that of curvatures (they say xgboost), sum of
        gradients over the number of rows, or the mean label, averaged over the trees (they say rf).
    batches : int or None
        So many batches of trees, as equal as can be, are grown on the same scores and added
        averaged. None: each tree by itself.
    candidates : {"uniform", "quantile", "adaptive_hessian"}
        At equal distances between the bounds of the domain; quantiles of the rows, which epsilon
        does not cover; or equal distances at first, then moved so that each bin holds alike much
        noisy curvature.
    n_candidates : int
        For each feature, 2 to 127. Adaptive ones can become up to twice as many.
    sketch_rounds : int
        How often each feature's curvature is asked for, for adaptive candidates. Of additive models
        no more often than it has trees.
    histograms : {"own", "all", "all, one paid"}
        Which features' curvature is asked for with a tree of an additive model: that of its own
        feature, or that of all. The last is not private as stated: it has noise for one of them.
    separate : bool
        Whether the budget of a tree pays for gradients and curvatures one by one; else both are
        one answer of sensitivity sqrt(1 + 1/16), or sqrt(2) where rows are counted.
    learning_rate, ridge, largest_value : float
        A leaf adds learning_rate times -G / (H + ridge), which is kept within +-largest_value.
    composition : {"gdp", "rdp"}
        How noise is found: by Gaussian DP, which is exact, or by Renyi DP as they do it.
    delta_from_rows : bool
        Whether delta is one over the number of rows, as theirs. Epsilon does not cover that.
    from_ranks : bool
        Whether each value is replaced by its rank among those that occur. Epsilon does not cover
        that.
    epsilon, delta : float
        The budget.
    domain : Domain or None
        Bounds and categories; None reads them from the rows, which epsilon does not cover.
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    trees_ : list of Tree
        The trees.
    values_ : list of ndarray
        What the leaves of each tree add, float64, whole numbers of 2^-24.
    ledger_ : Ledger
        Gaussian answers: the leaves of each tree, and histograms for adaptive candidates.

    Raises
    ------
    ValueError
        On parameters out of range, values and labels that the domain rules out, or other than two
        labels.
    """

    kinds = MappingProxyType({
        "n_trees": Integer(1), "max_depth": Integer(1, _MOST_DEPTH), "additive": flag,
        "full_cycles": flag, "update": OneOf(UPDATES), "batches": OrNone(Integer(1)),
        "candidates": OneOf(CANDIDATES), "n_candidates": Integer(2, _MOST_CANDIDATES),
        "sketch_rounds": Integer(1), "histograms": OneOf(HISTOGRAMS), "separate": flag,
        "learning_rate": SHARE, "ridge": Number(0), "largest_value": Number(0),
        "composition": OneOf(COMPOSITIONS), "delta_from_rows": flag, "from_ranks": flag,
        "epsilon": EPSILON, "delta": DELTA, "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    n_trees: int = 100
    max_depth: int = 4
    additive: bool = True
    full_cycles: bool = False
    update: str = "newton"
    batches: int | None = 4
    candidates: str = "adaptive_hessian"
    n_candidates: int = 32
    sketch_rounds: int = 5
    histograms: str = "own"
    separate: bool = False
    learning_rate: float = 0.3
    ridge: float = 1.0
    largest_value: float = 2.0
    composition: str = "gdp"
    delta_from_rows: bool = False
    from_ranks: bool = False
    epsilon: float = 1.0
    delta: float = 1e-6
    domain: Domain | None = None
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> DPRandomBoostingClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes."""
        rows = read_training_rows(self, X, y, self.domain, "binary")
        self.domain_ = domain = resolve_domain_of(self, rows, "binary")
        ledger = self._new_ledger(
            ADJACENCY, [domain.is_public and "bounds and categories", "labels"]
        )
        plan = self._plan(len(domain.features))
        if plan.size.unpaid:
            ledger.gaps.append(UNPAID_HISTOGRAMS)
        if self.delta_from_rows:
            delta_of_rows(rows, ledger)
        curator = RandomBoostingCurator(
            rows, domain, plan.size, self.composition, ledger, self.random_state
        )
        self._ranks = curator.ranks() if self.from_ranks else None
        self.trees_, self.values_ = boost(curator, self._first_candidates(curator), plan)
        self.ledger_ = ledger
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores, float64 (n,): log odds, or mean labels where trees average them."""
        columns = self._columns(self._frame(X))
        if self.additive:
            return self._sum_of_functions(columns)
        scores = np.zeros(columns.shape[1])
        for tree, values in zip(self.trees_, self.values_, strict=True):
            scores += values[tree.places_of(columns)]
        return scores

    def _positive(self, scores: np.ndarray) -> np.ndarray:
        averages = self.update == "averaging"
        return np.clip(scores, 0, 1) if averages else super()._positive(scores)

    @property
    def _middle(self) -> float:
        return 0.5 if self.update == "averaging" else 0.0

    def _sum_of_functions(self, columns: np.ndarray) -> np.ndarray:
        scores = np.zeros(columns.shape[1])
        for feature, values in enumerate(columns):
            chosen = [i for i, tree in enumerate(self.trees_) if tree.only_feature == feature]
            thresholds, steps = sum_of_steps(
                [self.trees_[i] for i in chosen], [self.values_[i] for i in chosen]
            )
            scores += steps[np.searchsorted(thresholds, values, side="left")]
        return scores

    def _columns(self, frame: Any) -> np.ndarray:
        """Return the values as numbers, float64 (K, n)."""
        columns = [
            as_numbers(frame[name], feature)
            for name, feature in zip(frame.columns, self.domain_.features, strict=True)
        ]
        if self._ranks is not None:
            columns = [ranks(v, known) for v, known in zip(columns, self._ranks, strict=True)]
        return np.stack(columns)

    def _first_candidates(self, curator: RandomBoostingCurator) -> list[np.ndarray]:
        if self.candidates == "quantile":
            return curator.quantiles(self.n_candidates)
        bounds = [bounds_of(feature) for feature in self.domain_.features]
        if self._ranks is not None:
            bounds = [(0.0, float(max(len(known) - 1, 0))) for known in self._ranks]
        return [uniform(lower, upper, self.n_candidates) for lower, upper in bounds]

    def _plan(self, n_features: int) -> Plan:
        trees = self.n_trees * (n_features if self.full_cycles else 1)
        rounds = 0
        if self.candidates == "adaptive_hessian":
            rounds = min(self.sketch_rounds * (n_features if self.additive else 1), trees)
        looks_at_all = not self.additive or self.histograms != "own"
        histograms = rounds * (n_features if looks_at_all else 1)
        unpaid = histograms - rounds if self.additive and self.histograms == _ONE_PAID else 0
        batches = trees if self.batches is None else self.batches
        averages = self.update == "averaging"
        return Plan(
            Size(trees, histograms, unpaid, self.update, self.separate),
            self.additive,
            self.max_depth,
            self.n_candidates,
            trees if averages else math.ceil(trees / batches),
            rounds,
            looks_at_all,
            self.learning_rate,
            self.ridge,
            self.largest_value,
        )

    def _check_together(self) -> None:
        if self.full_cycles and not self.additive:
            raise ValueError("full_cycles is for additive models: give additive=True, too")
