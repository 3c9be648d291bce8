"""Queries and releases: what may be asked of private rows, and what a curator answers.

A curator is the only object of a fit that holds private codes, targets and scores. Everything else
sends it a `Query` and gets a `Release`, which is noisy and in the ledger.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dprepro.privacy.gdp import delta_of
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sensitivity import Sensitivity

ROUNDING = 1e-6
"""By how much, relative, a sum of shares may exceed its uses, or a delta its budget: rounding."""


class SensitivityError(ValueError):
    """A query whose rows could move the answer further than is charged."""


class BudgetError(ValueError):
    """More was asked than a mechanism's entry in the ledger covers."""


@dataclass(frozen=True)
class Release:
    """A noisy answer.

    Attributes
    ----------
    value : float64
        The exact answer plus noise.
    scale
        Standard deviation of the noise in each number of `value`.
    """

    value: np.ndarray
    scale: float


@dataclass(frozen=True)
class Query(ABC):
    """A sum over rows that a curator is asked for.

    Attributes
    ----------
    charged
        The L2 sensitivity that the noise is scaled to, under the relation of the ledger.
    share
        The share of one use's mu^2 that the query takes: queries of shares that add up to 1 make
        one use.

    Raises
    ------
    SensitivityError
        If a row's part, as the curator bounds it, could exceed `charged`.
    """

    charged: float
    share: float

    def __post_init__(self) -> None:
        if not self.enforced <= self.charged:
            raise SensitivityError(
                f"{type(self).__name__}: the curator bounds a row's part by {self.enforced!r}, but "
                f"noise is charged for {self.charged!r} only: charge at least what is enforced"
            )

    @property
    @abstractmethod
    def enforced(self) -> float:
        """The largest L2 norm of a row's part that the curator's computation lets through."""


@dataclass(frozen=True)
class Instruction:
    """What a curator is told to do with the rows, from releases alone. It answers nothing."""


class Listener(Protocol):
    """Hears what a curator is asked and told, and what it releases: no exact value."""

    def asked(self, query: Query, release: Release) -> None:
        """Take in a query and its answer."""
        ...

    def told(self, instruction: Instruction) -> None:
        """Take in an instruction."""
        ...


_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let `listener` hear every curator that is made in this context: the audit does."""
    token = _LISTENERS.set((*_LISTENERS.get(), listener))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


class GaussianUses:
    """The uses of one Gaussian mechanism: one entry of the ledger, answered query by query.

    Every answer draws its own noise, of every number in it. A use is spent by queries whose shares
    add up to 1; `uses` of them can be spent and no more.
    """

    def __init__(self, source: NoiseSource, unit: float, sensitivity: float, uses: int) -> None:
        self._generator = source.generator
        self._unit = unit
        self._sensitivity = sensitivity
        self._uses = uses
        self._spent = 0.0

    def answer(self, exact: np.ndarray, query: Query) -> Release:
        """Return `exact`, float64, with noise of its charged sensitivity and share.

        Raises
        ------
        BudgetError
            If the share is not positive, or the uses are spent.
        """
        self._spent += query.share
        if not query.share > 0 or self._spent > self._uses * (1 + ROUNDING):
            raise BudgetError(
                f"a query with the share {query.share!r} would make {self._spent:.6g} uses where "
                f"the ledger has {self._uses}"
            )
        factor = query.charged / self._sensitivity / math.sqrt(query.share)
        noise = self._generator.normal(0.0, self._unit, np.shape(exact))
        return Release(exact + factor * noise, factor * self._unit)


class Curator(ABC):
    """The holder of a fit's private rows. Every method derives its own, in a module ``curator``.

    Parameters
    ----------
    ledger
        Receives an entry for every mechanism, before its first answer.
    seed
        See `NoiseSource`.
    """

    def __init__(self, ledger: Ledger, seed: int | np.random.SeedSequence | None) -> None:
        self._source = NoiseSource(ledger, seed)
        self._listeners = _LISTENERS.get()

    @property
    def public_generator(self) -> np.random.Generator:
        """Draws choices that show in what is released; see `NoiseSource`."""
        return self._source.public_generator

    def _gaussian(
        self,
        *,
        releases: str,
        noise_multiplier: float,
        sensitivity: Sensitivity,
        uses: int,
        budget: tuple[float, float],
    ) -> GaussianUses:
        """Enter a Gaussian mechanism in the ledger and return its uses; see `LedgerEntry`.

        Raises
        ------
        BudgetError
            If that many uses with that noise spend more than the budget: they are mu-GDP with
            mu^2 = uses / noise_multiplier^2, and Theorem 5 of Nori et al. 2021 gives its delta.
        """
        epsilon, delta = budget
        if delta_of(epsilon, math.sqrt(uses) / noise_multiplier) > delta * (1 + ROUNDING):
            raise BudgetError(
                f"{uses} uses with the noise multiplier {noise_multiplier:.6g} spend more than "
                f"(epsilon, delta) = {budget}: multiply the noise by the root of the uses"
            )
        unit = self._source.enter_gaussian(
            releases=releases, noise_multiplier=noise_multiplier, sensitivity=sensitivity,
            uses=uses, budget=budget,
        )  # fmt: skip
        return GaussianUses(self._source, unit, sensitivity.stated, uses)

    def _announce(self, query: Query, release: Release) -> Release:
        for listener in self._listeners:
            listener.asked(query, release)
        return release

    def tell(self, instruction: Instruction) -> None:
        """Do with the rows what an instruction says; it is made of releases alone."""
        for listener in self._listeners:
            listener.told(instruction)
        self._follow(instruction)

    @abstractmethod
    def _follow(self, instruction: Any) -> None:
        """Do it."""
