"""The curator of DP-EBM+: the one object of a fit that holds rows, codes, targets and scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dprepro.additive.bins import recode
from dprepro.data.domain import Domain
from dprepro.ebm_plus.clipping import MAGNITUDES
from dprepro.ebm_plus.grid import fine_cells
from dprepro.ebm_plus.groups import GROUP, exact_answers
from dprepro.ebm_plus.kernel import BITS, UNIT, magnitude_counts, move_scores, residual_sums
from dprepro.ebm_plus.losses import LOGISTIC, SQUARED, Loss
from dprepro.ebm_plus.queries import (
    INTERCEPT,
    Histogram,
    Magnitudes,
    Merge,
    Move,
    Residuals,
    Start,
    Totals,
    totals_sensitivity,
)
from dprepro.estimators.inputs import FitRows, Rows, in_memory
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private import Private
from dprepro.privacy.query import BudgetError, Instruction, Query, Release, SensitivityError, Whole
from dprepro.privacy.release import Curator, GaussianUses
from dprepro.privacy.sensitivity import (
    ADD_REMOVE,
    Sensitivity,
    histogram_sensitivity,
    leaf_sum_sensitivity,
)


class ExactAnswers:
    """What queries come to without noise: for a curator, and for whoever knows the rows himself.

    Parameters
    ----------
    rows
        X, and y as the reader gives it.
    domain, loss
        They say which cells a value lies in, and what a row's target is.

    Raises
    ------
    ValueError
        On values that the domain rules out.
    """

    def __init__(self, rows: Rows, domain: Domain, loss: Loss) -> None:
        self._loss = loss
        self._features = domain.features
        self._targets = loss.targets(rows.targets, domain)
        self._cells, self._counts = _sort(rows.frame, domain)
        self._nowhere = np.zeros(len(self._targets), np.uint8)
        self.restart()

    def restart(self) -> None:
        """Forget all instructions."""
        self._pending: tuple[np.ndarray, np.ndarray]
        self._codes: dict[int, np.ndarray] = {INTERCEPT: self._nowhere}
        self._bins: dict[int, int] = {INTERCEPT: 1}
        self.follow(Start(0))

    def answer(self, query: Query) -> Whole:
        """Return the exact answer: private."""
        answers: dict[type[Query], Callable[[Any], Whole]] = {
            Totals: self._totals,
            Histogram: self._histogram,
            Magnitudes: self._magnitudes,
            Residuals: self._residuals,
        }
        return answers[type(query)](query)

    def _totals(self, query: Totals) -> Whole:
        centred = self._loss.centred(self._targets)
        sums, power = [centred.size], centred
        for _ in range(query.powers):
            sums.append(int(power.sum()))
            power = np.sign(power * centred) * (np.abs(power * centred) >> BITS)
        return Whole(np.array(sums), np.array([1.0, *[UNIT] * query.powers]))

    def _histogram(self, query: Histogram) -> Whole:
        k = query.feature
        return exact_answers(self._features[k], self._counts[k])

    def _magnitudes(self, _: Magnitudes) -> Whole:
        codes, change = self._pending
        counts = magnitude_counts(self._scores, self._targets, codes, change, MAGNITUDES)
        self._has_applied()
        return Whole(counts)

    def _residuals(self, query: Residuals) -> Whole:
        sums = residual_sums(
            self._scores, self._targets, *self._pending, self._codes[query.feature],
            self._bins[query.feature], math.floor(query.bound / UNIT), self._loss.is_logistic,
        )  # fmt: skip
        self._has_applied()
        return Whole(sums[: self._loss.answers], UNIT)

    def follow(self, instruction: Instruction) -> None:
        """Do what an instruction says."""
        match instruction:
            case Start():
                self._scores = np.full(len(self._targets), instruction.score, dtype=np.int32)
                self._pending, self._is_pending = (self._nowhere, np.zeros(1, np.int32)), False
            case Merge():
                self._merge(instruction)
            case Move():
                self._apply()
                # Applied with the next query: one pass over the rows does both.
                self._pending = (self._codes[instruction.feature], instruction.change)
                self._is_pending = True

    def _apply(self) -> None:
        codes, change = self._pending
        if self._is_pending:
            move_scores(self._scores, codes, change)
        self._has_applied()

    def _has_applied(self) -> None:
        codes, change = self._pending
        self._pending, self._is_pending = (codes, np.zeros_like(change)), False

    def _merge(self, merge: Merge) -> None:
        cells = self._cells[merge.feature]
        if not 0 < merge.bin_of_cell.max() + 1 <= merge.n_bins:
            raise SensitivityError(
                f"cells have bins up to {merge.bin_of_cell.max()}, but {merge.n_bins} bins are told"
            )
        codes = np.empty(cells.size, dtype=np.uint8)
        recode(cells, merge.bin_of_cell, np.arange(cells.size), codes)
        self._codes[merge.feature], self._bins[merge.feature] = codes, merge.n_bins


def _sort(frame: pd.DataFrame, domain: Domain) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the cell of every row, for each feature, and the number of rows in each cell."""
    sorted_rows = [
        fine_cells(frame[name], feature)
        for name, feature in zip(frame.columns, domain.features, strict=True)
    ]
    cells, counts = zip(*sorted_rows, strict=True)
    return list(cells), list(counts)


class PlusCurator(Curator):
    """Answers the queries of a fit, each with the noise that its phase is given.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    domain, loss
        See `ExactAnswers`.
    ledger, seed
        See `Curator`.

    Raises
    ------
    ValueError
        On values that the domain rules out.
    """

    relations = frozenset({ADD_REMOVE})

    def __init__(
        self,
        rows: Private[FitRows],
        domain: Domain,
        loss: Loss,
        ledger: Ledger,
        seed: int | None,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        if loss is not LOGISTIC and loss is not SQUARED:
            raise SensitivityError(
                f"{type(loss).__name__} would see the rows: only LOGISTIC and SQUARED may"
            )
        self._loss = loss
        self._exact = Private(ExactAnswers(in_memory(rows.open()), domain, loss))
        self._uses: dict[type[Query], GaussianUses] = {}

    def open_totals(self, mu: float, budget: PrivacyBudget) -> None:
        """Enter one `Totals` query in the ledger; it is mu-GDP."""
        powers = self._loss.powers
        self._uses[Totals] = self._gaussian(
            releases="number of rows, and sum of the targets in units of their range, centred"
            + (", and of their squares" if powers > 1 else ""),
            noise_multiplier=1 / mu,
            sensitivity=Sensitivity(totals_sensitivity(powers), 1.0),
            uses=1,
            budget=budget,
        )

    def open_histograms(self, mu: float, n_features: int, budget: PrivacyBudget) -> None:
        """Enter a `Histogram` query of every feature in the ledger; together they are mu-GDP."""
        self._uses[Histogram] = self._gaussian(
            releases="rows per cell of each feature's histogram, for numbers also per group of "
            f"{GROUP} cells, then over sqrt(2) but for missing values",
            noise_multiplier=math.sqrt(n_features) / mu,
            sensitivity=histogram_sensitivity(ADD_REMOVE),
            uses=n_features,
            budget=budget,
        )

    def open_epochs(self, mu: float, n_epochs: int, budget: PrivacyBudget) -> float:
        """Enter the epochs in the ledger: `Residuals` and `Magnitudes`; together they are mu-GDP.

        Return the noise of an epoch as a whole: the standard deviation for sensitivity 1, share 1.
        """
        multiplier = math.sqrt(n_epochs) / mu
        self._uses[Residuals] = self._uses[Magnitudes] = self._gaussian(
            releases=f"an epoch: {self._loss.released}; weighted so that together they have "
            "sensitivity 1",
            noise_multiplier=multiplier,
            sensitivity=leaf_sum_sensitivity(ADD_REMOVE, 1.0),
            uses=n_epochs,
            budget=budget,
        )
        return multiplier

    def answer(self, query: Query) -> Release:
        """Answer a query of a phase that is open.

        Raises
        ------
        BudgetError
            If its phase is not open, or has no uses left.
        SensitivityError
            If it takes the parts of rows for those of another loss.
        """
        if isinstance(query, Residuals) and query.loss is not self._loss:
            raise SensitivityError(
                f"the query is for {type(query.loss).__name__}, but the curator sums the parts of "
                f"{type(self._loss).__name__}: ask with the loss that the curator was made with"
            )
        if type(query) not in self._uses:
            raise BudgetError(f"no mechanism for {type(query).__name__} is in the ledger: open one")
        exact = self._exact.open().answer(query)
        release = self._uses[type(query)].answer(exact.numbers, query, exact.unit)
        return self._announce(query, release)

    def _follow(self, instruction: Any) -> None:
        self._exact.open().follow(instruction)
