"""Random forests: scikit-learn's, and diffprivlib's with public bounds and labels."""

from __future__ import annotations

import secrets
import warnings
from typing import Any

import numpy as np
from diffprivlib.models import RandomForestClassifier as DiffprivlibForest
from diffprivlib.models.forest import DecisionTreeClassifier, _FittingTree
from diffprivlib.utils import DiffprivlibCompatibilityWarning
from sklearn.tree._tree import Tree

from dprepro.data.domain import Domain
from dprepro.data.encode import one_hot_bounds
from dprepro.estimators.inputs import values_withheld
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT


class _SecretCoins(secrets.SystemRandom):
    """The operating system's entropy, under the names that the library asks for."""

    def randint(self, a: int, b: int | None = None) -> int:
        """Return an integer below `a`, as NumPy's generators do; of [a, b] with `b`."""
        return self.randrange(a) if b is None else super().randint(a, b)


class _SecretTree(DecisionTreeClassifier):
    """The library's tree, whose labels do not come from the generator of its thresholds.

    The library draws both from one generator, whose seed a forest leaves in the tree: whoever
    holds the model could draw the coins again.
    """

    def _fit(self, X: np.ndarray, y: np.ndarray, *_args: Any, **_kwargs: Any) -> _SecretTree:
        """Fit to rows that the forest has checked and clipped."""
        self.n_outputs_, self.n_features_in_ = 1, X.shape[1]
        self.classes_ = np.ravel(self.classes)
        self.n_classes_ = len(self.classes_)
        state = np.random.RandomState(self.random_state)
        growing = _FittingTree(
            self.max_depth, X.shape[1], self.classes_, self.epsilon, self.bounds, state
        ).build()
        if self.random_state is None:
            growing.random_state = _SecretCoins()
        growing.fit(X, y)
        self.tree_ = Tree(X.shape[1], np.array([self.n_classes_]), 1)
        self.tree_.__setstate__(growing.__getstate__())
        return self


class DPRandomForest(DiffprivlibForest):
    """diffprivlib's random forest with a ledger, and with coins that nobody can toss again.

    Splits are drawn at random within the bounds, without a look at the rows. Each row belongs to
    one tree, by its position, and there to one leaf, whose label permute-and-flip chooses by the
    counts with budget epsilon. Under zero-out one count of one leaf moves by 1: epsilon-DP. Under
    replace-one a row can leave one leaf and enter another, which doubles it. Where the number of
    rows is private (add/remove-one) rows change trees, and nothing is claimed.

    Without a seed labels are drawn from the operating system and thresholds from another
    generator; no seed is kept. The library itself keeps one in each tree, which gives thresholds
    and labels away.

    Attributes
    ----------
    ledger_ : Ledger
        One cited mechanism, and what was read without paying.
    """

    ledger_: Ledger

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        epsilon: float = 1.0,
        max_depth: int = 5,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            n_estimators, epsilon=epsilon, max_depth=max_depth, random_state=random_state
        )
        self.estimator = _SecretTree()
        self.domain = domain

    def _make_estimator(self, append: bool = True, random_state: Any = None) -> _SecretTree:
        # Given a generator, it would give the tree a seed to keep.
        return super()._make_estimator(
            append, random_state if self.random_state is not None else None
        )

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: None = None) -> DPRandomForest:
        """Fit to X, float64 (n, columns) as `OneHotEncoder` makes it, and labels y (n,).

        Raises
        ------
        ValueError
            Without a domain: bounds and labels would be read from the rows.
        """
        if self.domain is None:
            raise ValueError("a private random forest needs a domain: pass domain=Domain(...)")
        self.bounds = one_hot_bounds(self.domain)
        self.classes = np.arange(len(self.domain.target))
        self.ledger_ = Ledger(
            epsilon=self.epsilon,
            delta=0.0,
            adjacency=ZERO_OUT,
            entries=[
                LedgerEntry(
                    mechanism="cited",
                    releases="label of each leaf: permute-and-flip by its counts (diffprivlib)",
                    sensitivity=1.0,
                    norm="max",
                    scale=0.0,
                    uses=1,
                    budget=PrivacyBudget(self.epsilon, 0.0),
                )
            ],
            unpaid=list(self.domain.observed),
            assumed_public=["number and order of rows", "labels", "bounds and categories"],
        )
        self.ledger_.note_seed(self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiffprivlibCompatibilityWarning)
            with values_withheld():
                super().fit(X, y)
        return self
