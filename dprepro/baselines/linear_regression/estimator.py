"""Linear regression on a fair footing, with and without privacy, and without privacy as published.

The fair models share a representation: every column, the constant and the target lie in [-1, 1] by
public bounds, and predictions are clipped to the target's bounds, which is post-processing."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from diffprivlib.models.linear_regression import _construct_regression_obj
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain, TaskKind
from dprepro.estimators.inputs import checked
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.privacy.sensitivity import REPLACE_ONE


class _BoundedLinearRegression(RegressorMixin, BaseEstimator):
    """A linear model of a target with known bounds, on columns in [-1, 1] that hold a constant."""

    domain: Domain
    coef_: np.ndarray

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to X, float64 (n, columns) within [-1, 1], and numbers y (n,).

        What lies outside its bounds is clipped to them.

        Raises
        ------
        ValueError
            If X or y is not finite, or the target's bounds coincide.
        """
        X, y = checked(self, X, y, dtype=np.float64, y_numeric=True)
        lower, upper = self._bounds()
        scaled = np.clip((2 * y - lower - upper) / (upper - lower), -1.0, 1.0)
        self.coef_ = self._solve(np.clip(X, -1.0, 1.0), scaled)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) in the target's unit, within the target's bounds."""
        check_is_fitted(self)
        X = checked(self, X, reset=False, dtype=np.float64)
        lower, upper = self._bounds()
        scaled = np.clip(X, -1.0, 1.0) @ self.coef_
        return (lower + upper + (upper - lower) * np.clip(scaled, -1.0, 1.0)) / 2

    def _bounds(self) -> tuple[float, float]:
        lower, upper = (float(bound) for bound in self.domain.target)
        if not lower < upper:
            raise ValueError("the target's bounds must be lower < upper, and they coincide")
        return lower, upper

    @abstractmethod
    def _solve(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return coefficients (columns,) for X and y within [-1, 1]."""


class PlainBoundedLinearRegression(_BoundedLinearRegression):
    """Least squares without privacy, on the representation of `DPLinearRegression`."""

    def __init__(self, *, domain: Domain) -> None:
        self.domain = domain

    def _solve(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        coefficients: np.ndarray = np.linalg.lstsq(X, y, rcond=None)[0]
        return coefficients


class DPLinearRegression(_BoundedLinearRegression):
    """The functional mechanism (Zhang et al. 2012) with diffprivlib's noise and a ledger.

    The library adds Laplace noise to y'y, to X'y and to each entry of X'X. Its sensitivity of the
    diagonal looks at the lower bound only, and its centring spends more than its share; bounds
    of -1 and 1 throughout and ``fit_intercept=False`` avoid both, and the noise is exactly what
    replace-one needs. The constant is a column like any other: its products are noised too.

    The noisy X'X is seldom positive definite, and the library then descends without end. Here the
    release is solved as section 6 of the paper says: regularise by four standard deviations of the
    noise, then drop the directions whose eigenvalue is not positive. Both are post-processing.

    Parameters
    ----------
    epsilon : float
        Pure budget, replace-one.
    domain : Domain
        Its target bounds; what it says was observed counts as unpaid.
    random_state : int or None
        None draws from the operating system.

    Attributes
    ----------
    coef_ : ndarray of shape (columns,)
        For columns and target in [-1, 1].
    products_, gram_ : ndarray of shape (columns,), (columns, columns)
        The noisy X'y and X'X: all that the coefficients are made of.
    ledger_ : Ledger
        The library's releases. Its noisy y'y is paid for, and dropped.
    """

    products_: np.ndarray
    gram_: np.ndarray
    ledger_: Ledger

    def __init__(
        self, *, epsilon: float = 1.0, domain: Domain, random_state: int | None = None
    ) -> None:
        self.epsilon = epsilon
        self.domain = domain
        self.random_state = random_state

    def _solve(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not 0 < self.epsilon < np.inf:
            raise ValueError(f"epsilon must be positive and finite, got {self.epsilon!r}")
        self.ledger_ = self._new_ledger(X.shape[1])
        self.products_, self.gram_ = self._release(X, y)
        noise = max(entry.scale for entry in self.ledger_.entries)
        return trim_and_solve(self.gram_, self.products_, noise)

    def _release(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the library's noisy X'y (columns,) and X'X (columns, columns)."""
        bound = np.ones(X.shape[1])
        # Its estimator would go on to descend without end; only the release is wanted.
        _, (_, products, gram) = _construct_regression_obj(
            X, y, bounds_X=(-bound, bound), bounds_y=(-bound[:1], bound[:1]),
            epsilon=self.epsilon, alpha=0, random_state=check_random_state(self.random_state),
        )  # fmt: skip
        return products[:, 0], gram

    def _new_ledger(self, columns: int) -> Ledger:
        ledger = Ledger(
            epsilon=self.epsilon,
            delta=0.0,
            adjacency=REPLACE_ONE,
            unpaid=list(self.domain.observed),
            assumed_public=["bounds of every column and of the target", "categories"],
        )
        moments = (
            ("sum of squares of the target", 1.0, 1),
            ("products of columns and target", 2.0, columns),
            ("sums of squares of the columns", 1.0, columns),
            ("products of two columns", 2.0, columns * (columns - 1) // 2),
        )
        share = self.epsilon / sum(count for *_, count in moments)
        for releases, sensitivity, count in moments:
            if count:
                scale, budget = sensitivity / share, PrivacyBudget(share * count, 0.0)
                ledger.add(
                    LedgerEntry("laplace", releases, sensitivity, "L1", scale, count, budget)
                )
        ledger.note_seed(self.random_state)
        return ledger


def trim_and_solve(gram: np.ndarray, products: np.ndarray, scale: float) -> np.ndarray:
    """Return w that minimises w'Gw - 2p'w over the directions in which that has a minimum.

    Parameters
    ----------
    gram, products
        Noisy X'X (k, k), symmetric, and X'y (k,).
    scale
        Of their Laplace noise. Four of its standard deviations, 4 sqrt(2) scale, are added to the
        diagonal of G first (Zhang et al. 2012, section 6.1); directions that are still not positive
        are dropped (section 6.2).
    """
    eigenvalues, vectors = np.linalg.eigh(gram)
    eigenvalues = eigenvalues + 4 * np.sqrt(2) * scale
    kept = eigenvalues > 0
    coefficients: np.ndarray = vectors[:, kept] @ (
        (vectors[:, kept].T @ products) / eigenvalues[kept]
    )
    return coefficients


_REGRESSION: frozenset[TaskKind] = frozenset({"regression"})
