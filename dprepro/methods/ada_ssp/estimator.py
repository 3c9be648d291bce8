"""AdaSSP: linear regression from noisy second moments, with a penalty that adapts to the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from dprepro.data.domain import Domain
from dprepro.estimators.base import DPEstimator, FrameModel, tagged
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    fitting,
    plain,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.estimators.targets import target_range
from dprepro.methods.ada_ssp import ADJACENCY
from dprepro.methods.ada_ssp.curator import TARGET_WEIGHT, Moments, MomentsCurator
from dprepro.methods.bounded_norm_encoding import UNIT, UnitRows
from dprepro.runtime.arguments import DELTA, EPSILON, Integer, Number, OrNone

FAILURE = 0.05
"""rho of the paper: how likely the noise in X'X may be larger than the penalty allows for."""

_GRID = 2.0**-16
"""Coefficients are rounded to it: what linear algebra adds on other processors is far smaller."""


@tagged(poor_score=True)
@dataclass(eq=False, repr=False, kw_only=True)
class AdaSSPRegressor(RegressorMixin, DPEstimator, FrameModel):
    """Linear regression from sufficient statistics with an adaptive penalty (Wang 2018).

    Rows x have a norm of at most 1 and targets t lie in [-1, 1] by the public domain (`UnitRows`).
    X'X and X't are released with Gaussian noise, sigma in each entry of X'X. The coefficients are
    (X'X + penalty I)^-1 X't, where, with d columns and `FAILURE` rho,

        penalty = max(0, strength sigma sqrt(d log(2 d^2 / rho)) - smallest eigenvalue of X'X).

    Algorithm 2 of the paper has strength 1 and a third answer, of the smallest eigenvalue. Here
    the eigenvalue is that of the noisy X'X, which is post-processing, and the budget is all for one
    answer of both moments: the noise is smaller, and what is inverted is always positive definite.
    What is shrunk is the distance of the constant from the noisy mean of the targets, not from 0.
    Both, and a strength below 1, make it more accurate on tables that are not reported
    (docs/evidence/rivals-linear.md).

    Formal guarantee: (epsilon, delta)-DP under add/remove-one, given a public domain: one Gaussian
    answer with noise over sensitivity 1 / mu(epsilon, delta); see `moments_sensitivity`. The
    number of rows is part of X'X, and private.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget.
    knots : int
        Of numeric features, see `UnitRows`. With 2 the model is linear in them.
    strength : float
        See above; 1 in the paper.
    domain : Domain or None
        Bounds, categories and target range; None reads them from the rows, which epsilon does not
        cover.
    random_state : int or None
        None draws from the operating system. An integer makes the fit repeatable: the ledger says
        so.

    Attributes
    ----------
    coef_ : ndarray of shape (columns,)
        Weights of the columns of `UnitRows`; the last is that of the constant.
    domain_ : Domain
        The domain used.
    ledger_ : Ledger
        The answer.

    Raises
    ------
    ValueError
        On parameters out of range, no range of the target, and as `DPEBMRegressor` on rows.
    """

    kinds = MappingProxyType({
        "epsilon": EPSILON, "delta": DELTA, "knots": Integer(2), "strength": Number(0),
        "domain": OrNone(DOMAIN), "random_state": SEED,
    })  # fmt: skip

    epsilon: float = 1.0
    delta: float = 1e-6
    knots: int = 2
    strength: float = 0.3
    domain: Domain | None = None
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> AdaSSPRegressor:
        """Fit to X (n, K) and targets y (n,)."""
        rows = read_training_rows(self, X, y, self.domain, "regression")
        self.domain_ = domain = resolve_domain_of(self, rows, "regression")
        target_range(domain)
        self.ledger_ = self._new_ledger(
            ADJACENCY,
            [
                "names, types and number of features",
                domain.is_public and "bounds, categories and target range",
                "that two rows at least are there",
            ],
        )
        encoder = UnitRows(domain, self.knots)
        curator = MomentsCurator(rows, domain, self.knots, self.ledger_, self.random_state)
        answer = curator.answer(Moments.of(encoder.parts))
        gram, products = unpacked(answer.value, encoder.columns)
        found = solve(gram, products, answer.scale, self.strength, encoder.largest * UNIT)
        self.coef_: np.ndarray = np.rint(found / _GRID) * _GRID
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions (n,) in the target's unit, within the target's bounds."""
        frame = self._frame(X)
        lower, upper = target_range(self.domain_)
        scores = UnitRows(self.domain_, plain(self, "knots")).scores(frame, self.coef_)
        return (lower + upper + (upper - lower) * np.clip(scores, -1.0, 1.0)) / 2


def unpacked(moments: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X'X, float64 (columns, columns), and X't, float64 (columns,), of what is released."""
    gram = np.zeros((columns, columns))
    gram[np.triu_indices(columns)] = moments[:-columns]
    return gram + np.triu(gram, 1).T, moments[-columns:] / TARGET_WEIGHT


def solve(
    gram: np.ndarray, products: np.ndarray, noise: float, strength: float, constant: float
) -> np.ndarray:
    """Return coefficients, float64 (columns,); see `AdaSSPRegressor`.

    Parameters
    ----------
    gram, products
        Noisy X'X and X't.
    noise
        Standard deviation of the noise in each entry of X'X.
    strength
        Of the penalty.
    constant
        The last column's value in every row.
    """
    # X'X ends in n constant^2, and X't in the sum of constant t.
    mean = float(np.clip(products[-1] * constant / max(gram[-1, -1], noise), -1.0, 1.0))
    rest = products - mean / constant * gram[:, -1]
    columns = products.size
    size = noise * math.sqrt(columns * math.log(2 * columns**2 / FAILURE))
    penalty = max(0.0, strength * size - float(np.linalg.eigvalsh(gram)[0]))
    found: np.ndarray = np.linalg.solve(gram + penalty * np.eye(columns), rest)
    found[-1] += mean / constant
    return found
