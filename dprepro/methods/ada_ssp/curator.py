"""The curator of AdaSSP: rows and targets stay here, their noisy second moments come out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.bounded_norm_encoding import UNIT, UnitRows
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.gdp import mu_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import NoisyAnswer, Query, ScaledInteger, SensitivityError
from dprepro.privacy.sensitivity import ADD_REMOVE, Sensitivity

TARGET_WEIGHT = 0.7
"""What targets in [-1, 1] are multiplied by, so that X'y gets less of the noise than X'X. Chosen on
tables that are not reported; see docs/evidence/rivals-linear.md."""

_BLOCK = 4096
"""Rows whose products are added at once, as float64: whole numbers below 2^53, so all are exact."""


@dataclass(frozen=True)
class Moments(Query):
    """X'X on and above its diagonal, row by row, and then X'y.

    Attributes
    ----------
    parts
        See `UnitRows`.
    """

    parts: int

    @classmethod
    def of(cls, parts: int) -> Moments:
        """Return the query for all of its mechanism's mu^2, charged for what is enforced."""
        return cls(moments_sensitivity(parts), 1.0, parts)

    @property
    def enforced(self) -> float:
        """See `moments_sensitivity`."""
        return moments_sensitivity(self.parts)


def moments_sensitivity(parts: int) -> float:
    """Return the largest L2 norm of what a row x with target t adds.

    The squares of x_i x_j for i <= j add up to (|x|^4 + sum_i x_i^4) / 2. With |x| <= 1 and x_i^2
    <= 1 / parts that is at most (1 + 1 / parts) / 2. X'y adds at most `TARGET_WEIGHT`^2.
    """
    return math.sqrt((1 + 1 / parts) / 2 + TARGET_WEIGHT**2)


class ExactMoments:
    """Rows and targets, and their second moments without noise.

    Parameters
    ----------
    rows : int64 (n, columns)
        As `UnitRows.encode` returns them.
    targets : (n,)
    bounds
        Public; beyond them targets are clipped.
    """

    def __init__(
        self, rows: sparse.csr_matrix, targets: np.ndarray, bounds: tuple[float, float]
    ) -> None:
        lower, upper = bounds
        centred = np.clip((2 * targets - lower - upper) / (upper - lower), -1.0, 1.0)
        self._rows = rows
        # Rounded towards zero, no target becomes larger.
        self._targets = np.trunc(centred * (TARGET_WEIGHT / UNIT)).astype(np.int64)

    def moments(self) -> ScaledInteger:
        """Return X'X on and above its diagonal and X'y, int64, in units of `UNIT` squared."""
        columns = self._rows.shape[1]
        gram = np.zeros((columns, columns), np.int64)
        for start in range(0, self._rows.shape[0], _BLOCK):
            block = self._rows[start : start + _BLOCK].toarray().astype(np.float64)
            gram += (block.T @ block).astype(np.int64)
        products = np.asarray(self._rows.T @ self._targets)
        return ScaledInteger(np.concatenate([gram[np.triu_indices(columns)], products]), UNIT**2)


class MomentsCurator(Curator):
    """Answers once for the second moments, with all of the ledger's budget.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    domain, knots
        See `UnitRows`; the domain has bounds of the target.
    ledger, seed
        See `Curator`.
    """

    relations = frozenset({ADD_REMOVE})

    def __init__(
        self, rows: Private[Rows], domain: Domain, knots: int, ledger: Ledger, seed: int | None
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        encoder, given = UnitRows(domain, knots), rows.open()
        self._parts = encoder.parts
        lower, upper = (float(bound) for bound in domain.target)
        encoded = encoder.encode(given.frame)
        self._exact = Private(ExactMoments(encoded, given.targets, (lower, upper)))
        budget = PrivacyBudget(ledger.epsilon, ledger.delta)
        once = moments_sensitivity(encoder.parts)
        self._uses = self._gaussian(
            releases="products of two columns, and of a column and the target, summed over rows",
            noise_multiplier=1 / mu_of(*budget),
            sensitivity=Sensitivity(once, 2 * once),
            uses=1,
            budget=budget,
        )

    def answer(self, query: Moments) -> NoisyAnswer:
        """Return the noisy moments, float64.

        Raises
        ------
        BudgetError
            If they were answered before.
        SensitivityError
            If the query takes rows to have other parts than they have.
        """
        if query.parts != self._parts:
            raise SensitivityError(
                f"the query is for rows of {query.parts} parts, but they have {self._parts}: the "
                "sensitivity would be another"
            )
        return self._answer(self._uses, query, lambda _: self._exact.open().moments())
