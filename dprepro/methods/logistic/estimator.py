"""Logistic regression, with and without privacy, each as published and on a fair footing."""

from __future__ import annotations

import warnings
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dprepro.data.domain import Domain
from dprepro.estimators.base import DPEstimator
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED_OF_NUMPY,
    check_rows,
    fitting,
    wrap_training_arrays,
)
from dprepro.methods.diffprivlib_adapter import LogisticRegression as DiffprivlibLogisticRegression
from dprepro.methods.logistic import ADJACENCY
from dprepro.methods.logistic.curator import LARGEST_NORM, Coefficients, LogisticCurator
from dprepro.runtime.arguments import EPSILON, MODERATE, POSITIVE, Integer, OrNone, flag


class DPLogisticRegression(DPEstimator, DiffprivlibLogisticRegression):
    """diffprivlib's logistic regression with a ledger.

    The library's proof needs rows of norm at most 1 and the optimum of the perturbed objective:
    with a norm bound d above 1 its noise uses d where d^2 is needed, and an intercept adds a column
    of ones outside the bound. `data_norm=1`, ``fit_intercept=False``, a small `tol` and a high
    `max_iter` keep the promise; anything else is named as a gap.

    Attributes
    ----------
    ledger_ : Ledger
        One cited mechanism, with the epsilon that is proved for it where the norm is public; what
        epsilon does not cover, and the gaps.
    """

    data_norm: Any

    kinds = MappingProxyType({
        "epsilon": EPSILON, "data_norm": OrNone(MODERATE), "tol": POSITIVE, "C": POSITIVE,
        "fit_intercept": flag, "max_iter": Integer(1), "domain": OrNone(DOMAIN),
        "random_state": SEED_OF_NUMPY,
    })  # fmt: skip

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        data_norm: float | None = None,
        tol: float = 1e-4,
        C: float = 1.0,
        fit_intercept: bool = True,
        max_iter: int = 100,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon, data_norm=data_norm, tol=tol, C=C, fit_intercept=fit_intercept,
            max_iter=max_iter, random_state=random_state,
        )  # fmt: skip
        self.domain = domain

    @fitting
    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: None = None) -> DPLogisticRegression:
        """Fit to X, float64 (n, columns), and binary y (n,)."""
        self.accountant.check(self.epsilon, 0)
        ledger = self._new_ledger(
            ADJACENCY, ["number of rows", "labels", "bound on the row norm"],
            unaccounted=[LARGEST_NORM] if self.data_norm is None else [],
        )  # fmt: skip
        rows = wrap_training_arrays(X, y)
        curator = LogisticCurator(rows, ledger, self.random_state, self._observed)
        curator.fit(self, Coefficients.of(self))
        self.ledger_ = ledger
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ledger_")


class PlainLogisticRegression(LogisticRegression):
    """scikit-learn's logistic regression; that raw features do not converge is the point here."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PlainLogisticRegression:
        """Fit without warning of slow convergence."""
        check_rows(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().fit(X, y, sample_weight)


class StandardizedLogisticRegression(PlainLogisticRegression):
    """Logistic regression on columns of mean 0 and variance 1, as measured on the training rows."""

    scaler_: StandardScaler

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PlainLogisticRegression:
        """Standardize the columns of X, float64 (n, columns), and fit."""
        check_rows(X, y)
        self.scaler_ = StandardScaler().fit(X)
        return super().fit(self.scaler_.transform(X), y, sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log odds of the second class, float64 (n,)."""
        scores: np.ndarray = super().decision_function(self.scaler_.transform(X))
        return scores
