"""Logistic regression by noisy gradient descent over all rows, under Gaussian privacy."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dprepro.data.domain import Domain
from dprepro.estimators.base import BinaryModel, DPEstimator
from dprepro.estimators.inputs import (
    DOMAIN,
    SEED,
    fitting,
    plain,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.methods.bounded_norm_encoding import UnitRows
from dprepro.methods.gradient_descent import ADJACENCY
from dprepro.methods.gradient_descent.curator import (
    LARGEST_WEIGHT,
    WEIGHT_UNIT,
    GradientCurator,
    GradientSum,
    RowCount,
    Weights,
)
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_part
from dprepro.privacy.gdp import mu_of
from dprepro.runtime.arguments import DELTA, EPSILON, Integer, Number, OrNone

COUNT_SHARE = 0.01
"""Part of mu^2 for the number of rows; the steps share the rest evenly."""


@dataclass(eq=False, repr=False, kw_only=True)
class DPGradientDescentClassifier(BinaryModel, DPEstimator):
    """Logistic regression whose weights follow noisy gradients of all rows (Song et al. 2013).

    Rows have a norm of at most 1 by the public domain (see `UnitRows`). From w = 0, each of T
    `steps` moves w by rate / n times the noisy sum of (y - sigmoid(w'x)) x over all rows. The
    weights of the second half of the steps are averaged.

    Formal guarantee: (epsilon, delta)-DP under add/remove-one, given a public domain. With mu =
    mu(epsilon, delta), the noise of a step has the standard deviation sqrt(T / .99) / mu where a
    row moves the sum by at most 1, so a step is mu sqrt(.99 / T)-GDP; the number of rows n is
    released with the rest. The mu^2 add up to mu^2, whatever weights the steps have reached
    (Theorems 4 and 5 of Nori et al. 2021, after Dong, Roth, Su 2019). There is no subsampling and
    no minimum to be found: the proof covers what is computed. Objective perturbation (Kifer et al.
    2012), its rival, is proved for the exact minimum, which no solver reaches.

    The rate is ``min(largest_rate, progress * mu * n / T)``. A step of noise moves w by rate
    sqrt(T) / (mu n), and T of them by rate T / (mu n): `progress` bounds what noise adds up to.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget.
    knots : int
        Of numeric features, see `UnitRows`. With 2 the log odds are linear in them.
    steps : int
        T.
    progress, largest_rate : float
        See above.
    domain : Domain or None
        Bounds, categories and labels; None reads them from the rows, which epsilon does not cover.
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
        The answers.

    Raises
    ------
    ValueError
        On parameters out of range, and as `DPEBMClassifier` on rows.
    """

    kinds = MappingProxyType({
        "epsilon": EPSILON, "delta": DELTA, "knots": Integer(2), "steps": Integer(1),
        "progress": Number(0), "largest_rate": Number(0), "domain": OrNone(DOMAIN),
        "random_state": SEED,
    })  # fmt: skip

    epsilon: float = 1.0
    delta: float = 1e-6
    knots: int = 10
    steps: int = 100
    progress: float = 1.0
    largest_rate: float = 64.0
    domain: Domain | None = None
    random_state: int | None = None

    @fitting
    def fit(self, X: Any, y: Any) -> DPGradientDescentClassifier:
        """Fit to X (n, K) and y (n,) with two distinct labels."""
        rows = read_training_rows(self, X, y, self.domain, "binary")
        self.domain_ = domain = resolve_domain_of(self, rows, "binary")
        self.ledger_ = self._new_ledger(
            ADJACENCY,
            [
                "names, types and number of features",
                domain.is_public and "bounds, categories and labels",
                "that two rows at least are there"
                + ("" if domain.is_public else ", and both labels"),
            ],
        )
        curator = GradientCurator(rows, domain, self.knots, self.ledger_, self.random_state)
        self.coef_: np.ndarray = self._descend(curator, UnitRows(domain, self.knots).columns)
        return self

    def _descend(self, curator: GradientCurator, columns: int) -> np.ndarray:
        """Return the average of the later weights, float64 (columns,)."""
        budget = PrivacyBudget(self.epsilon, self.delta)
        curator.open_count(*gdp_part(budget, COUNT_SHARE))
        mu, rest = gdp_part(budget, 1 - COUNT_SHARE)
        curator.open_steps(mu, self.steps, rest)
        count = curator.answer(RowCount(1.0, 1.0))
        rows = max(float(count.value[0]), count.scale, 10.0)
        rate = min(self.largest_rate, self.progress * mu_of(*budget) * rows / self.steps)
        weights, total = np.zeros((2, columns), np.int64)
        first = self.steps // 2
        for step in range(self.steps):
            curator.tell(Weights(weights))
            gradient = curator.answer(GradientSum(1.0, 1.0)).value
            moved = weights + np.rint(rate / rows * gradient / WEIGHT_UNIT)
            weights = np.clip(moved, -LARGEST_WEIGHT, LARGEST_WEIGHT).astype(np.int64)
            if step >= first:
                total += weights
        return total * (WEIGHT_UNIT / (self.steps - first))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log odds of the second class, float64 (n,)."""
        frame = self._frame(X)
        return UnitRows(self.domain_, plain(self, "knots")).scores(frame, self.coef_)
