"""Linear regression on a fair footing, with and without privacy, and without privacy as published.

The fair models share a representation: every column, the constant and the target lie in [-1, 1] by
public bounds, and predictions are clipped to the target's bounds, which is post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.estimators.base import DPEstimator
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    Parametrised,
    checked,
    fitting,
    read_training_arrays,
)
from dprepro.methods.linear_regression import ADJACENCY
from dprepro.methods.linear_regression.curator import LinearCurator, Products
from dprepro.methods.linear_regression.products import scaled, trim_and_solve
from dprepro.runtime.arguments import EPSILON


class _BoundedLinearRegression(Parametrised, RegressorMixin, BaseEstimator):
    """A linear model of a target with known bounds, on columns in [-1, 1] that hold a constant."""

    domain: Domain
    coef_: np.ndarray

    kinds = MappingProxyType({"domain": DOMAIN})

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) in the target's unit, within the target's bounds."""
        check_is_fitted(self)
        X = checked(self, X, reset=False, dtype=np.float64)
        lower, upper = self._bounds()
        predicted = np.clip(X, -1.0, 1.0) @ self.coef_
        return (lower + upper + (upper - lower) * np.clip(predicted, -1.0, 1.0)) / 2

    def _bounds(self) -> tuple[float, float]:
        lower, upper = (float(bound) for bound in self.domain.target)
        if not lower < upper:
            raise ValueError("the target's bounds must be lower < upper, and they coincide")
        return lower, upper


@dataclass(eq=False, repr=False, kw_only=True)
class PlainBoundedLinearRegression(_BoundedLinearRegression):
    """Least squares without privacy, on the representation of `DPLinearRegression`."""

    domain: Domain

    @fitting
    def fit(self, X: Any, y: Any) -> PlainBoundedLinearRegression:
        """Fit to X, float64 (n, columns) within [-1, 1], and targets y (n,).

        What lies outside its bounds is clipped to them.

        Raises
        ------
        ValueError
            If X or y is not finite, or the target's bounds coincide.
        """
        X, y = checked(self, X, y, dtype=np.float64, y_numeric=True)
        self.coef_ = np.linalg.lstsq(*scaled(X, y, self._bounds()), rcond=None)[0]
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class DPLinearRegression(_BoundedLinearRegression, DPEstimator):
    """The functional mechanism (Zhang et al. 2012), as diffprivlib has it, with exact noise.

    Laplace noise is added to y'y, to X'y and to each entry of X'X, with the sensitivities and the
    shares of epsilon that the library has for bounds of -1 and 1 throughout and
    ``fit_intercept=False``. It is what replace-one needs. (The library's own sensitivity of the
    diagonal looks at the lower bound only, and its centring spends more than its share; these
    settings avoid both.) The constant is a column like any other: its products are noised too.

    The library draws noise in floating point, on floating-point sums. Here values are rounded
    towards zero to a public grid, sums are whole numbers, and so is the noise; see `Grid`.

    The noisy X'X is seldom positive definite, and the library then descends without end. Here the
    answer is solved as section 6 of the paper says: regularise by four standard deviations of the
    noise, then drop the directions whose eigenvalue is not positive. Both are post-processing.

    Parameters
    ----------
    epsilon : float
        Pure budget, replace-one.
    domain : Domain
        Its target bounds; what it says was observed is not covered by epsilon.
    random_state : int or None
        None draws from the operating system.

    Attributes
    ----------
    coef_ : ndarray of shape (columns,)
        For columns and target in [-1, 1].
    products_, gram_ : ndarray of shape (columns,), (columns, columns)
        The noisy X'y and X'X: all that the coefficients are made of.
    ledger_ : Ledger
        The answers. The noisy y'y is charged, and not used.
    """

    kinds = MappingProxyType({"epsilon": EPSILON, "domain": DOMAIN, "random_state": SEED})

    epsilon: float = 1.0
    domain: Domain
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> DPLinearRegression:
        """Fit to X, float64 (n, columns) within [-1, 1], and targets y (n,).

        What lies outside its bounds is clipped to them.

        Raises
        ------
        ValueError
            If X or y is not finite, the target's bounds coincide, or epsilon is not positive and
            finite.
        """
        rows = read_training_arrays(self, X, y)
        bounds = self._bounds()
        self.ledger_ = self._new_ledger(
            ADJACENCY,
            ["number of rows", "bounds of every column and of the target", "categories"],
        )  # fmt: skip
        curator = LinearCurator(rows, bounds, self.ledger_, self.random_state, self._observed)
        answer = curator.products(Products(1.0, 1.0, bound=1.0))
        self.products_, self.gram_ = answer.of_target, answer.value
        self.coef_ = trim_and_solve(self.gram_, self.products_, answer.scale)
        return self
