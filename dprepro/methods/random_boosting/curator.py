"""The curator of random boosting: bins, labels and scores stay here; sums over leaves come out.

Gradients and curvatures are whole numbers of `UNIT`, so their sums are exact, and so is the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from dprepro.data.domain import Domain, refuse_undeclared
from dprepro.estimators.inputs import Rows
from dprepro.methods.random_boosting.candidates import (
    CURVATURE_BOUNDS,
    GRADIENT_BOUND,
    Size,
    as_numbers,
    bins,
    noise_multiplier,
    part_of_budget,
    quantiles,
    ranks,
)
from dprepro.methods.random_boosting.trees import Tree
from dprepro.privacy.curator_base import Curator, GaussianMechanism
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import Instruction, NoisyAnswer, Query, ScaledInteger
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT, Sensitivity

UNIT = 2.0**-24
"""Of gradients, curvatures and scores."""

_ONE = 2**24

_MOST_ROWS = 2**28
"""Sums of so many whole numbers of up to 2^24 are exact in float64."""

QUANTILES = "quantiles of all features, which are the candidates for splits"
RANKS = "values that occur in each column, by whose ranks they are replaced"
UNPAID_HISTOGRAMS = (
    "the budget pays for the histogram of one feature a round, and those of all features are asked "
    "for"
)
DELTA_OF_ROWS = "number of rows: delta is one over it"


@dataclass(frozen=True)
class LeafSums(Query):
    """Sums over the leaves of a tree.

    Attributes
    ----------
    tree
        Drawn from public choices.
    update
        What counts as gradient and as curvature.
    parts
        ("gradient", "curvature"), or one of them.
    """

    tree: Tree
    update: str
    parts: tuple[str, ...]

    @property
    def enforced(self) -> float:
        """The root of the sum of squares of the bounds of its parts: a row lies in one leaf."""
        bounds = {"gradient": GRADIENT_BOUND, "curvature": CURVATURE_BOUNDS[self.update]}
        return math.hypot(*(bounds[part] for part in self.parts))


@dataclass(frozen=True)
class CurvatureHistogram(Query):
    """Sums of curvatures over the bins of a feature."""

    feature: int
    update: str

    @property
    def enforced(self) -> float:
        """The bound of a row's curvature: a row lies in one bin."""
        return CURVATURE_BOUNDS[self.update]


@dataclass(frozen=True, eq=False)
class UseCandidates(Instruction):
    """Put a feature's values into bins by other candidates, float64, ascending."""

    feature: int
    candidates: np.ndarray


@dataclass(frozen=True, eq=False)
class AddTrees(Instruction):
    """Add trees to the scores of all rows. Sums over their leaves were answered before.

    Attributes
    ----------
    trees
        The trees.
    values : float64 (leaves,) each
        Whole numbers of `UNIT`.
    """

    trees: tuple[Tree, ...]
    values: tuple[np.ndarray, ...]


class ExactRows:
    """Bins, labels and scores of the rows, and sums over them without noise.

    Raises
    ------
    ValueError
        If a value is missing or a category unseen where the domain allows it not.
    """

    def __init__(self, rows: Rows, domain: Domain, update: str) -> None:
        frame = rows.frame
        if len(frame) > _MOST_ROWS:
            raise ValueError("the table has too many rows for exact sums: take a part of it")
        self._columns = []
        for name, feature in zip(frame.columns, domain.features, strict=True):
            values = as_numbers(frame[name], feature)
            refuse_undeclared(feature, frame[name], np.isnan(values))
            self._columns.append(values)
        self._codes = np.zeros((len(self._columns), len(frame)), np.uint8)
        self._labels = rows.targets.astype(np.int64) * _ONE
        self._scores = np.zeros(len(frame), np.int64)
        self._update = update
        # By the candidates of the time when a tree was asked about.
        self._places: dict[Tree, np.ndarray] = {}
        self._weigh()

    def rank(self) -> list[np.ndarray]:
        """Replace each value by its rank; return the values that occur, ascending."""
        known = [np.unique(values[~np.isnan(values)]) for values in self._columns]
        self._columns = [ranks(v, k) for v, k in zip(self._columns, known, strict=True)]
        return known

    def quantiles(self, number: int) -> list[np.ndarray]:
        """Return the quantiles of each feature."""
        return [quantiles(values, number) for values in self._columns]

    def use(self, feature: int, candidates: np.ndarray) -> None:
        """Put the values of a feature into bins."""
        self._codes[feature] = bins(self._columns[feature], candidates)

    def leaf_sums(self, tree: Tree, parts: Sequence[str]) -> np.ndarray:
        """Return the sums of each part over each leaf, int64 (parts, leaves)."""
        places = self._places[tree] = tree.places(self._codes)
        of_parts = {"gradient": self._gradients, "curvature": self._curvatures}
        return np.stack([_sums(places, of_parts[part], tree.leaves) for part in parts])

    def histogram(self, feature: int, n_bins: int) -> np.ndarray:
        """Return the sums of curvatures over the bins of a feature, int64 (n_bins,)."""
        return _sums(self._codes[feature], self._curvatures, n_bins)

    def add(self, trees: Sequence[Tree], values: Sequence[np.ndarray]) -> None:
        """Add trees, each summed over before, to the scores of all rows."""
        for tree, of_leaves in zip(trees, values, strict=True):
            self._scores += np.rint(of_leaves / UNIT).astype(np.int64)[self._places[tree]]
        self._places.clear()
        self._weigh()

    def _weigh(self) -> None:
        """Find gradients and curvatures, whole numbers within their bounds, kept as float64.

        A row's are a function of its own label and score: gradient p - y and curvature p (1 - p) of
        the log loss, rounded down. Averaging takes the label and a 1.
        """
        if self._update == "averaging":
            self._gradients = self._labels.astype(np.float64)
            self._curvatures = np.full(len(self._labels), float(_ONE))
            return
        p = np.floor(expit(self._scores * UNIT) * _ONE).astype(np.int64)
        self._gradients = (p - self._labels).astype(np.float64)
        curvatures = (p * (_ONE - p)) >> 24 if self._update == "newton" else np.full(len(p), _ONE)
        self._curvatures = curvatures.astype(np.float64)


def _sums(places: np.ndarray, parts: np.ndarray, number: int) -> np.ndarray:
    return np.bincount(places, weights=parts, minlength=number).astype(np.int64)


def delta_of_rows(rows: Private[Rows], ledger: Ledger) -> None:
    """State a delta of one over the number of rows; the ledger lists that this reads it."""
    ledger.delta = 1 / len(rows.open())
    ledger.unaccounted.append(DELTA_OF_ROWS)


class RandomBoostingCurator(Curator):
    """Answers for one tree after the other.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    domain
        Its bounds are not needed, and values beyond them are not clipped.
    size
        How many answers there will be.
    composition
        How they are added up to find their noise; see `noise_multiplier`.
    ledger, seed
        See `Curator`; the ledger has to list `UNPAID_HISTOGRAMS` if some are not paid for.

    Raises
    ------
    ValueError
        If a value is missing or a category unseen where the domain allows it not.
    SensitivityError
        If the ledger does not list that gap.
    """

    relations = frozenset({ADD_REMOVE, ZERO_OUT})

    def __init__(
        self,
        rows: Private[Rows],
        domain: Domain,
        size: Size,
        composition: str,
        ledger: Ledger,
        seed: int | None,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        self._exact = Private(ExactRows(rows.open(), domain, size.update))
        self._size = size
        self._multiplier = noise_multiplier(size.answers, ledger.budget, composition)
        self._leaf_uses = self._enter_leaves(ledger)
        self._histogram_uses = self._enter(
            ledger, "curvature in each bin of a feature", size.curvature, size.histograms
        )
        self._require_budget(UNPAID_HISTOGRAMS if size.unpaid else None)

    def _enter_leaves(self, ledger: Ledger) -> dict[tuple[str, ...], GaussianMechanism | None]:
        size, trees = self._size, self._size.trees
        if not size.separate:
            what = "gradient and curvature in each leaf of a tree"
            parts = ("gradient", "curvature")
            return {parts: self._enter(ledger, what, size.both, trees)}
        return {
            ("gradient",): self._enter(
                ledger, "gradient in each leaf of a tree", size.gradient, trees
            ),
            ("curvature",): self._enter(
                ledger, "curvature in each leaf of a tree", size.curvature, trees
            ),
        }

    def _enter(
        self, ledger: Ledger, releases: str, sensitivity: Sensitivity, uses: int
    ) -> GaussianMechanism | None:
        if not uses:
            return None
        return self._gaussian(
            releases=releases,
            noise_multiplier=self._multiplier,
            sensitivity=sensitivity,
            uses=uses,
            budget=part_of_budget(ledger.budget, uses, self._size.answers),
        )

    def ranks(self) -> list[np.ndarray]:
        """Replace values by ranks; return the values that occur, which the ledger lists."""
        self._read_exactly(RANKS)
        return self._exact.open().rank()

    def quantiles(self, number: int) -> list[np.ndarray]:
        """Return quantiles of each feature, which the ledger lists."""
        self._read_exactly(QUANTILES)
        return self._exact.open().quantiles(number)

    def leaf_sums(self, query: LeafSums) -> NoisyAnswer:
        """Return noisy sums over the leaves of a tree, float64 (parts, leaves).

        Raises
        ------
        BudgetError
            If all trees were answered before.
        """
        uses = self._leaf_uses[query.parts]
        assert uses is not None
        return self._answer(
            uses,
            query,
            lambda asked: ScaledInteger(
                self._exact.open().leaf_sums(asked.tree, asked.parts), UNIT
            ),
        )

    def histogram(self, query: CurvatureHistogram, n_bins: int) -> NoisyAnswer:
        """Return the noisy curvature in each of the bins of a feature, float64 (n_bins,).

        Raises
        ------
        BudgetError
            If all histograms were answered before.
        """
        assert self._histogram_uses is not None
        return self._answer(
            self._histogram_uses,
            query,
            lambda asked: ScaledInteger(self._exact.open().histogram(asked.feature, n_bins), UNIT),
        )

    def _follow(self, instruction: Any) -> None:
        exact = self._exact.open()
        if isinstance(instruction, UseCandidates):
            exact.use(instruction.feature, instruction.candidates)
        else:
            exact.add(instruction.trees, instruction.values)
