"""The curator of the Wishart regression: it releases noisy means, then noisy second moments.

The means are exact sums of whole numbers with exact noise. The second moments and the Wishart draw
are in floating point; they have no guarantee that rounding could break.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.estimators.inputs import Arrays
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import LaplaceMechanism, WishartMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import Instruction, NoisyAnswer, Query
from dprepro.privacy.sensitivity import REPLACE_ONE

UNIT = 2.0**-30
"""Of a value's place between the bounds of its column, and of sums of places."""

BOUNDS = "bounds of all columns and of the target"
LARGEST_NORM = "largest row norm"
UNPAID = (BOUNDS, LARGEST_NORM)
"""What a fit reads without noise, in the words of the ledger."""

NOT_PRIVATE = (
    "Wishart noise is not differentially private: it is always positive, so that what is released "
    "can rule out a neighbour for certain"
)
TARGET_LEFT_OUT = "the row norm that sets the noise leaves out the target"
ONE_MEAN_PAID = "the budget of one noisy mean is paid for the means of all columns"
GAPS = (NOT_PRIVATE, TARGET_LEFT_OUT, ONE_MEAN_PAID)


@dataclass(frozen=True)
class ColumnMeans(Query):
    """The means of [X, y], each in units of its column's range over n."""

    @property
    def enforced(self) -> float:
        """1: all values of a column lie within its bounds, which are read from them."""
        return 1.0


@dataclass(frozen=True)
class SecondMoments(Query):
    """[X, y]'[X, y], in units of the square of the largest row norm of X."""

    @property
    def enforced(self) -> float:
        """Infinity: the norm that is the unit does not see the target."""
        return math.inf


@dataclass(frozen=True, eq=False)
class Centre(Instruction):
    """Subtract released means, float64 (p,), from all rows."""

    means: np.ndarray


class ExactMoments:
    """The rows [X, y], float64 (n, p), and what is asked of them, without noise."""

    def __init__(self, rows: Arrays) -> None:
        self._table = np.column_stack([rows.features, rows.targets])
        self.size = self._table.shape[1]

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest value of each column, float64 (p,) each."""
        return self._table.min(axis=0), self._table.max(axis=0)

    def places(self) -> np.ndarray:
        """Return sums of the values' places between the bounds, int64 (p,), in `UNIT`s.

        A place is 0 at the lower bound, 1 at the upper one, and rounded down.
        """
        lower, upper = self.bounds()
        width = np.where(upper > lower, upper - lower, 1.0)
        whole: np.ndarray = ((self._table - lower) / width / UNIT).astype(np.int64)
        return whole.sum(axis=0)

    def means_of(self, places: np.ndarray) -> np.ndarray:
        """Return the means, float64 (p,), that belong to sums of places, within the bounds."""
        lower, upper = self.bounds()
        return np.clip(lower + (upper - lower) * places / len(self._table), lower, upper)

    def noisy_moments(self, draw: np.ndarray) -> np.ndarray:
        """Return the second moments, float64 (p, p), with `draw` in units of the norm squared."""
        norm = float(np.linalg.norm(self._table[:, :-1], axis=1).max())
        return self._table.T @ self._table + norm**2 * draw

    def centre(self, means: np.ndarray) -> None:
        """Subtract means from all rows."""
        self._table = self._table - means


class WishartCurator(Curator):
    """Answers once for the means and once for the second moments.

    The budget is split as in the library: e = epsilon / p for each mean, p = K + 1, and
    epsilon - e for the moments, with s = 1 / (2 (epsilon - e)) in units of the norm.

    Parameters
    ----------
    rows
        As `read_training_arrays` returns them.
    ledger, seed, observed
        See `Curator`; the ledger has to list `UNPAID` and `GAPS`.

    Raises
    ------
    ValueError
        If the ledger's epsilon is not positive and finite.
    SensitivityError
        If the ledger does not list the gap `ONE_MEAN_PAID`.
    """

    relations = frozenset({REPLACE_ONE})

    def __init__(
        self, rows: Private[Arrays], ledger: Ledger, seed: int | None, observed: Sequence[str]
    ) -> None:
        super().__init__(ledger, seed, observed)
        exact = ExactMoments(rows.open())
        self._exact = Private(exact)
        self._enter(exact.size, ledger.epsilon)
        self._require_budget(ONE_MEAN_PAID)

    def _enter(self, size: int, epsilon: float) -> None:
        self._means = LaplaceMechanism(
            self._source,
            (1, size),
            releases="sum of each column and of the target, in units of their range",
            epsilon=epsilon / size,
            sensitivity=1.0,
            uses=size,
        )
        left = epsilon * (1 - 1 / size)
        self._moments = WishartMechanism(
            self._source,
            size,
            releases="second moments of [X, y], in units of the largest row norm of X",
            scale=1 / (2 * left),
            sensitivity=1.0,
            budget=PrivacyBudget(left, 0.0),
        )

    def means(self, query: ColumnMeans) -> NoisyAnswer:
        """Return the noisy means of [X, y], float64 (p,), within the bounds that the ledger lists.

        The answer's scale is in units of a column's range over n.

        Raises
        ------
        BudgetError
            If they were answered before.
        """
        self._read_exactly(BOUNDS)
        exact = self._exact.open()
        noisy = self._means.answer(0, exact.places(), query, UNIT)
        return self._announce(query, NoisyAnswer(exact.means_of(noisy.value), noisy.scale))

    def moments(self, query: SecondMoments) -> NoisyAnswer:
        """Return the noisy second moments of [X, y] less what was told, float64 (p, p).

        The answer's scale is in units of the largest row norm of X, which the ledger lists.

        Raises
        ------
        BudgetError
            If they were answered before.
        SensitivityError
            If the ledger does not list the gaps `NOT_PRIVATE` and that of the query.
        """
        self._require_gap(NOT_PRIVATE)
        self._read_exactly(LARGEST_NORM)
        scale, draw = self._moments.hand_to_kernel(0, query)
        return self._announce(query, NoisyAnswer(self._exact.open().noisy_moments(draw), scale))

    def _follow(self, instruction: Any) -> None:
        self._exact.open().centre(instruction.means)
