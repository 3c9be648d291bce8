"""Estimators of version 22: those of version 21 with another algorithm."""

from __future__ import annotations

from typing import Any

from dprepro.data.domain import Domain
from dprepro.estimators.base import tagged
from dprepro.methods.dp_ebm_plus.curator import PlusCurator
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC as LABELS
from dprepro.methods.dp_ebm_plus.losses import Loss
from dprepro.methods.dp_ebm_plus.one_way.algorithm import EPOCHS, learn
from dprepro.methods.dp_ebm_plus.one_way.losses import LOGISTIC, SQUARED
from dprepro.privacy.budget import PrivacyBudget


class _Learned:
    """How functions are learned, and that there are no pairs yet."""

    pairs: int
    n_epochs: int | None

    def _learn(
        self, curator: PlusCurator, domain: Domain, loss: Loss, budget: PrivacyBudget
    ) -> tuple[Any, ...]:
        n_epochs = EPOCHS if self.n_epochs is None else self.n_epochs
        of_loss = LOGISTIC if loss is LABELS else SQUARED
        return *learn(curator, domain, of_loss, budget, n_epochs), []

    def _check_together(self) -> None:
        super()._check_together()  # type: ignore[misc]
        if self.pairs:
            raise ValueError(
                f"{type(self).__name__} has no pairs of features: give pairs=0, or take dp-ebm-plus"
            )


@tagged(poor_score=True)
class DPEBMPlus22Classifier(_Learned, DPEBMPlusClassifier):
    """Version 22 of `DPEBMPlusClassifier`: the same guarantee, parameters and attributes."""


@tagged(poor_score=True)
class DPEBMPlus22Regressor(_Learned, DPEBMPlusRegressor):
    """Version 22 of `DPEBMPlusRegressor`: the same guarantee, parameters and attributes."""
