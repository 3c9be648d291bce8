"""The curator of the random forest: the rows stay here, trees with noisy labels come out."""

from __future__ import annotations

import math
import secrets
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from diffprivlib.models import RandomForestClassifier
from diffprivlib.models.forest import DecisionTreeClassifier, _FittingTree
from diffprivlib.utils import DiffprivlibCompatibilityWarning
from sklearn.tree._tree import Tree

from dprepro.baselines.curator import LibraryCurator
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import LedgerEntry
from dprepro.privacy.release import Query, Release, SensitivityError
from dprepro.privacy.sensitivity import ZERO_OUT, Adjacency


class SecretCoins(secrets.SystemRandom):
    """The operating system's entropy, under the names that the library asks for."""

    def randint(self, a: int, b: int | None = None) -> int:
        """Return an integer below `a`, as NumPy's generators do; of [a, b] with `b`."""
        return self.randrange(a) if b is None else super().randint(a, b)


class SecretTree(DecisionTreeClassifier):
    """The library's tree, whose labels do not come from the generator of its thresholds.

    The library draws both from one generator, whose seed a forest leaves in the tree: whoever
    holds the model could draw the coins again.
    """

    def _fit(self, X: np.ndarray, y: np.ndarray, *_args: Any, **_kwargs: Any) -> SecretTree:
        """Fit to rows that the forest has checked and clipped: the library calls this."""
        self.n_outputs_, self.n_features_in_ = 1, X.shape[1]
        self.classes_ = np.ravel(self.classes)
        self.n_classes_ = len(self.classes_)
        state = np.random.RandomState(self.random_state)
        growing = _FittingTree(
            self.max_depth, X.shape[1], self.classes_, self.epsilon, self.bounds, state
        ).build()
        if self.random_state is None:
            growing.random_state = SecretCoins()
        growing.fit(X, y)
        self.tree_ = Tree(X.shape[1], np.array([self.n_classes_]), 1)
        self.tree_.__setstate__(growing.__getstate__())
        return self


@dataclass(frozen=True)
class LeafLabels(Query):
    """The label of each leaf of each tree, by permute-and-flip.

    What is enforced and charged is how far a row moves the counts of labels in all leaves together.

    Attributes
    ----------
    adjacency
        Who counts as a neighbour.
    """

    adjacency: Adjacency

    @property
    def enforced(self) -> float:
        """Each row belongs to one tree, by its position, and there to one leaf: 1 under zero-out.

        2 under replace-one: a row can leave one leaf and enter another. Infinity where a row more
        or less makes others change trees.
        """
        moves = {Adjacency.ZERO_OUT: 1.0, Adjacency.REPLACE_ONE: 2.0}
        return moves.get(Adjacency(self.adjacency), math.inf)


class ForestCurator(LibraryCurator):
    """Answers once for the trees of a forest; the parameters are those of `LibraryCurator`."""

    relations = frozenset({ZERO_OUT})

    def grow(self, forest: RandomForestClassifier, query: LeafLabels) -> Release:
        """Let the library fit `forest`, and return the labels of all leaves, float64 (leaves,).

        Raises
        ------
        BudgetError
            If it was done before, or the forest's epsilon is more than the ledger states.
        SensitivityError
            If the query is for another relation than the ledger, or charges other than 1, for which
            the library chooses; if bounds or labels are not public, so that the library would read
            them.
        """
        self._check(forest, query)
        with self._handing_over(), warnings.catch_warnings():
            self._enter(forest.epsilon, query)
            warnings.simplefilter("ignore", DiffprivlibCompatibilityWarning)
            rows = self._rows.open()
            RandomForestClassifier.fit(forest, rows.features, rows.targets)
        labels = np.concatenate([_leaf_labels(tree.tree_) for tree in forest.estimators_])
        return self._announce(query, Release(labels, 0.0))

    def _check(self, forest: RandomForestClassifier, query: LeafLabels) -> None:
        if query.adjacency != self._source.ledger.adjacency or query.charged != 1.0:
            raise SensitivityError(
                f"the query charges {query.charged!r} under {query.adjacency!r}, but the library "
                f"chooses labels for 1.0, and the ledger is for {self._source.ledger.adjacency!r}"
            )
        if forest.bounds is None or forest.classes is None:
            raise SensitivityError(
                "the forest has no bounds or no classes, and would read them from the rows: set "
                "both from the public domain"
            )

    def _enter(self, epsilon: float, query: LeafLabels) -> None:
        entry = LedgerEntry(
            mechanism="cited",
            releases="label of each leaf: permute-and-flip by its counts (diffprivlib)",
            sensitivity=query.charged,
            norm="max",
            scale=0.0,
            uses=1,
            budget=PrivacyBudget(epsilon, 0.0),
        )
        self._source.ledger.add(entry)
        self._require_budget()


def _leaf_labels(tree: Any) -> np.ndarray:
    leaves = tree.children_left == -1
    return np.argmax(tree.value[leaves, 0, :], axis=1).astype(np.float64)
