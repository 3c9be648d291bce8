"""The curator of logistic regression: the rows stay here, diffprivlib's coefficients come out.

Objective perturbation for logistic regression (Chaudhuri, Monteleoni, Sarwate 2011).

Released is the minimiser w of

    sum_i log(1 + exp(-w . z_i)) + strength |w|^2 / 2 + b . w,

where z_i is row i, its sign turned where its label is negative, and the noise b has density
~ exp(-|b| / scale). Here are the constants that diffprivlib 0.6.6 draws with, and what they prove.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dprepro.methods.diffprivlib_adapter import (
    DiffprivlibCompatibilityWarning,
    LogisticRegression,
    PrivacyLeakWarning,
)
from dprepro.methods.diffprivlib_curator import DiffprivlibCurator
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import LedgerEntry
from dprepro.privacy.query import BudgetError, NoisyAnswer, Query, SensitivityError
from dprepro.privacy.sensitivity import REPLACE_ONE

CURVATURE = 0.25
"""Largest second derivative of the logistic loss."""

LARGEST_NORM = "largest row norm"
"""What is read without noise where no bound on it is given, in the words of the ledger."""

LONG_ROWS = (
    "row norm bound above 1 (an intercept counts): the library's noise uses the bound "
    "where its square is needed"
)

FLOATING_POINT = (
    "coefficients: the noise is part of what an optimiser of diffprivlib minimises, in float64"
)
"""Why they cannot be whole numbers, in the words of the ledger."""

STOPPED = "optimiser stopped before the optimum, which the proof needs"


@dataclass(frozen=True)
class ObjectivePerturbation:
    """The mechanism at a budget, a penalty and a bound on the norm of rows.

    Attributes
    ----------
    epsilon
        The library's budget.
    penalty
        Of |w|^2 / 2 beside the summed losses: 1 / C.
    norm
        Rows are no longer than that; 1 in the theorem.
    """

    epsilon: float
    penalty: float
    norm: float = 1.0

    @property
    def noise_epsilon(self) -> float:
        """The share of epsilon that pays for the noise; the rest pays for the curvature."""
        left = self.epsilon - 2 * math.log1p(CURVATURE * self.norm / self.penalty)
        return left if left > 0 else self.epsilon / 2

    @property
    def strength(self) -> float:
        """The penalty, raised where the curvature would leave nothing for the noise."""
        if self.epsilon > 2 * math.log1p(CURVATURE * self.norm / self.penalty):
            return self.penalty
        return CURVATURE * self.norm / math.expm1(self.epsilon / 4)

    @property
    def gradient_sensitivity(self) -> float:
        """How far an exchange of rows moves b for the same w, in L2: each gradient is <= norm."""
        return 2 * self.norm

    @property
    def scale(self) -> float:
        """The noise's: its length is Gamma(columns, scale), its direction uniform."""
        return self.gradient_sensitivity / self.noise_epsilon

    @property
    def proved_epsilon(self) -> float:
        """What the theorem proves, replace-one: `epsilon` for norms up to 1, more beyond.

        The density of w is that of b, which an exchange changes by a factor of at most
        exp(noise_epsilon), times the determinant of the Hessian. A row adds to that a term of rank
        1 and size CURVATURE norm^2: coming or going, a factor of 1 + CURVATURE norm^2 / strength.
        The library leaves out the square.
        """
        return self.noise_epsilon + 2 * math.log1p(CURVATURE * self.norm**2 / self.strength)

    def log_density(self, w: np.ndarray, rows: np.ndarray, counts: np.ndarray) -> float:
        """Return the logarithm of the density of w, up to a constant that no dataset changes.

        Parameters
        ----------
        w : float64 (k,)
            What was released.
        rows, counts : float64 (m, k), (m,)
            The rows z, and how often each occurs.
        """
        wrong = expit(-(rows @ w))
        noise = self.strength * w - (counts * wrong) @ rows
        weights = counts * wrong * (1 - wrong)
        hessian = (rows.T * weights) @ rows + self.strength * np.eye(w.size)
        return float(np.linalg.slogdet(hessian)[1] - np.linalg.norm(noise) / self.scale)


@dataclass(frozen=True)
class Coefficients(Query):
    """The minimiser of the perturbed objective.

    What is enforced and charged is how far an exchange of rows moves the gradient of the summed
    losses, in L2; see `ObjectivePerturbation.gradient_sensitivity`.

    Attributes
    ----------
    epsilon
        The library's budget.
    C
        Inverse of the penalty.
    data_norm
        To which the library clips the rows; None: their largest norm, which is then the unit.
    fit_intercept
        Whether a column of ones lengthens the rows.
    """

    epsilon: float
    C: float
    data_norm: float | None
    fit_intercept: bool

    @classmethod
    def of(cls, model: LogisticRegression) -> Coefficients:
        """Return the query for a model with these parameters, which charges what it enforces."""
        parameters = (model.epsilon, model.C, model.data_norm, model.fit_intercept)
        free = cls(math.inf, 1.0, *parameters)
        return cls(free.enforced, 1.0, *parameters)

    @property
    def enforced(self) -> float:
        """Twice the norm, with the one of the intercept; 1 where the norm is the unit.

        A norm that was read proves nothing, and the ledger must not give it away.
        """
        return (
            1.0 if self.data_norm is None else self.mechanism(self.data_norm).gradient_sensitivity
        )

    def mechanism(self, data_norm: float) -> ObjectivePerturbation:
        """Return the library's mechanism on rows no longer than that."""
        norm = math.hypot(data_norm, self.fit_intercept)
        return ObjectivePerturbation(self.epsilon, 1 / self.C, norm)

    def entry(self) -> LedgerEntry:
        """Return the mechanism, with the epsilon that is proved for it where the norm is public."""
        scale, epsilon = 0.0, self.epsilon
        if self.data_norm is not None:
            mechanism = self.mechanism(self.data_norm)
            scale, epsilon = mechanism.scale, mechanism.proved_epsilon
        return LedgerEntry(
            mechanism="cited",
            releases="coefficients: minimiser of the perturbed objective (diffprivlib)",
            sensitivity=self.charged,
            norm="L2",
            scale=scale,
            uses=1,
            budget=PrivacyBudget(epsilon, 0.0),
        )


class LogisticCurator(DiffprivlibCurator):
    """Answers once for a model's coefficients; the parameters are those of `DiffprivlibCurator`."""

    relations = frozenset({REPLACE_ONE})

    def fit(self, model: LogisticRegression, query: Coefficients) -> NoisyAnswer:
        """Let the library fit `model`, and return its coefficients, float64 (1, columns).

        The last of them is the intercept, if there is one. What the proof lacks becomes a gap of
        the ledger.

        Raises
        ------
        BudgetError
            If it was done before, or the library's epsilon is more than the ledger states.
        SensitivityError
            If the model has other parameters than the query.
        """
        if query != Coefficients.of(model):
            raise SensitivityError(
                "the model has other parameters, or needs more noise, than the query says: make "
                "the query of the model"
            )
        with self._handing_over():
            entry = self._enter(query)
            norm = self._fit(model)
        if query.data_norm is None:
            self._note_long_rows(query.mechanism(norm))
        if int(np.max(model.n_iter_)) >= model.max_iter:
            self._source.ledger.gaps.append(STOPPED)
        # How many steps it took follows from the rows, and was not released: the most there can be.
        model.n_iter_ = np.array([model.max_iter])
        return self._announce(query, NoisyAnswer(_coefficients(model), entry.scale))

    def _enter(self, query: Coefficients) -> LedgerEntry:
        entry, ledger = query.entry(), self._source.ledger
        if query.epsilon > ledger.epsilon:
            raise BudgetError(
                f"the library's epsilon is {query.epsilon!r}, but the ledger states "
                f"{ledger.epsilon!r}: state what the library spends"
            )
        ledger.add(entry)
        ledger.note_floating_point(FLOATING_POINT)
        if query.data_norm is None:
            self._read_exactly(LARGEST_NORM)
        else:
            self._note_long_rows(query.mechanism(query.data_norm))
        self._require_budget(LONG_ROWS if LONG_ROWS in ledger.gaps else None)
        return entry

    def _note_long_rows(self, mechanism: ObjectivePerturbation) -> None:
        if mechanism.norm > 1:
            self._source.ledger.gaps.append(LONG_ROWS)

    def _fit(self, model: LogisticRegression) -> float:
        """Let the library fit the model; return the norm to which it clipped the rows."""
        rows, given = self._rows.open(), model.data_norm
        with warnings.catch_warnings():
            # What these two warn of stands in the ledger, where it does not scroll away.
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            warnings.simplefilter("ignore", DiffprivlibCompatibilityWarning)
            try:
                LogisticRegression.fit(model, rows.features, rows.targets)
            finally:
                # The library writes the norm that it read over the parameter.
                norm, model.data_norm = model.data_norm, given
        return float(norm)


def _coefficients(model: LogisticRegression) -> np.ndarray:
    parts = [model.coef_, model.intercept_[:, None]] if model.fit_intercept else [model.coef_]
    return np.hstack(parts)
