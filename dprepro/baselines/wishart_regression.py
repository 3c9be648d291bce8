"""DP linear regression as published: the Wishart mechanism, since withdrawn as not private."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import checked
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import REPLACE_ONE

GAPS = (
    "Wishart noise is not differentially private: it is always positive, so that what is released "
    "can rule out a neighbour for certain",
    "the row norm that sets the noise leaves out the target",
    "the budget of one noisy mean is paid for the means of all columns",
)


class WishartLinearRegression(RegressorMixin, BaseEstimator):
    """Least squares on noisy second moments, as diffprivlib up to 0.3 did it with its defaults.

    With K columns, e = epsilon / (K + 1) and all bounds read from the rows:

    1. Each column and the target lose their mean, released with Laplace noise of budget e and
       clipped to the bounds. (These are K + 1 releases; the library counts one.)
    2. To the second-moment matrix of the centred [X, y] comes a draw of the Wishart distribution
       W_p(p + 1, s^2 I) with p = K + 1, s = norm / (2 (epsilon - e)), `norm` the largest L2 norm of
       a centred row of X. (Imtiaz and Sarwate 2016 have s^2 = norm^2 / (2 epsilon).)
    3. The coefficients solve the noisy normal equations.

    It is not differentially private at any epsilon (Sheffet 2019, footnote 4; Amin et al. 2019,
    section 1.2; the library's issues 23 and 42). A draw W is positive definite, so a release M
    belies every dataset whose second moments exceed M somewhere. Adding a row x gives the other
    dataset away for certain with probability 1 - exp(-|x|^2 / (2 s^2)).

    Attributes
    ----------
    coef_ : ndarray of shape (K,)
    intercept_ : float
        In the target's unit.
    ledger_ : Ledger
        Releases, unpaid reads, and the gaps that leave no guarantee.
    """

    coef_: np.ndarray
    intercept_: float
    ledger_: Ledger

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        domain: Domain | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain = domain
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> WishartLinearRegression:
        """Fit to numbers X (n, K) and y (n,).

        Raises
        ------
        ValueError
            If epsilon is not positive and finite, or X or y is not finite.
        """
        X, y = checked(self, X, y, dtype=np.float64, y_numeric=True)
        self.ledger_ = self._new_ledger()
        noise = NoiseSource(self.ledger_, self.random_state)
        rows = np.column_stack([X, y])
        means = self._noisy_means(rows, noise)
        moments = self._noisy_moments(rows - means, noise)
        self.coef_ = np.linalg.lstsq(moments[:-1, :-1], moments[:-1, -1], rcond=None)[0]
        self.intercept_ = float(means[-1] - means[:-1] @ self.coef_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) in the target's unit."""
        check_is_fitted(self)
        X = checked(self, X, reset=False, dtype=np.float64)
        return X @ self.coef_ + self.intercept_

    def _new_ledger(self) -> Ledger:
        observed = list(self.domain.observed) if self.domain is not None else []
        unpaid = [*observed, "bounds of all columns and of the target", "largest row norm"]
        return Ledger(
            epsilon=self.epsilon,
            delta=0.0,
            adjacency=REPLACE_ONE,
            unpaid=list(dict.fromkeys(unpaid)),
            assumed_public=["number of rows"],
            gaps=list(GAPS),
        )

    def _noisy_means(self, rows: np.ndarray, noise: NoiseSource) -> np.ndarray:
        """Return the means of [X, y] (p,), each noisy and within the column's bounds."""
        lower, upper = rows.min(axis=0), rows.max(axis=0)
        # A column's sum, in units of the column's width, moves by at most 1.
        draws = noise.laplace(
            lower.shape,
            releases="sum of each column and of the target, in units of their range",
            epsilon=self.epsilon / lower.size,
            sensitivity=1.0,
            uses=lower.size,
        )
        noisy = rows.mean(axis=0) + (upper - lower) * draws / len(rows)
        return np.clip(noisy, lower, upper)

    def _noisy_moments(self, rows: np.ndarray, noise: NoiseSource) -> np.ndarray:
        """Return the noisy second moments (p, p) of centred [X, y]."""
        norm = float(np.linalg.norm(rows[:, :-1], axis=1).max())
        size = rows.shape[1]
        epsilon = self.epsilon * (1 - 1 / size)
        draw = noise.wishart(
            size,
            releases="second moments of [X, y], in units of the largest row norm of X",
            scale=1 / (2 * epsilon),
            sensitivity=1.0,
            budget=PrivacyBudget(epsilon, 0.0),
        )
        return rows.T @ rows + norm**2 * draw
