"""What may be asked of private rows: queries, noisy answers, instructions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

Unit = float | np.ndarray
"""What a whole number counts in: one unit for a whole answer, or one for each of its numbers."""

LAST_BITS = 1e-12
"""By how much, relative, what is enforced may exceed what is charged: one formula, two orders."""


class SensitivityError(ValueError):
    """A query whose rows could move the answer further than is charged."""


class BudgetError(ValueError):
    """More was asked than a mechanism's entry in the ledger covers."""


@dataclass(frozen=True)
class NoisyAnswer:
    """A noisy answer.

    Attributes
    ----------
    value
        The exact answer plus noise, or what was chosen.
    scale
        Scale of the noise in each entry of `value`; see `LedgerEntry.scale`.
    """

    value: np.ndarray
    scale: float


@dataclass(frozen=True)
class ScaledInteger:
    """An exact answer: private until noise is added.

    Attributes
    ----------
    numbers : int64
        What the rows add up to, in whole numbers.
    unit
        What they count in: one unit for all, or float64, which broadcasts to the numbers. Public.
    """

    numbers: np.ndarray
    unit: Unit = 1.0

    @property
    def value(self) -> np.ndarray:
        """The numbers times their units, float64."""
        return np.asarray(self.numbers * self.unit)


@dataclass(frozen=True)
class Query(ABC):
    """What a curator is asked for: a sum over rows, or a choice by such sums.

    Attributes
    ----------
    charged
        The L2 sensitivity that the noise is scaled to, under the relation of the ledger.
    share
        The share of one use's mu^2 that the query takes: queries of shares that add up to 1 make
        one use.
    gap
        The text of a published method's known gap, by which more may be enforced than is charged:
        a curator answers only if its ledger lists the text.

    Raises
    ------
    SensitivityError
        See `check`.
    """

    charged: float
    share: float
    gap: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise unless noise is charged for all that the curator lets through.

        Raises
        ------
        SensitivityError
            If a row's part, as the curator bounds it, could exceed `charged`, and no gap is named;
            or if one of the two is not above 0: a bound below 0 bounds nothing.
        """
        covered = self.enforced <= self.charged * (1 + LAST_BITS)
        if not covered and (self.gap is None or math.isnan(self.charged)):
            raise SensitivityError(
                f"{type(self).__name__}: the curator bounds a row's part by {self.enforced:.15g}, "
                f"but noise is charged for {self.charged:.15g} only: charge at least what is "
                "enforced"
            )
        if not (self.enforced > 0 and self.charged > 0):
            raise SensitivityError(
                f"{type(self).__name__}: what is enforced and what is charged must be above 0, got "
                f"{self.enforced:g} and {self.charged:g}"
            )

    @property
    @abstractmethod
    def enforced(self) -> float:
        """The largest L2 norm of a row's part that the curator's computation lets through."""


@dataclass(frozen=True)
class Instruction:
    """What a curator is told to do with the rows, from noisy answers alone. It answers nothing.

    Attributes
    ----------
    tells_bins
        Whether it gives rows their bins, once; else it is about their scores.
    """

    tells_bins: ClassVar[bool] = False
