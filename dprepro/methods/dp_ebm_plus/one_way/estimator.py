"""Estimators of version 22: those of version 21 with another algorithm."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any

from dprepro.additive.editing import make_all_monotone
from dprepro.data.domain import Domain
from dprepro.estimators.base import tagged
from dprepro.estimators.inputs import FitRows, fitting, read_training_rows, resolve_domain_of
from dprepro.estimators.targets import target_range, task_of_labels
from dprepro.estimators.weights import LARGEST_WEIGHT
from dprepro.methods.dp_ebm_plus.counts import POISSON as COUNTS
from dprepro.methods.dp_ebm_plus.counts import CountLoss
from dprepro.methods.dp_ebm_plus.curator import CuratedLoss, PlusCurator
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC as LABELS
from dprepro.methods.dp_ebm_plus.one_way import classes
from dprepro.methods.dp_ebm_plus.one_way.algorithm import EPOCHS, learn
from dprepro.methods.dp_ebm_plus.one_way.counts import CountBooster
from dprepro.methods.dp_ebm_plus.one_way.losses import LOGISTIC, POISSON, SQUARED
from dprepro.methods.dp_ebm_plus.softmax import Softmax
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.private_rows import Private
from dprepro.runtime.arguments import Kind, OneOf

_KINDS: MappingProxyType[str, Kind] = MappingProxyType(
    {**DPEBMPlusClassifier.kinds, "largest_weight": LARGEST_WEIGHT}
)


class _Learned:
    """How functions are learned."""

    pairs: int
    n_epochs: int | None

    def _learn(
        self, curator: PlusCurator, domain: Domain, loss: CuratedLoss, budget: PrivacyBudget
    ) -> tuple[Any, ...]:
        n_epochs = EPOCHS if self.n_epochs is None else self.n_epochs
        if isinstance(loss, Softmax):
            return *classes.learn(curator, domain, budget, n_epochs), None, []
        if isinstance(loss, CountLoss):
            return learn(curator, domain, POISSON, budget, n_epochs, kind=CountBooster)
        of_loss = LOGISTIC if loss is LABELS else SQUARED
        return learn(curator, domain, of_loss, budget, n_epochs, self.pairs)


@tagged(poor_score=True, multi_class=True)
@dataclass(eq=False, repr=False)
class DPEBMPlus22Classifier(_Learned, DPEBMPlusClassifier):
    """Version 22 of `DPEBMPlusClassifier`: the same guarantee, parameters and attributes.

    Pairs are asked about with codes, as features are: see `one_way.pairs`.

    Answer 2 is a sum of codes of the cells that rows lie in, as bins have in an epoch: a row adds a
    vector of at most the length that is charged (`queries.CodedHistogram`).

    It also takes more than two labels: S of the public domain. Then answer 1 is the number of rows
    of each class, to which a row adds 1 in one place; and in an epoch a row adds its residual
    vector, (S,), times its code: the query has the sensitivity c as well
    (`queries.ClassResiduals`). Functions, their noise and the intercept are of each class:
    float64 (n_bins, S) and (S,). They add up to 0 over the classes, and probabilities are the
    softmax of the scores. Such a model has no `monotone` features and no `pairs`.

    `fit` takes weights of rows, which are private. A row of weight w counts as w / `largest_weight`
    of a row, rounded down to 1/256, in every answer, so no sensitivity is larger
    (`dprepro.methods.dp_ebm_plus.weighing`). Numbers of rows, such as `bin_counts_`, are then sums
    of weights over the largest; noise matters as much as for a table of so many rows. So state no
    larger weight than you need.

    Parameters
    ----------
    largest_weight : float
        W, public: the largest weight that a row of such a table may have, whichever are in it.
        Without weights it is not used.
    """

    kinds = _KINDS

    _: KW_ONLY
    largest_weight: float = 1.0

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DPEBMPlus22Classifier:
        """Fit to X (n, K) and y (n,), as `DPEBMPlusClassifier`, with two labels or more.

        `sample_weight` (n,), of rows in memory: numbers above 0, at most `largest_weight`.
        """
        rows = read_training_rows(self, X, y, self.domain, "labels", sample_weight, in_chunks=True)
        task = task_of_labels(self.classes_, self.domain)
        if task == "multiclass" and self.monotone:
            raise ValueError(
                "monotone is for two labels: which way a function of several classes goes depends "
                "on the class. Leave it out"
            )
        if task == "multiclass" and self.pairs:
            raise ValueError("a model of several classes has no pairs of features: give pairs=0")
        domain = resolve_domain_of(self, rows, task)
        loss = LABELS if task == "binary" else Softmax(self.classes_.size)
        shapes, intercept, _ = self._train(rows, domain, loss)
        self._set_shapes(shapes, intercept)
        make_all_monotone(self, self.monotone)
        return self


@tagged(poor_score=True)
@dataclass(eq=False, repr=False)
class DPEBMPlus22Regressor(_Learned, DPEBMPlusRegressor):
    """Version 22 of `DPEBMPlusRegressor`: the same guarantee, parameters and attributes.

    It also takes weights, as `DPEBMPlus22Classifier`.

    For counts there is ``loss="poisson"``. Targets then lie from 0 to a public largest count M, the
    upper end of the domain's target range, and are clipped to it. A function adds to the logarithm
    of the predicted mean count, M exp(F), F at most 0. The answers are those of a regression, of
    the same sensitivities: a row has the target y / M and the residual y / M - exp(F), clipped
    where that of a regression is (`dprepro.methods.dp_ebm_plus.counts`). Such a model has no
    prediction intervals and no pairs.

    Parameters
    ----------
    loss : str
        "squared_error", or "poisson" for counts.
    """

    kinds = MappingProxyType({**_KINDS, "loss": OneOf(("squared_error", "poisson"))})

    _: KW_ONLY
    largest_weight: float = 1.0
    loss: str = "squared_error"

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DPEBMPlus22Regressor:
        """Fit to X (n, K) and targets y (n,), as `DPEBMPlusRegressor`.

        `sample_weight` (n,), of rows in memory: numbers above 0, at most `largest_weight`.
        """
        rows = read_training_rows(
            self, X, y, self.domain, "regression", sample_weight, in_chunks=True
        )
        domain = resolve_domain_of(self, rows, "regression")
        if self.loss == "poisson":
            self._fit_counts(rows, domain)
        else:
            self._fit(rows, domain)
        return self

    def _check_together(self) -> None:
        super()._check_together()
        if self.pairs and self.loss == "poisson":
            raise ValueError(
                "loss='poisson' has no pairs of features: give pairs=0, or loss='squared_error'"
            )

    def _fit_counts(self, rows: Private[FitRows], domain: Domain) -> None:
        lower, largest = target_range(domain)
        if lower != 0:
            raise ValueError(
                f"loss='poisson' is for counts, which begin at 0, but the domain's target range is "
                f"from {lower:g} to {largest:g}: state it from 0 to the largest count, or give "
                "loss='squared_error'"
            )
        self.range_, self.log_link_ = (0.0, largest), True
        shapes, intercept, _ = self._train(rows, domain, COUNTS)
        self._set_shapes(shapes, math.log(largest) + intercept)
        make_all_monotone(self, self.monotone)
