"""Random forests: scikit-learn's, and diffprivlib's with public bounds and labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from diffprivlib.models import RandomForestClassifier as DiffprivlibForest
from diffprivlib.utils import DiffprivlibCompatibilityWarning
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from dprepro.data.domain import Domain
from dprepro.data.encode import one_hot_bounds
from dprepro.methods.registry import Guarantee, Method, Setting, defaults_of
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import ZERO_OUT


class DPRandomForest(DiffprivlibForest):
    """diffprivlib's random forest with a ledger.

    Splits are drawn at random within the bounds, without a look at the rows. Each row belongs to
    one tree, by its position, and there to one leaf, whose label permute-and-flip chooses by the
    counts with budget epsilon. Under zero-out one count of one leaf moves by 1: epsilon-DP. Under
    replace-one a row can leave one leaf and enter another, which doubles it. Where the number of
    rows is private (add/remove-one) rows change trees, and nothing is claimed.

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
        self.domain = domain

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
                    budget=(self.epsilon, 0.0),
                )
            ],
            unpaid=list(self.domain.observed),
            assumed_public=["number and order of rows", "labels", "bounds and categories"],
        )
        self.ledger_.note_seed(self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiffprivlibCompatibilityWarning)
            super().fit(X, y)
        return self


def _build_private(setting: Setting, **params: Any) -> Any:
    return DPRandomForest(
        epsilon=setting.epsilon, domain=setting.domain, random_state=setting.seed, **params
    )


def _build_plain(setting: Setting, **params: Any) -> Any:
    regression = setting.task == "regression"
    estimator = RandomForestRegressor if regression else RandomForestClassifier
    return estimator(random_state=setting.seed, n_jobs=1, **params)


METHODS = [
    Method(
        name="dp-random-forest",
        title="DP random forest",
        tasks=frozenset({"binary", "multiclass"}),
        guarantee=Guarantee.PURE,
        adjacency=ZERO_OUT,
        assumes=("public: bounds, categories, labels, number and order of rows",),
        reference="Fletcher, Islam 2017, with permute-and-flip, as in diffprivlib 0.6.6",
        build=_build_private,
        takes_epsilon=True,
        encoding="one-hot",
        defaults=defaults_of(DPRandomForest, "epsilon", "domain", "random_state"),
    ),
    Method(
        name="random-forest",
        title="Random forest",
        tasks=frozenset({"binary", "multiclass", "regression"}),
        guarantee=Guarantee.NONE,
        adjacency=None,
        assumes=(),
        reference="Breiman 2001, scikit-learn defaults (100 trees) on one-hot categories",
        build=_build_plain,
        takes_epsilon=False,
        encoding="one-hot",
        defaults={"n_estimators": 100, "max_depth": None, "min_samples_leaf": 1},
    ),
]
