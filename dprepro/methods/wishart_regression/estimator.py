"""DP linear regression as published: the Wishart mechanism, since withdrawn as not private."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dprepro.data.domain import Domain
from dprepro.estimators.base import DPEstimator
from dprepro.estimators.inputs import DOMAIN, SEED, checked, fitting, read_training_arrays
from dprepro.methods.wishart_regression import ADJACENCY
from dprepro.methods.wishart_regression.curator import (
    GAPS,
    TARGET_LEFT_OUT,
    UNPAID,
    Centre,
    ColumnMeans,
    SecondMoments,
    WishartCurator,
)
from dprepro.runtime.arguments import EPSILON, OrNone


@dataclass(eq=False, repr=False, kw_only=True)
class WishartLinearRegression(RegressorMixin, DPEstimator):
    """Least squares on noisy second moments, as diffprivlib up to 0.3 did it with its defaults.

    With K columns, e = epsilon / (K + 1) and all bounds read from the rows:

    1. Each column and the target lose their mean, released with Laplace noise of budget e and
       clipped to the bounds. (These are K + 1 answers; the library counts one.)
    2. To the second-moment matrix of the centred [X, y] comes a draw of the Wishart distribution
       W_p(p + 1, s^2 I) with p = K + 1, s = norm / (2 (epsilon - e)), `norm` the largest L2 norm of
       a centred row of X. (Imtiaz and Sarwate 2016 have s^2 = norm^2 / (2 epsilon).)
    3. The coefficients solve the noisy normal equations.

    It is not differentially private at any epsilon (Sheffet 2019, footnote 4; Amin et al. 2019,
    section 1.2; the library's issues 23 and 42). A draw W is positive definite, so an answer M
    belies every dataset whose second moments exceed M somewhere. Adding a row x gives the other
    dataset away for certain with probability 1 - exp(-|x|^2 / (2 s^2)).

    Attributes
    ----------
    coef_ : ndarray of shape (K,)
    intercept_ : float
        In the target's unit.
    ledger_ : Ledger
        Answers, reads that epsilon does not cover, and the gaps that leave no guarantee.
    """

    kinds = MappingProxyType({"epsilon": EPSILON, "domain": OrNone(DOMAIN), "random_state": SEED})

    epsilon: float = 1.0
    domain: Domain | None = None
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> WishartLinearRegression:
        """Fit to X, float64 (n, K), and targets y (n,).

        Raises
        ------
        ValueError
            If epsilon is not positive and finite, or X or y is not finite.
        """
        rows = read_training_arrays(self, X, y)
        self.ledger_ = self._new_ledger(
            ADJACENCY, ["number of rows"], unaccounted=UNPAID, gaps=GAPS
        )
        curator = WishartCurator(rows, self.ledger_, self.random_state, self._observed)
        means = curator.means(ColumnMeans(1.0, 1.0)).value
        curator.tell(Centre(means))
        moments = curator.moments(SecondMoments(1.0, 1.0, gap=TARGET_LEFT_OUT)).value
        self.coef_: np.ndarray = np.linalg.lstsq(moments[:-1, :-1], moments[:-1, -1], rcond=None)[0]
        self.intercept_ = float(means[-1] - means[:-1] @ self.coef_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) in the target's unit."""
        check_is_fitted(self)
        X = checked(self, X, reset=False, dtype=np.float64)
        return X @ self.coef_ + self.intercept_
