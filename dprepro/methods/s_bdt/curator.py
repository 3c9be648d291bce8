"""The curator of S-BDT: cells, targets, scores and samples stay here; noisy sums come out.

All parts of rows are whole numbers of `UNIT`, so sums are exact, and so is the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.estimators.inputs import Rows
from dprepro.methods.s_bdt.losses import BITS, UNIT, Loss
from dprepro.methods.s_bdt.trees import Cells
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import LaplaceMechanism, NumberedGaussianMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import Instruction, NoisyAnswer, Query
from dprepro.privacy.sensitivity import ZERO_OUT, Sensitivity

SETTINGS = "settings: those published were chosen, for each epsilon, by scores on the test rows"
"""What a fit with published settings has read without noise, in the words of the ledger."""

HALVED = (
    "the noise of the curvatures is half of what the budget was divided for, and the budget is "
    "spent more than once"
)
"""The gap of halved noise where the ledger's own accountant finds that it overspends."""


@dataclass(frozen=True)
class Weights:
    """The bounds of a row's residual and curvature, and what each counts in a joint answer.

    A row adds (`residual` r, `curvature` h) to a leaf's two sums, |r| <= `residual_bound` and
    0 <= h <= `curvature_bound`. Noise of one scale comes to both.
    """

    residual: float
    curvature: float
    residual_bound: float
    curvature_bound: float

    @classmethod
    def of(
        cls, residual_bound: float, curvature_bound: float, share: float, halved: bool
    ) -> Weights:
        """Return weights with which curvatures take `share` of the squared norm of a row's part.

        If `halved`, their noise is half as large, so that they count twice as much.
        """
        double = 2.0 if halved else 1.0
        return cls(
            math.sqrt(1 - share) / residual_bound,
            double * math.sqrt(share) / curvature_bound,
            residual_bound,
            curvature_bound,
        )

    @property
    def norm(self) -> float:
        """The largest L2 norm of a row's part."""
        return math.hypot(
            self.residual * self.residual_bound, self.curvature * self.curvature_bound
        )

    @property
    def clips(self) -> tuple[int, int]:
        """The bounds as whole numbers of `UNIT`, rounded down."""
        return int(self.residual_bound / UNIT), int(self.curvature_bound / UNIT)


@dataclass(frozen=True, eq=False)
class LeafSums(Query):
    """The sums of residuals and of curvatures in each leaf of a tree, on a sample of the rows.

    Attributes
    ----------
    tree
        Its number: each tree is asked about once.
    feature, leaf_of
        The feature that it splits, and the leaf of each of its cells, int64 (cells,).
    leaves
        How many leaves there are.
    weights
        What the sums are multiplied by, and the bounds.
    """

    tree: int
    feature: int
    leaf_of: np.ndarray
    leaves: int
    weights: Weights

    @property
    def enforced(self) -> float:
        """A row is in one leaf, and adds its bounded, weighted residual and curvature there."""
        residual, curvature = self.weights.clips
        return math.hypot(
            residual * UNIT * self.weights.residual, curvature * UNIT * self.weights.curvature
        )


@dataclass(frozen=True)
class TargetSum(Query):
    """The sum of the targets, each clipped to [-`bound`, `bound`]."""

    bound: float

    @property
    def enforced(self) -> float:
        """A row that is left out takes a clipped target along."""
        return int(self.bound / UNIT) * UNIT


@dataclass(frozen=True, eq=False)
class Step(Instruction):
    """Add a change, int64 (cells,) of `UNIT`, to the scores of the rows in each cell of a feature.

    Without a feature the change is one number, for all rows.
    """

    feature: int | None
    change: np.ndarray


@dataclass(frozen=True)
class Noise:
    """The noise of a fit.

    Attributes
    ----------
    multiplier
        Standard deviation of the noise in the weighted sums of a leaf.
    sampling, trees
        How likely a row takes part in a tree, and how many trees there are.
    budget
        What the trees were divided.
    initial_epsilon
        That of the first score; 0 if there is none.
    """

    multiplier: float
    sampling: float
    trees: int
    budget: PrivacyBudget
    initial_epsilon: float


class ExactSums:
    """What the rows add up to, without noise.

    Attributes
    ----------
    rows
        How many there are.
    """

    def __init__(self, codes: list[np.ndarray], targets: np.ndarray, loss: Loss) -> None:
        self.rows = len(targets)
        self._codes, self._targets, self._loss = codes, targets, loss
        self._scores = np.zeros(self.rows, np.int64)

    def leaf_sums(self, query: LeafSums, sampled: np.ndarray) -> np.ndarray:
        """Return the sums over the sampled rows, bool (n,), as int64 (2, leaves) of `UNIT`."""
        at = np.flatnonzero(sampled)
        residual, curvature = self._loss.parts(self._targets[at], self._scores[at])
        most, highest = query.weights.clips
        leaf = query.leaf_of[self._codes[query.feature][at]]
        sums = np.zeros((2, query.leaves), np.int64)
        np.add.at(sums[0], leaf, np.clip(residual, -most, most))
        np.add.at(sums[1], leaf, np.clip(curvature, 0, highest))
        return sums

    def target_sum(self, query: TargetSum) -> np.ndarray:
        """Return the sum of clipped targets, int64 (1,) of `UNIT`."""
        most = int(query.bound / UNIT)
        return np.clip(self._targets, -most, most).sum(keepdims=True)

    def add(self, step: Step) -> None:
        """Change the scores."""
        feature = step.feature
        self._scores += step.change if feature is None else step.change[self._codes[feature]]


class SBDTCurator(Curator):
    """Answers about the mean of the targets once, and once about each tree.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them. Their number counts as public.
    cells
        Those of all features.
    loss
        What residuals and curvatures are.
    target
        None for labels; for numbers their bounds, which are scaled to -1 and 1.
    ledger, seed, observed
        See `Curator`.

    Raises
    ------
    ValueError
        If rows hold what the domain rules out.
    """

    relations = frozenset({ZERO_OUT})

    def __init__(
        self,
        rows: Private[Rows],
        cells: list[Cells],
        loss: Loss,
        target: tuple[float, float] | None,
        ledger: Ledger,
        seed: int | None,
        observed: tuple[str, ...],
    ) -> None:
        super().__init__(ledger, seed, observed)
        opened = rows.open()
        names = opened.frame.columns
        codes = [
            each.encode(opened.frame[name], refuse=True)
            for each, name in zip(cells, names, strict=True)
        ]
        self._exact = Private(ExactSums(codes, _in_units(opened.targets, target), loss))
        self._denominator = loss.denominator
        self._most_leaves = 2 * max(each.count for each in cells)

    def enter(self, noise: Noise, weights: Weights, initial_bound: float, halved: bool) -> None:
        """Enter the noise of all trees, and of the first score.

        If `halved` noise of curvatures makes them spend more than is stated, the ledger says so.

        Raises
        ------
        BudgetError
            If they spend more, and noise is not halved.
        """
        if noise.initial_epsilon > 0:
            self._initial = LaplaceMechanism(
                self._source,
                (1, 1),
                releases="sum of the targets, for the first score",
                epsilon=noise.initial_epsilon,
                sensitivity=initial_bound,
            )
        self._sampling = noise.sampling
        norm = weights.norm
        self._uses = NumberedGaussianMechanism(
            self._source,
            (noise.trees, 2, self._most_leaves),
            releases=f"sums of residuals and {self._denominator} in the leaves of each tree",
            noise_multiplier=noise.multiplier / norm,
            # A row that becomes another leaves one leaf and enters another, or stays with the sign
            # of its residual turned.
            sensitivity=Sensitivity(norm, 2 * norm),
            uses=noise.trees,
            budget=noise.budget,
            sampling=noise.sampling,
        )
        if halved and not self._source.ledger.is_calibrated:
            self._source.ledger.gaps.append(HALVED)
        self._require_budget(HALVED if HALVED in self._source.ledger.gaps else None)

    def target_mean(self, query: TargetSum) -> NoisyAnswer:
        """Return the noisy mean of the clipped targets, float64 (1,).

        Raises
        ------
        BudgetError
            If it was answered before.
        """
        exact = self._exact.open()
        noisy = self._initial.answer(0, exact.target_sum(query), query, UNIT)
        rows = max(exact.rows, 1)
        return self._announce(query, NoisyAnswer(noisy.value / rows, noisy.scale / rows))

    def leaf_sums(self, query: LeafSums) -> NoisyAnswer:
        """Return the noisy sums of residuals and of curvatures in the leaves, float64 (2, leaves).

        They are weighted: see `Weights`. Which rows were sampled stays secret.

        Raises
        ------
        BudgetError
            If the tree was asked about before, or is not in the ledger.
        """
        exact = self._exact.open()
        sampled = self._source.sampler.sample(exact.rows, self._sampling)
        units = UNIT * np.array([[query.weights.residual], [query.weights.curvature]])
        sums = exact.leaf_sums(query, sampled)
        return self._announce(query, self._uses.answer(query.tree, sums, query, units))

    def _follow(self, instruction: Any) -> None:
        self._exact.open().add(instruction)


def _in_units(targets: np.ndarray, bounds: tuple[float, float] | None) -> np.ndarray:
    """Return labels 0 and 1, or numbers scaled to [-1, 1] and clipped, int64 (n,) of `UNIT`."""
    values = targets.astype(np.float64)
    if bounds is not None:
        low, high = bounds
        values = np.clip((values - low) / ((high - low) or 1.0) * 2 - 1, -1.0, 1.0)
    whole: np.ndarray = np.rint(values * 2.0**BITS).astype(np.int64)
    return whole
