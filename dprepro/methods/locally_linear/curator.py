"""The curator of DP-LLM: rows, labels and batches stay here; sums of gradients come out noisy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dprepro.data.domain import Domain
from dprepro.methods.locally_linear.gradients import (
    ExactGradients,
    FitSettings,
    NumericRows,
    numeric_rows,
)
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource, SampledGaussianMechanism
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError, Instruction, NoisyAnswer, Query
from dprepro.privacy.sensitivity import ZERO_OUT
from dprepro.privacy.subsampling import ACCOUNTANTS

SHUFFLED = (
    "batches are dealt out by shuffling, but the accountant that set the noise takes them for "
    "Poisson samples: it does not apply"
)
"""The gap of ``sampling="shuffle"``, as the ledger lists it."""


@dataclass(frozen=True, eq=False)
class GradientQuery(Query):
    """The sum of the gradients of the next batch's rows, each clipped.

    Attributes
    ----------
    theta
        Where gradients are taken: float32 (M, K, D' + 1), the offset last. The answer has the same
        shape.
    clip
        C: a longer gradient of a row is scaled to this norm, taken over all of theta.
    """

    theta: np.ndarray
    clip: float

    @property
    def enforced(self) -> float:
        """C: under zero-out a row that leaves takes its own clipped gradient along."""
        return abs(self.clip)  # a negative bound reverses gradients and leaves them this norm


@dataclass(frozen=True, eq=False)
class Project(Instruction):
    """The random projections of the maps, R, float32 (M, D', D); None projects nothing."""

    projections: np.ndarray | None


@dataclass(frozen=True)
class Noise:
    """The noise of a fit's sums.

    Attributes
    ----------
    multiplier
        sigma: the standard deviation of the noise over the clip norm.
    accountant
        A key of `ACCOUNTANTS`, by which all sums must keep the ledger's budget. None checks
        nothing: the user chose the multiplier, and the ledger shows what it spends.
    """

    multiplier: float
    accountant: str | None

    def check(self, params: FitSettings, rows: int, ledger: Ledger) -> None:
        """Raise BudgetError if the accountant says that a fit spends more than the ledger states.

        Shuffled batches are counted as Poisson samples here: the gap `SHUFFLED` says so.
        """
        if self.accountant is None:
            return
        rate, steps = params.rate(rows), params.steps(rows)
        spent = ACCOUNTANTS[self.accountant](self.multiplier, rate, steps, ledger.delta)
        if spent > ledger.epsilon:
            raise BudgetError(
                f"{steps} sums with the noise multiplier {self.multiplier:.6g} spend epsilon "
                f"{spent:.6g}, but the ledger states {ledger.epsilon:.6g}: find the multiplier for "
                "all of them"
            )


def read_numeric_rows(
    model: Any, X: Any, y: Any, domain: Domain | None
) -> tuple[Private[NumericRows], int]:
    """Return what a fit was given, wrapped, and the number of rows, which counts as public.

    Sets ``classes_``; raises as `numeric_rows`.
    """
    rows = numeric_rows(model, X, y, None if domain is None else domain.target)
    return Private(rows), len(rows)


class LLMCurator(Curator):
    """Holds the rows of a fit; answers for one batch after the other.

    Parameters
    ----------
    rows
        Their number counts as public.
    shape
        Of theta: (M, K, D' + 1).
    params
        Says how batches are drawn, and how many.
    noise
        See `Noise`; its unit is the clip norm.
    ledger, seed, observed
        See `Curator`.

    Raises
    ------
    BudgetError
        If all sums together would spend more than the ledger states.
    SensitivityError
        If the ledger's relation is not zero-out, or if batches are shuffled and the ledger does not
        list that gap.
    """

    relations = frozenset({ZERO_OUT})

    def __init__(
        self,
        rows: Private[NumericRows],
        shape: tuple[int, ...],
        params: FitSettings,
        noise: Noise,
        ledger: Ledger,
        seed: int | None,
        observed: Sequence[str],
    ) -> None:
        super().__init__(ledger, seed, observed)
        if not params.is_poisson:
            self._require_gap(SHUFFLED)
        opened = rows.open()
        noise.check(params, len(opened), ledger)
        self._uses = _enter(self._source, shape, params, noise, len(opened))
        self._exact = Private(ExactGradients(opened, params, self._source.generator))

    def answer(self, query: GradientQuery) -> NoisyAnswer:
        """Return the noisy sum over the next batch, float32 (M, K, D' + 1).

        How many rows the batch has stays secret.

        Raises
        ------
        BudgetError
            If all batches of all epochs were summed.
        ValueError
            If theta has another shape than the curator was made for.
        """
        exact, _ = self._exact.open().next_sum(query.theta, query.clip)
        return self._announce(query, self._uses.answer(exact, query))

    def _follow(self, instruction: Project) -> None:
        self._exact.open().project(instruction.projections)


def enter_planned(
    params: FitSettings,
    rows: int,
    noise: Noise,
    ledger: Ledger,
    seed: int | None,
    observed: Sequence[str],
) -> None:
    """Write into a ledger what the curator of so many rows would write, without rows."""
    ledger.note_observed(observed)
    _enter(NoiseSource(ledger, seed), (), params, noise, rows)


def _enter(
    source: NoiseSource, shape: tuple[int, ...], params: FitSettings, noise: Noise, rows: int
) -> SampledGaussianMechanism:
    """Enter the sums of all steps.

    A Poisson sample takes a row with probability q at each step. Shuffling takes every row once an
    epoch, which the ledger counts without amplification by sampling.
    """
    steps = params.steps(rows)
    return SampledGaussianMechanism(
        source,
        shape,
        releases="sum of a batch's clipped gradients, each step",
        noise_multiplier=noise.multiplier,
        sensitivity=params.clip,
        draws=steps,
        uses=steps if params.is_poisson else params.epochs,
        sampling=params.rate(rows) if params.is_poisson else 1.0,
        budget=source.ledger.budget,
    )
