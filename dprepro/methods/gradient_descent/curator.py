"""The curator of gradient descent: rows and labels stay here, noisy sums of gradients come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.bounded_norm_encoding import UNIT, UnitRows
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import Curator, GaussianMechanism
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import (
    BudgetError,
    Instruction,
    NoisyAnswer,
    Query,
    ScaledInteger,
    SensitivityError,
)
from dprepro.privacy.sensitivity import ADD_REMOVE, Sensitivity

WEIGHT_UNIT = 2.0**-16
LARGEST_WEIGHT = 2**40
"""Weights are whole numbers of this unit, and at most so large: scores then fit into 64 bits."""

RESIDUAL_UNIT = 2.0**-16
"""Probabilities are rounded to it."""


@dataclass(frozen=True)
class RowCount(Query):
    """The number of rows."""

    @property
    def enforced(self) -> float:
        """A row adds 1."""
        return 1.0


@dataclass(frozen=True)
class GradientSum(Query):
    """The sum of (y - sigmoid(w'x)) x over all rows, for the weights that were told last."""

    @property
    def enforced(self) -> float:
        """A row has a norm of at most 1, and a residual between -1 and 1."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Weights(Instruction):
    """Let these be the weights: int64 (columns,), in units of `WEIGHT_UNIT`."""

    whole: np.ndarray


class ExactGradients:
    """Rows and labels, and what is asked of them, without noise.

    Parameters
    ----------
    rows : int64 (n, columns)
        As `UnitRows.encode` returns them.
    labels : (n,)
        0 and 1.
    """

    def __init__(self, rows: sparse.csr_matrix, labels: np.ndarray) -> None:
        self._rows, self._across = rows, rows.T
        self._labels = np.asarray(labels).astype(np.int64)
        self._weights = np.zeros(rows.shape[1], np.int64)

    def tell(self, weights: np.ndarray) -> None:
        """Take weights.

        Raises
        ------
        SensitivityError
            If they are no whole numbers, too many or too large: sums could then overflow.
        """
        fits = weights.dtype == np.int64 and weights.shape == self._weights.shape
        if not fits or (np.abs(weights) > LARGEST_WEIGHT).any():
            raise SensitivityError(
                f"weights must be int64 of the shape {self._weights.shape}, at most "
                f"{LARGEST_WEIGHT} from 0: round and clip them"
            )
        self._weights = weights

    def count(self) -> ScaledInteger:
        """Return the number of rows."""
        return ScaledInteger(np.array([self._labels.size]))

    def gradient(self) -> ScaledInteger:
        """Return the sum of the rows' gradients, int64 (columns,).

        A score is a whole number, and a residual is a function of it and of the label.
        """
        scores = self._rows @ self._weights
        rates = np.rint(expit(scores * (UNIT * WEIGHT_UNIT)) / RESIDUAL_UNIT).astype(np.int64)
        residuals = self._labels * int(1 / RESIDUAL_UNIT) - rates
        return ScaledInteger(np.asarray(self._across @ residuals), UNIT * RESIDUAL_UNIT)


class GradientCurator(Curator):
    """Answers once for the number of rows, and once a step for the sum of gradients.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    domain, knots
        See `UnitRows`.
    ledger, seed
        See `Curator`.
    """

    relations = frozenset({ADD_REMOVE})

    def __init__(
        self, rows: Private[Rows], domain: Domain, knots: int, ledger: Ledger, seed: int | None
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        given = rows.open()
        encoded = UnitRows(domain, knots).encode(given.frame)
        self._exact = Private(ExactGradients(encoded, given.targets))
        self._uses: dict[type[Query], GaussianMechanism] = {}

    def open_count(self, mu: float, budget: PrivacyBudget) -> None:
        """Enter one `RowCount` query in the ledger; it is mu-GDP."""
        self._open(RowCount, "number of rows", mu, 1, Sensitivity(1.0, 1.0), budget)

    def open_steps(self, mu: float, steps: int, budget: PrivacyBudget) -> None:
        """Enter so many `GradientSum` queries in the ledger; together they are mu-GDP."""
        self._open(
            GradientSum,
            "sum of the gradients of all rows",
            mu,
            steps,
            Sensitivity(1.0, 2.0),
            budget,
        )

    def _open(
        self, query: type[Query], releases: str, mu: float, uses: int, sensitivity: Sensitivity,
        budget: PrivacyBudget,
    ) -> None:  # fmt: skip
        self._uses[query] = self._gaussian(
            releases=releases, noise_multiplier=uses**0.5 / mu, sensitivity=sensitivity,
            uses=uses, budget=budget,
        )  # fmt: skip

    def answer(self, query: RowCount | GradientSum) -> NoisyAnswer:
        """Answer a query that is open.

        Raises
        ------
        BudgetError
            If it is not open, or has no uses left.
        """
        if type(query) not in self._uses:
            raise BudgetError(f"no mechanism for {type(query).__name__} is in the ledger: open one")
        return self._answer(self._uses[type(query)], query, self._exactly)

    def _exactly(self, query: RowCount | GradientSum) -> ScaledInteger:
        exact = self._exact.open()
        return exact.count() if isinstance(query, RowCount) else exact.gradient()

    def _follow(self, instruction: Any) -> None:
        self._exact.open().tell(instruction.whole)
