"""DPBoost: Li, Wu, Wen, He, "Privacy-preserving gradient boosting decision trees" (AAAI 2020).

Ensembles of trees on disjoint rows, one after the other, share one budget. All is made of noisy
answers: the rows are the curator's.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from dprepro.data.domain import Domain, TaskKind
from dprepro.estimators.base import BinaryModel, DPEstimator, FrameModel, tagged
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    Rows,
    fitting,
    plain,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.estimators.targets import target_range
from dprepro.methods.dpboost.bins import MAX_BINS, as_numbers
from dprepro.methods.dpboost.curator import AddTree, DPBoostCurator, LeafQuery, SplitQuery, Start
from dprepro.methods.dpboost.kernel import UNIT, on_grid, whole
from dprepro.methods.dpboost.sensitivity import gain_sensitivity, leaf_clip, leaf_sensitivity
from dprepro.methods.dpboost.tree import FitSettings, Forest, Tree
from dprepro.methods.dpboost.variants import VARIANTS, Variant
from dprepro.privacy.private_rows import Private
from dprepro.runtime.arguments import EPSILON, INSIDE, Integer, Number, OneOf, OrNone

MAX_DEPTH = 10


def boost(
    curator: DPBoostCurator, start: float, params: FitSettings, variant: Variant
) -> list[Tree]:
    """Fit `n_trees` trees to the squared loss (F - y)^2 / 2, one after the other.

    `start` is the score from which all rows start, a multiple of `kernel.UNIT`.
    """
    curator.tell(Start(start))
    units = leaf_sensitivity(
        params.learning_rate, params.ridge, np.arange(params.n_trees) % params.trees_per_ensemble
    )
    trees = []
    for t in range(params.n_trees):
        feature, cut, left = curator.splits(split_query(variant, params.ridge)).value
        values = np.zeros(feature.size)
        leaves = np.flatnonzero(feature < 0)
        if variant.complete or leaves.size > 1:
            query = leaf_query(t, float(units[t]), params, variant)
            values[leaves] = on_grid(params.learning_rate * curator.leaf_values(query).value)
        trees.append(Tree(feature, cut, left, values))
        curator.tell(AddTree(trees[-1]))
    return trees


def split_query(variant: Variant, ridge: float) -> SplitQuery:
    """Return the query for the splits of any tree."""
    return SplitQuery(
        gain_sensitivity(1.0, variant.gain(ridge)), 1.0, bound=1 + variant.tolerance,
        complete=variant.complete, gap=variant.split_gap,
    )  # fmt: skip


def leaf_query(t: int, unit: float, params: FitSettings, variant: Variant) -> LeafQuery:
    """Return the query for the leaves of tree `t`, whose sensitivity is `unit`."""
    return LeafQuery(
        unit, 1.0, bound=1 + variant.tolerance, ridge=params.ridge,
        clip=float(leaf_clip(params.learning_rate, t % params.trees_per_ensemble)),
        independent=variant.subsets.independent, gap=variant.leaf_gap,
    )  # fmt: skip


def _variant(name: str, given: object) -> Variant:
    """Return a variant, given itself or by its name."""
    return given if isinstance(given, Variant) else VARIANTS[OneOf(tuple(VARIANTS))(name, given)]


@dataclass(eq=False, repr=False)
class _DPBoost(DPEstimator, FrameModel):
    """Parameters and training that the classifier and the regressor share."""

    _task: ClassVar[TaskKind]

    kinds = MappingProxyType({
        "epsilon": EPSILON, "variant": _variant, "n_trees": Integer(1),
        "trees_per_ensemble": Integer(1), "learning_rate": INSIDE,
        "max_depth": Integer(1, MAX_DEPTH), "reg_lambda": Number(0),
        "max_bins": Integer(2, MAX_BINS), "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    epsilon: float = 1.0
    _: KW_ONLY
    variant: str | Variant = "as-published"
    n_trees: int = 50
    trees_per_ensemble: int = 50
    learning_rate: float = 0.1
    max_depth: int = 6
    reg_lambda: float = 0.1
    max_bins: int = MAX_BINS
    domain: Domain | None = None
    random_state: int | None = None

    def _train(
        self, private: Private[Rows], domain: Domain, target_range: tuple[float, float]
    ) -> None:
        """Boost the rows, whose targets are clipped to `target_range`."""
        variant = self._variant
        params = FitSettings(
            epsilon=self.epsilon,
            n_trees=self.n_trees,
            trees_per_ensemble=self.trees_per_ensemble,
            learning_rate=self.learning_rate,
            max_depth=self.max_depth,
            ridge=self.reg_lambda,
        )
        self.domain_ = domain
        self.ledger_ = self._new_ledger(
            variant.adjacency,
            [
                *variant.assumed_public,
                "names, types and number of features",
                domain.is_public and "bounds, categories and target range or labels",
            ],
            unaccounted=variant.unaccounted,
            gaps=variant.gaps,
        )
        curator = DPBoostCurator(
            private, domain, target_range, self.max_bins, params, variant, self.ledger_,
            self.random_state,
        )  # fmt: skip
        self.bins_ = curator.bins
        self.start_ = curator.mean_target() if self._task in variant.centred else 0.0
        self.trees_ = boost(curator, self.start_, params, variant)

    @property
    def _variant(self) -> Variant:
        variant: Variant = plain(self, "variant")
        return variant

    def _scores(self, X: Any) -> np.ndarray:
        """Return the initial score and all trees together, float64 (n,), on the variant's scale."""
        frame = self._frame(X)
        codes = np.column_stack(
            [
                bins.encode(as_numbers(frame[name], bins.feature))
                for name, bins in zip(frame.columns, self.bins_, strict=True)
            ]
        )
        forest = Forest(codes, int(whole(np.array(self.start_))))
        forest.add(*self.trees_)
        return forest.scores(np.arange(len(codes))) * UNIT


@tagged(poor_score=True)
class DPBoostClassifier(BinaryModel, _DPBoost):
    """DPBoost for binary labels: squared loss on labels -1 and +1, starting from 0.

    The authors recommended this for classification at the time of the first comparisons. The
    logistic loss of their code came later; its sensitivity is not bounded.

    Formal guarantee of ``variant="sound"``: epsilon-DP under add/remove-one, given a public
    domain. Ensembles follow each other on all rows and share epsilon equally. Within an ensemble
    each row draws at random which tree it trains, independently of the other rows. So one row more
    or less changes at most one tree. Half of a tree's budget goes to its leaves, half to the
    `max_depth` splits on the row's path. Gains move by at most 3, and leaf values by at most
    min(1 / (1 + lambda), 2 (1 - eta)^k), because rows with |gradient| > 1 wait for a later tree.
    Cuts come from the domain. Every node above `max_depth` is split and every leaf gets noise, even
    if it holds no row.

    Both variants count targets, scores and leaf values in units of 2^-24, and gains in units of
    2^-20. The sensitivities include what rounding adds. Noise and choices are exact: see
    `dprepro.privacy.sampling`.

    ``variant="as-published"`` does what the authors' code does, apart from its constant random
    seeds: LightGBM's bins read from the rows; trees that grow best-first to 31 leaves by exact
    gains, leave 20 rows on either side of a split and stay empty where that is impossible; rows
    drawn in fixed numbers; splits that spend a quarter of epsilon on a path, so that a quarter is
    not spent at all. It has no guarantee: the ledger names what epsilon does not cover, and where
    the proof fails.

    Parameters
    ----------
    epsilon : float
        The budget.
    variant : {"as-published", "sound"} or Variant
        See above. `dprepro.methods.dpboost.variants.of_code` makes others, of options of the
        authors' code.
    n_trees, trees_per_ensemble : int
        T, and how many of them share the rows between them.
    learning_rate : float
        eta, strictly between 0 and 1. The share of rows of successive trees, and their leaves,
        shrink at this rate, too.
    max_depth : int
        D, at most 10.
    reg_lambda : float
        lambda.
    max_bins : int
        Bins a feature, at most 255. A category counts as its position in the domain.
    domain : Domain or None
        The public domain. None reads it from the training rows, with a warning.
    random_state : int or None
        None seeds the noise from the operating system. An integer makes the fit repeatable: this
        is for experiments only, and the ledger says so.

    Attributes
    ----------
    ledger_ : Ledger
        Every noisy answer, what was taken as public, and the spent epsilon.
    domain_ : Domain
        The domain used.
    bins_ : list of FeatureCuts
        The cuts of each feature.
    trees_ : list of Tree
        Splits and noisy leaves; without counts or other exact sums.
    start_ : float
        The initial score. Scores and leaf values are multiples of 2^-24.

    Raises
    ------
    ValueError
        On parameters out of range, infinite values, or values and labels that the domain rules
        out; without a public domain on other than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dprepro.data.domain import Domain, NumericFeature
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X = X[["mean radius", "mean texture"]]
    >>> domain = Domain((NumericFeature("mean radius", 0, 40),
    ...                  NumericFeature("mean texture", 0, 50)), ("malignant", "benign"))
    >>> model = DPBoostClassifier(epsilon=50, variant="sound", domain=domain, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    _task = "binary"

    @fitting
    def fit(self, X: Any, y: Any) -> DPBoostClassifier:
        """Fit to X (n, K) and y (n,), the domain's labels or their codes.

        Without a public domain both labels have to occur.
        """
        private = read_training_rows(self, X, y, self.domain, "binary")
        self._train(private, resolve_domain_of(self, private, "binary"), (0.0, 1.0))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score F(x), float64 (n,).

        On labels -1 and +1 it estimates 2 P(``classes_[1]``) - 1, on 0 and 1 the probability.
        """
        return self._scores(X)

    def _positive(self, scores: np.ndarray) -> np.ndarray:
        """Return (1 + F) / 2 on labels -1 and +1, and F on 0 and 1, within [0, 1]."""
        low, high = self._variant.scale
        return np.clip((scores - low) / (high - low), 0.0, 1.0)

    @property
    def _middle(self) -> float:
        return sum(self._variant.scale) / 2


@tagged(poor_score=True)
class DPBoostRegressor(RegressorMixin, _DPBoost):
    """DPBoost for regression.

    Targets are clipped to the domain's target range and scaled to [-1, 1]. With
    ``variant="as-published"`` boosting starts from their exact mean, as the authors' regression
    does by LightGBM's default. The ledger lists it as not covered by epsilon. With
    ``variant="sound"`` it starts from 0, the middle of the range, as the paper does, and
    predictions are clipped to the range.

    Parameters, attributes, guarantee and errors are those of `DPBoostClassifier`.
    """

    _task = "regression"

    @fitting
    def fit(self, X: Any, y: Any) -> DPBoostRegressor:
        """Fit to X (n, K) and targets y (n,)."""
        private = read_training_rows(self, X, y, self.domain, "regression")
        domain = resolve_domain_of(self, private, "regression")
        self._train(private, domain, target_range(domain))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target, float64 (n,)."""
        scores, (low, high) = self._scores(X), self._variant.scale
        if self._variant.clipped:
            scores = np.clip(scores, low, high)
        lower, upper = target_range(self.domain_)
        return lower + (upper - lower) * (scores - low) / (high - low)
