"""The curator of the random forest: the rows stay here, trees with noisy labels come out."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree._tree import Tree

from dprepro.methods.diffprivlib_adapter import (
    DecisionTreeClassifier,
    DiffprivlibCompatibilityWarning,
    RandomForestClassifier,
    _FittingTree,
)
from dprepro.methods.diffprivlib_curator import DiffprivlibCurator
from dprepro.privacy.mechanisms import PermuteAndFlipMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import NoisyAnswer, Query, SensitivityError
from dprepro.privacy.sensitivity import REPLACE_ONE, ZERO_OUT, Adjacency


class UnlabelledTree(DecisionTreeClassifier):
    """The library's tree, which counts labels instead of choosing one for each leaf.

    The library chooses with floating-point coins, from the generator of the thresholds, whose seed
    a forest leaves in the tree: whoever holds the model could draw the coins again. Here a curator
    chooses by the counts, see `ForestCurator`.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn 1.9 says yes for all its trees, and its forests ask their trees. The splits
        # of this one know no missing values: rows with some would be predicted unnoticed.
        tags.input_tags.allow_nan = False
        return tags

    def _fit(self, X: np.ndarray, y: np.ndarray, *_args: Any, **_kwargs: Any) -> UnlabelledTree:
        """Sort rows that the forest has checked and clipped into leaves: the library calls this."""
        self.n_outputs_, self.n_features_in_ = 1, X.shape[1]
        self.classes_ = np.ravel(self.classes)
        self.n_classes_ = len(self.classes_)
        thresholds = np.random.RandomState(self.random_state)
        self._growing = _FittingTree(
            self.max_depth, X.shape[1], self.classes_, self.epsilon, self.bounds, thresholds
        ).build()
        codes = np.ravel(y).astype(np.int64)
        known = codes < self.n_classes_
        cells = self._growing.apply(X)[known] * self.n_classes_ + codes[known]
        counts = np.bincount(cells, minlength=self._growing.node_count * self.n_classes_)
        self._counts = Private(counts.reshape(-1, self.n_classes_)[self._leaves()])
        return self

    def give_counts(self) -> Private[np.ndarray]:
        """Return the labels in each leaf, int64 (leaves, classes), and keep nothing of them."""
        counts = self._counts
        del self._counts
        return counts

    def label(self, labels: np.ndarray) -> None:
        """Complete the tree with the label of each leaf, int64 (leaves,)."""
        values = np.zeros((self._growing.node_count, 1, self.n_classes_))
        values[self._leaves(), 0, labels] = 1
        self._growing.values_ = values
        self.tree_ = Tree(self.n_features_in_, np.array([self.n_classes_]), 1)
        self.tree_.__setstate__(self._growing.__getstate__())
        del self._growing

    def _leaves(self) -> list[int]:
        return [node.node_id for node in self._growing.nodes if node.left_child == -1]


@dataclass(frozen=True)
class LeafLabels(Query):
    """The label of each leaf of each tree, by permute-and-flip.

    What is enforced and charged is half of how far a row moves the counts of labels, in all leaves
    together. A choice looks at differences of counts only: in a leaf, half of the largest
    difference between the moves of two counts is at most half of what all move.

    Attributes
    ----------
    adjacency
        Who counts as a neighbour.
    """

    adjacency: Adjacency

    @property
    def enforced(self) -> float:
        """Each row belongs to one tree, by its position, and there to one leaf: 1/2 under zero-out.

        1 under replace-one: a row can leave one leaf and enter another. Infinity where a row more
        or less makes others change trees.
        """
        moves = {Adjacency.ZERO_OUT: 0.5, Adjacency.REPLACE_ONE: 1.0}
        return moves.get(Adjacency(self.adjacency), math.inf)


class ForestCurator(DiffprivlibCurator):
    """Answers once for the trees of a forest; the parameters are those of `DiffprivlibCurator`."""

    relations = frozenset({ZERO_OUT, REPLACE_ONE})

    def grow(self, forest: RandomForestClassifier, query: LeafLabels) -> NoisyAnswer:
        """Let the library grow `forest`, and return the labels of all leaves, int64 (leaves,).

        A leaf without rows gets any label with equal probability, as in the library.

        Raises
        ------
        BudgetError
            If it was done before, or the forest's epsilon is more than the ledger states.
        SensitivityError
            If the query is for another relation than the ledger; if bounds or labels are not
            public, so that the library would read them.
        """
        self._check(forest, query)
        with self._handing_over(), warnings.catch_warnings():
            uses = self._enter(forest, query)
            warnings.simplefilter("ignore", DiffprivlibCompatibilityWarning)
            rows = self._rows.open()
            RandomForestClassifier.fit(forest, rows.features, rows.targets)
        counts = [tree.give_counts().open() for tree in forest.estimators_]
        answer = uses.choose(0, np.concatenate(counts), query)
        parts = np.split(answer.value, np.cumsum([len(part) for part in counts])[:-1])
        for tree, labels in zip(forest.estimators_, parts, strict=True):
            tree.label(labels)
        return self._announce(query, answer)

    def _check(self, forest: RandomForestClassifier, query: LeafLabels) -> None:
        if query.adjacency != self._source.ledger.adjacency:
            raise SensitivityError(
                f"the query is for {query.adjacency} neighbours, but the ledger is for "
                f"{self._source.ledger.adjacency}: ask for the ledger's"
            )
        if forest.bounds is None or forest.classes is None:
            raise SensitivityError(
                "the forest has no bounds or no classes, and would read them from the rows: set "
                "both from the public domain"
            )

    def _enter(self, forest: RandomForestClassifier, query: LeafLabels) -> PermuteAndFlipMechanism:
        """Enter the choice of all labels: a row takes part in one leaf's, so they count once."""
        uses = PermuteAndFlipMechanism(
            self._source,
            (1, forest.n_estimators * 2**forest.max_depth, len(forest.classes)),
            releases="label of each leaf, by its counts",
            epsilon=forest.epsilon,
            sensitivity=query.charged,
        )
        self._require_budget()
        return uses
