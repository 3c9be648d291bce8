"""Random forests: scikit-learn's, and diffprivlib's with public bounds and labels."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.data.domain import Domain
from dprepro.data.encode import one_hot_bounds
from dprepro.estimators.base import DPEstimator
from dprepro.estimators.inputs import DOMAIN, SEED_OF_NUMPY, fitting, wrap_training_arrays
from dprepro.methods.diffprivlib_adapter import RandomForestClassifier as DiffprivlibForest
from dprepro.methods.forests import ADJACENCY
from dprepro.methods.forests.curator import ForestCurator, LeafLabels, UnlabelledTree
from dprepro.runtime.arguments import EPSILON, Integer


class DPRandomForest(DPEstimator, DiffprivlibForest):
    """diffprivlib's random forest with exact choices of its labels, and with a ledger.

    Splits are drawn at random within the bounds, without a look at the rows. Each row belongs to
    one tree, by its position, and there to one leaf, whose label permute-and-flip chooses by the
    counts with budget epsilon. Under zero-out one count of one leaf moves by 1: epsilon-DP. Under
    replace-one a row can leave one leaf and enter another, which doubles it. Where the number of
    rows is private (add/remove-one) rows change trees, and nothing is claimed.

    The library chooses by floating-point probabilities, from a generator whose seed each tree
    keeps, which gives thresholds and labels away. Here labels are drawn exactly, and thresholds,
    which are public, by another generator; without `random_state` no seed is kept.

    Attributes
    ----------
    ledger_ : Ledger
        One permute-and-flip choice, and what epsilon does not cover.
    """

    domain: Domain

    kinds = MappingProxyType({
        "n_estimators": Integer(1), "epsilon": EPSILON, "max_depth": Integer(1),
        "domain": DOMAIN, "random_state": SEED_OF_NUMPY,
    })  # fmt: skip

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
        self.estimator = UnlabelledTree()
        self.domain = domain  # type: ignore[assignment]

    def _make_estimator(self, append: bool = True, random_state: Any = None) -> UnlabelledTree:
        # Given a generator, it would give the tree a seed to keep.
        return super()._make_estimator(
            append, random_state if self.random_state is not None else None
        )

    @fitting
    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: None = None) -> DPRandomForest:
        """Fit to X, float64 (n, columns) as `OneHotEncoder` makes it, and labels y (n,).

        Raises
        ------
        ValueError
            Without a domain: bounds and labels would be read from the rows.
        """
        self.bounds = one_hot_bounds(self.domain)
        self.classes = np.arange(len(self.domain.target))
        ledger = self._new_ledger(
            ADJACENCY, ["number and order of rows", "labels", "bounds and categories"]
        )
        curator = ForestCurator(
            wrap_training_arrays(X, y, codes=True), ledger, self.random_state, self.domain.observed
        )
        curator.grow(self, LeafLabels(0.5, 1.0, ledger.adjacency))
        self.ledger_ = ledger
        return self
