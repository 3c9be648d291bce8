"""The curator of PrivaTree: bins and labels stay here; cuts and labels of leaves come out.

The impurity of n rows, of which n_k have label k, is h = n - sum_k n_k^2 / n, n times their Gini
impurity, and 0 for no rows. One row more, of label j, moves it by

    h' - h = ((n - n_j)^2 + sum_{k != j} n_k^2) / (n (n + 1)),  0 for n = 0.

The numerator is a sum of squares, and at most 2 (n - n_j)^2 <= 2 n^2 (a sum of squares is at most
the square of the sum). So the move is at least 0, and at most 2 n / (n + 1), which is below 2.

A cut's score is minus the impurity of its two sides together. A row is on one side of each cut, so
it moves every score by a number in (-2, 0]: the moves of two scores differ by less than 2. What all
scores have in common changes no choice, so that half of this, 1, is the sensitivity of the choice
(`LedgerEntry.sensitivity`). Nothing of it depends on the number of rows in the node.

Impurities are rounded down to whole numbers of `UNIT`, each side for itself. If x <= x' < x + w for
a whole number w, here 2 / `UNIT`, then 0 <= floor(x') - floor(x) <= w: rounding adds nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.data.domain import CategoricalFeature, Domain, numbers_of
from dprepro.estimators.inputs import Rows
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.privatree.bins import Cuts, below
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import LaplaceMechanism, PermuteAndFlipMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, Instruction, NoisyAnswer, Query
from dprepro.privacy.sensitivity import ZERO_OUT

BITS = 20
UNIT = 2.0**-BITS
"""Of impurities."""

GINI_BITS = 30
GINI_UNIT = 2.0**-GINI_BITS
"""Of impurities divided by the number of rows of their node."""

MAX_ROWS = 2**31 - 1
"""Squares of such numbers have room in int64."""

_WORST_SHARE = 1 / math.e
"""max over p of p ln(1/p): the paper's bound on the rows that permute-and-flip between two labels
loses in expectation, times epsilon. It is half of that where counts move in one direction."""

RANGES = "ranges of numeric features, between which bins have equal widths"
NOISY_SIZE = (
    "the sensitivity of a cut follows from the noisy number of rows of its node, which can be far "
    "above their number"
)


@dataclass(frozen=True)
class Budget:
    """The epsilon of each level of cuts, and of the labels of all leaves."""

    level: float
    leaves: float

    @classmethod
    def of(cls, epsilon: float, depth: int, rows: int, accepted_error: float) -> Budget:
        """Return the division of the paper, for two labels.

        Labels get min(epsilon / 2, 2^depth / (e n accepted_error)), with which permute-and-flip
        gives wrong labels to an expected share of at most `accepted_error` of n rows; levels share
        the rest equally.
        """
        enough = _WORST_SHARE * 2**depth / (max(rows, 1) * accepted_error)
        leaves = min(epsilon / 2, enough)
        return cls((epsilon - leaves) / depth, leaves)


@dataclass(frozen=True)
class NodeSize(Query):
    """The number of rows in a node, for the sensitivity of its cut as published."""

    node: int

    @property
    def enforced(self) -> float:
        """A row counts 1, in one node of a level."""
        return 1.0


@dataclass(frozen=True)
class Cut(Query):
    """The cut of a node, by permute-and-flip over all cuts of all features.

    Attributes
    ----------
    node
        Its number, level by level from the root.
    divided
        Whether impurities are divided by the number of rows of the node.
    """

    node: int
    divided: bool

    @property
    def enforced(self) -> float:
        """1, or, if divided, what a row moves in a node of one row: 1/2. See `gini_sensitivity`."""
        return gini_sensitivity(1) if self.divided else 1.0


@dataclass(frozen=True)
class LeafLabels(Query):
    """The label of every leaf, by permute-and-flip over its counts of labels."""

    @property
    def enforced(self) -> float:
        """A row moves one count of one leaf by 1: half of what two counts move apart."""
        return 0.5


@dataclass(frozen=True, eq=False)
class Descend(Instruction):
    """Let the rows of a level go to the next one, by the cut of each node, int64 (nodes,)."""

    cuts: np.ndarray


def gini_sensitivity(rows: float) -> float:
    """Return by how much a row moves impurities that are divided by the rows of their node.

    1 - (n / (n + 1))^2 - (1 / (n + 1))^2 = 2 n / (n + 1)^2: the paper's, which falls from n = 1 on.
    """
    return 2 * rows / (rows + 1) ** 2


def impurity(counts: np.ndarray) -> np.ndarray:
    """Return n - sum_k n_k^2 / n of counts of labels, int64 (..., labels): int64 of `UNIT`.

    Rounded down, exactly.
    """
    rows = counts.sum(axis=-1)
    return _quotient(rows**2 - (counts**2).sum(axis=-1), np.maximum(rows, 1), BITS)


def _quotient(over: np.ndarray, under: np.ndarray, bits: int) -> np.ndarray:
    """Return floor(2^bits over / under) of int64 that are not below 0."""
    whole, rest = np.divmod(over, under)
    return (whole << bits) + (rest << bits) // under


class ExactRows:
    """The bins and labels of the rows, and where in the tree they are.

    Attributes
    ----------
    rows
        How many there are.
    level
        That of the nodes in which they are; 0 is the root.
    """

    def __init__(self, codes: np.ndarray, labels: np.ndarray, cuts: Cuts) -> None:
        self._codes, self._labels, self._cuts = codes, labels.astype(np.int64), cuts
        self._places = np.zeros(len(labels), np.int64)
        self.rows, self.level = len(labels), 0
        self._count()

    def size(self, place: int) -> np.ndarray:
        """Return the rows of a node of the level, int64 (1,)."""
        return self._of_node(place).sum(keepdims=True)

    def scores(self, place: int, divided: bool) -> np.ndarray:
        """Return the score of every cut of a node of the level, int64 (1, cuts).

        Of `UNIT`, or of `GINI_UNIT` if divided by the rows of the node.
        """
        counts = np.concatenate([np.zeros((1, 2), np.int64), self._counts[place].cumsum(axis=0)])
        first = self._cuts.starts[self._cuts.feature]
        left = counts[1:] - counts[first]
        both = impurity(left) + impurity(self._of_node(place) - left)
        if divided:
            rows = np.maximum(self.size(place), 1)
            both = _quotient(both, rows, GINI_BITS - BITS)
        return -both[None, :]

    def labels(self) -> np.ndarray:
        """Return how often each label is in each node of the level, int64 (nodes, 2)."""
        cells = 2 * self._places + self._labels
        return np.bincount(cells, minlength=2 * 2**self.level).reshape(-1, 2)

    def descend(self, cuts: np.ndarray) -> None:
        """Let rows go to the next level."""
        feature, last = self._cuts.feature[cuts], self._cuts.last[cuts]
        self._places = below(self._places, feature, last, self._codes)
        self.level += 1
        self._count()

    def _of_node(self, place: int) -> np.ndarray:
        """Return how often each label is in a node, int64 (2,): any feature's bins hold all."""
        return self._counts[place, : self._cuts.counts[0]].sum(axis=0)

    def _count(self) -> None:
        """Count labels in each bin of each feature and node, int64 (nodes, cuts, 2)."""
        bins = len(self._cuts)
        base = 2 * bins * self._places + self._labels
        found = np.zeros(2**self.level * bins * 2, np.int64)
        for codes, start in zip(self._codes, self._cuts.starts, strict=True):
            found += np.bincount(base + 2 * (codes + start), minlength=found.size)
        self._counts = found.reshape(-1, bins, 2)


class PrivaTreeCurator(Curator):
    """Answers for the cuts of a tree, level by level, and then for the labels of its leaves.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them. Their number counts as public.
    domain
        Bounds and categories.
    depth, n_bins
        Levels of cuts, and bins of a numeric feature.
    accepted_error
        See `Budget.of`.
    as_published
        Whether bins are between the least and the largest value, which the ledger lists, and each
        choice of a cut is charged by its noisy number of rows, a gap which the ledger has to list.
    ledger, seed
        See `Curator`.

    Attributes
    ----------
    bins : list of Bins
        Of each feature.
    cuts : Cuts
        All cuts of these bins.
    budget : Budget
        Of levels and leaves.

    Raises
    ------
    ValueError
        If rows hold what the domain rules out, or there are more than `MAX_ROWS`.
    BudgetError
        If all answers together would spend more than the ledger states.
    """

    relations = frozenset({ZERO_OUT})

    def __init__(
        self,
        rows: Private[Rows],
        domain: Domain,
        depth: int,
        n_bins: int,
        accepted_error: float,
        as_published: bool,
        ledger: Ledger,
        seed: int | None,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        opened = rows.open()
        if len(opened.frame) > MAX_ROWS:
            raise ValueError(f"a fit takes {MAX_ROWS:,} rows at most: give a sample of yours")
        self._depth, self._as_published = depth, as_published
        self.bins = self._make_bins(opened, domain, n_bins)
        self.cuts = Cuts.of(self.bins)
        codes = np.stack([
            each.encode(opened.frame[name], refuse=True)
            for each, name in zip(self.bins, opened.frame.columns, strict=True)
        ])  # fmt: skip
        self._exact = Private(ExactRows(codes, opened.targets, self.cuts))
        self.budget = Budget.of(ledger.epsilon, depth, len(opened.frame), accepted_error)
        self._enter_mechanisms()

    def _make_bins(self, rows: Rows, domain: Domain, number: int) -> list[Bins]:
        if not self._as_published:
            return [Bins.of(feature, number) for feature in domain.features]
        self._read_exactly(RANGES)
        found = []
        for name, feature in zip(rows.frame.columns, domain.features, strict=True):
            made = Bins.of(feature, number)
            if not isinstance(feature, CategoricalFeature):
                values = numbers_of(rows.frame[name])
                known = values[~np.isnan(values)]
                if known.size:
                    made = Bins.between(feature, known.min(), known.max(), number)
            found.append(made)
        return found

    def _enter_mechanisms(self) -> None:
        """Enter noise of all sizes, choices of all cuts, and of all labels.

        The nodes of one level, and the leaves, hold disjoint rows: a row takes part in as many
        nodes as there are levels, and in one leaf.
        """
        nodes, level = 2**self._depth - 1, self.budget.level
        if self._as_published:
            self._sizes = LaplaceMechanism(
                self._source,
                (nodes, 1),
                releases="number of rows of each node",
                epsilon=level / 2,
                sensitivity=1.0,
                uses=self._depth,
            )
        releases = "cut of each node, by the impurity of both sides"
        self._choices = PermuteAndFlipMechanism(
            self._source,
            (nodes, 1, len(self.cuts)),
            releases=f"{releases}, in units of what its noisy size says"
            if self._as_published
            else releases,
            epsilon=level / 2 if self._as_published else level,
            sensitivity=1.0,
            uses=self._depth,
        )
        self._labels = PermuteAndFlipMechanism(
            self._source,
            (1, 2**self._depth, 2),
            releases="label of each leaf, by its counts",
            epsilon=self.budget.leaves,
            sensitivity=0.5,
        )
        self._require_budget()
        if self._as_published:
            self._require_gap(NOISY_SIZE)

    def size(self, query: NodeSize) -> NoisyAnswer:
        """Return the noisy number of rows of a node of the level, float64 (1,).

        Raises
        ------
        BudgetError
            If it was answered before, the node is on another level, or sizes are not entered.
        """
        if not self._as_published:
            raise BudgetError("numbers of rows are not in the ledger: only as published")
        exact = self._exact.open()
        size = exact.size(self._place(query.node, exact.level))
        return self._announce(query, self._sizes.answer(query.node, size, query))

    def cut(self, query: Cut) -> NoisyAnswer:
        """Return the number of the cut of a node of the level, int64 (1,).

        Raises
        ------
        BudgetError
            If it was answered before, or the node is on another level.
        """
        exact = self._exact.open()
        scores = exact.scores(self._place(query.node, exact.level), query.divided)
        unit = GINI_UNIT if query.divided else UNIT
        return self._announce(query, self._choices.choose(query.node, scores, query, unit))

    def labels(self, query: LeafLabels) -> NoisyAnswer:
        """Return the code of the label of each leaf, int64 (2^depth,).

        Raises
        ------
        BudgetError
            If they were answered before, or rows are not in the leaves yet.
        """
        exact = self._exact.open()
        if exact.level != self._depth:
            raise BudgetError("labels follow the cuts of all levels: tell `Descend` for each")
        return self._announce(query, self._labels.choose(0, exact.labels(), query))

    def _place(self, node: int, level: int) -> int:
        """Return the place of a node on the level where rows are: others hold no disjoint rows."""
        place = node - (2**level - 1)
        if not 0 <= place < 2**level or level >= self._depth:
            raise BudgetError(f"node {node} is not on level {level}, where the rows are")
        return place

    def _follow(self, instruction: Descend) -> None:
        exact = self._exact.open()
        if exact.level >= self._depth or len(instruction.cuts) != 2**exact.level:
            raise BudgetError("each level is told once, with one cut for each of its nodes")
        exact.descend(instruction.cuts)
