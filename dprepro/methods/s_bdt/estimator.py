"""S-BDT: Peinemann, Kirschte, Stock, Cotrini, Mohammadi, "S-BDT: Distributed Differentially Private
Boosted Decision Trees" (CCS 2024), as their best models on Adult and Abalone are: additive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from dprepro.data.domain import Domain
from dprepro.estimators.base import BinaryModel, DPEstimator, FrameModel, tagged
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    Rows,
    fitting,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.methods.s_bdt import ADJACENCY
from dprepro.methods.s_bdt.curator import (
    SETTINGS,
    LeafSums,
    Noise,
    SBDTCurator,
    Step,
    TargetSum,
    Weights,
)
from dprepro.methods.s_bdt.losses import UNIT, LogLoss, Loss, SquaredLoss
from dprepro.methods.s_bdt.trees import Cells, draw_tree
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.private_rows import Private
from dprepro.privacy.subsampling import renyi_multiplier, sampled_sigma
from dprepro.runtime.arguments import (
    DELTA,
    EPSILON,
    INSIDE,
    SHARE,
    Both,
    Integer,
    Number,
    OrNone,
    flag,
)

_MOST_TREES, _BOUND = 10**6, Both(Number(0, 100, "(]"), Number(1e-9, 100, "[]"))
"""So that scores and sums of parts, in units, are far from 2^63."""


@dataclass(eq=False, repr=False, kw_only=True)
class _SBDT(DPEstimator, FrameModel):
    """Parameters and training that the classifier and the regressor share."""

    kinds = MappingProxyType({
        "n_trees": Integer(1, _MOST_TREES), "max_depth": Integer(1, 12), "learning_rate": SHARE,
        "residual_bound": _BOUND, "curvature_bound": _BOUND, "denominator_share": INSIDE,
        "sampling": SHARE, "ridge": Number(0), "leaf_bound": _BOUND,
        "candidates": Integer(1, 1000), "border": OrNone(Number(0)), "constrained": flag,
        "initial_share": Number(0, 1), "initial_bound": SHARE, "as_published": flag,
        "settings_read_rows": flag, "epsilon": EPSILON, "delta": DELTA,
        "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    n_trees: int = 200
    max_depth: int = 6
    learning_rate: float = 0.1
    residual_bound: float = 0.3
    curvature_bound: float = 0.1
    denominator_share: float = 0.1
    sampling: float = 1.0
    ridge: float = 10.0
    leaf_bound: float = 2.0
    candidates: int = 32
    border: float | None = None
    constrained: bool = False
    initial_share: float = 0.0
    initial_bound: float = 0.5
    as_published: bool = False
    settings_read_rows: bool = False
    epsilon: float = 1.0
    delta: float = 1e-6
    domain: Domain | None = None
    random_state: int | None = None

    def _train(
        self, rows: Private[Rows], loss: Loss, curvature_bound: float,
        target: tuple[float, float] | None,
    ) -> None:  # fmt: skip
        self.cells_ = [
            Cells.of(feature, self.candidates, self.border) for feature in self.domain_.features
        ]
        chosen = self.as_published or self.settings_read_rows
        ledger = self._new_ledger(
            ADJACENCY,
            [
                "number of rows",
                not self.domain_.observed and "bounds, categories, and labels or range",
            ],
            unaccounted=[SETTINGS] if chosen else [],
        )
        observed = self.domain_.observed
        curator = SBDTCurator(rows, self.cells_, loss, target, ledger, self.random_state, observed)
        halved = self.as_published and isinstance(loss, LogLoss)
        weights = Weights.of(
            self.residual_bound, curvature_bound, self.denominator_share, halved=halved
        )
        curator.enter(self._noise(weights, halved), weights, self.initial_bound, halved)
        self.ledger_ = ledger
        self._boost(curator, weights)

    def _boost(self, curator: SBDTCurator, weights: Weights) -> None:
        shapes = [np.zeros(cells.count, np.int64) for cells in self.cells_]
        start = self._start(curator)
        for number in range(self.n_trees):
            k = number % len(shapes)
            tree = draw_tree(
                self.cells_[k], self.max_depth, curator.public_generator,
                constrained=self.constrained, as_published=self.as_published,
            )  # fmt: skip
            sums = curator.leaf_sums(
                LeafSums(weights.norm, 1.0, number, k, tree.trains, tree.leaves, weights)
            )
            change = self._leaf_values(sums.value, weights)[tree.predicts]
            shapes[k] += change
            curator.tell(Step(k, change))
        self.shapes_ = [shape * UNIT for shape in shapes]
        self.intercept_ = start * UNIT

    def _start(self, curator: SBDTCurator) -> int:
        """Return the first score of all rows, in units, after it was told."""
        if self.initial_share == 0:
            return 0
        mean = curator.target_mean(TargetSum(self.initial_bound, 1.0, self.initial_bound))
        start = np.rint(np.clip(mean.value, -1.0, 1.0) / UNIT).astype(np.int64)
        curator.tell(Step(None, start))
        return int(start[0])

    def _leaf_values(self, sums: np.ndarray, weights: Weights) -> np.ndarray:
        """Return the step of each leaf, int64 (leaves,) of `UNIT`, from weighted sums."""
        residuals, curvatures = sums[0] / weights.residual, sums[1] / weights.curvature
        values = residuals / np.maximum(curvatures + self.ridge, UNIT)
        values = np.where(curvatures < 0, 0.0, np.clip(values, -self.leaf_bound, self.leaf_bound))
        whole: np.ndarray = np.rint(self.learning_rate * values / UNIT).astype(np.int64)
        return whole

    def _noise(self, weights: Weights, halved: bool) -> Noise:
        """Return the noise that the budget pays for; see the class for what is as published."""
        initial = self.initial_share * self.epsilon
        budget = PrivacyBudget(self.epsilon - initial, self.delta)
        if self.as_published:
            multiplier = renyi_multiplier(*budget, rate=self.sampling, steps=self.n_trees)
        elif self.sampling == 1:
            multiplier = math.sqrt(self.n_trees) / mu_of(*budget)
        else:
            multiplier = sampled_sigma("pld", *budget, rate=self.sampling, steps=self.n_trees)
        norm = 1.0 if halved else weights.norm  # the authors' accountant counts a norm of 1
        return Noise(multiplier * norm, self.sampling, self.n_trees, budget, initial)

    def _scores(self, X: Any) -> np.ndarray:
        """Return the sum of the functions, float64 (n,): log odds, or targets scaled to [-1, 1]."""
        frame = self._frame(X)
        parts = zip(self.shapes_, self.cells_, frame.columns, strict=True)
        values = [shape[cells.encode(frame[name])] for shape, cells, name in parts]
        return np.sum(values, axis=0) + self.intercept_

    def _check_together(self) -> None:
        if self.initial_share:
            INSIDE("initial_share", self.initial_share)


class SBDTClassifier(BinaryModel, _SBDT):
    """Boosted trees for two labels, one feature a tree, none of whose splits looks at a row.

    Tree t splits on feature t modulo K only, at candidates or categories drawn at random, so the
    model is additive. A Poisson sample of the rows gives each leaf two sums: of residuals
    y - sigmoid(score), clipped to +-`residual_bound`, and of curvatures p (1 - p), clipped to
    `curvature_bound`. Both get Gaussian noise. The leaf's value is residuals / (ridge + curvatures)
    clipped to +-`leaf_bound`, or 0 where the noisy curvatures are negative; scores move by
    `learning_rate` times it.

    Formal guarantee: (epsilon, delta)-DP under zero-out, where the domain is public. With T trees
    at rate Q, of noise multiplier m, the trees are T compositions of the Gaussian mechanism on a
    Poisson sample; m is the least that `privacy.accountant` finds to meet the budget. In units of
    the bounds, residuals have noise m / sqrt(1 - r) and curvatures m / sqrt(r), r being
    `denominator_share`.

    With `as_published` it does as the authors' code:

    - m is found by Renyi accounting up to order 2,000, which asks for more than is needed;
    - the noise of the curvatures is half of that. Their accountant counts the whole. It is as if a
      row's part had the norm sqrt(1 + 3 r) instead of 1. The ledger counts what is drawn: at
      r = 0.04 the looseness of Renyi accounting outweighs it, at r = 0.5 it does not, and the
      ledger names the gap;
    - a row that lies at a candidate trains on the right side of a split, and is predicted on its
      left side;
    - settings were chosen by their scores on the test rows, which the ledger lists.

    Parameters
    ----------
    n_trees, max_depth : int
        T, and splits on a path of each tree.
    learning_rate : float
    residual_bound, curvature_bound : float
        `curvature_bound` is for labels.
    denominator_share : float
        r, in (0, 1).
    sampling : float
        Q, in (0, 1].
    ridge, leaf_bound : float
    candidates : int
        Split points of a numeric feature, at equal distances.
    border : float or None
        They begin at 0 and end below `border`, the same for all features, as in the authors' code.
        None takes each feature's bounds from the domain.
    constrained : bool
        Whether a node splits only where its parents leave two candidates or more.
    initial_share : float
        The part of epsilon for the mean of the targets, where the scores begin; for numbers. 0
        begins at 0.
    initial_bound : float
        Targets, scaled to [-1, 1], are clipped to +- this in the mean.
    as_published : bool
        See above.
    settings_read_rows : bool
        Whether these parameters were chosen by results on the rows. The ledger then lists that.
    epsilon, delta : float
        The budget.
    domain : Domain or None
        Bounds, categories, labels; None reads them from the rows, which epsilon does not cover.
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    cells_ : list of Cells
        Which values of a feature belong together.
    shapes_ : list of ndarray
        The function of each feature, float64 (cells,): log odds, or targets scaled to [-1, 1].
    intercept_ : float
        The first score.
    ledger_ : Ledger
        Every answer.

    Raises
    ------
    ValueError
        On parameters out of range, or values and labels that the domain rules out.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> SBDTClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes."""
        rows = read_training_rows(self, X, y, self.domain, "binary")
        self.domain_ = resolve_domain_of(self, rows, "binary")
        self._train(rows, LogLoss(), self.curvature_bound, None)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log odds of ``classes_[1]``, float64 (n,)."""
        return self._scores(X)

    def _check_together(self) -> None:
        if self.initial_share != 0:
            raise ValueError("initial_share is for numbers, not for labels: leave it at 0")


@tagged(poor_score=True)
class SBDTRegressor(RegressorMixin, _SBDT):
    """Boosted trees for numbers; see `SBDTClassifier`.

    Targets are scaled from the domain's range to [-1, 1]. A leaf divides its residuals by its noisy
    number of rows, whose noise is whole in the authors' code, too.
    """

    @fitting
    def fit(self, X: Any, y: Any) -> SBDTRegressor:
        """Fit to X (n, K) and targets y (n,)."""
        rows = read_training_rows(self, X, y, self.domain, "regression")
        self.domain_ = resolve_domain_of(self, rows, "regression")
        low, high = map(float, self.domain_.target)
        self._train(rows, SquaredLoss(), 1.0, (low, high))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions in the target's unit, float64 (n,)."""
        scores = self._scores(X)
        low, high = map(float, self.domain_.target)
        return low + (scores + 1) / 2 * (high - low)
