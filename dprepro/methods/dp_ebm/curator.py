"""The curator of DP-EBM: the one object of a fit that holds rows, targets, cells, codes, scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import FitRows, Rows
from dprepro.methods.dp_ebm.binning import histogram
from dprepro.methods.dp_ebm.kernel import Boosting, Outcome, boost
from dprepro.methods.dp_ebm.losses import LIMIT, LogisticLoss, Loss, SquaredLoss
from dprepro.methods.dp_ebm.queries import (
    Boosted,
    CellCounts,
    FitSettings,
    LeafSums,
    MergeCells,
    Steps,
)
from dprepro.methods.dp_ebm.rounds import EBMPartition, RowsInRounds, Sorting, drawn_now
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import in_units
from dprepro.privacy.private_rows import Private, PrivateRowsError
from dprepro.privacy.query import NoisyAnswer, ScaledInteger, SensitivityError
from dprepro.privacy.sampling.sampler import dyadic
from dprepro.privacy.sensitivity import ADD_REMOVE, REPLACE_ONE, ZERO_OUT, histogram_sensitivity
from dprepro.rows.backends import ChunkBackend, even_parts
from dprepro.rows.chunked import CollectionRows
from dprepro.rows.cluster import ClusterBackend
from dprepro.rows.partition import recode, sort_columns
from dprepro.runtime.threads import ALONE, Threads

NUMBER_OF_ROWS = "number of rows"
"""How the ledger names the exact number of rows among what it takes as public."""


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The rows of a fit as the kernel takes them: for the curator alone.

    Attributes
    ----------
    order : int64 (n,)
        Which row of the table each row here is; see `Loss.row_order`.
    targets : int32 (n,)
        In this order; see `Loss.whole`.
    counts : list of int64 (cells,)
        Rows per cell of each feature.
    cells : dict of uint16 (n,)
        The cell of every row of the table, of the features whose bins are not told yet.
    codes : uint8 (K, n)
        The bin of every row, in this order, of the features whose bins are told.
    states : int32 (n,)
        Of the rows in this order, where the steps so far left them; see `boost`.
    threads
        They share the rows.
    """

    order: np.ndarray
    targets: np.ndarray
    counts: list[np.ndarray]
    cells: dict[int, np.ndarray]
    codes: np.ndarray
    states: np.ndarray
    threads: Threads

    @classmethod
    def of(cls, rows: Rows, sorting: Sorting, threads: Threads) -> ExactRows:
        """Return rows without bins yet."""
        targets = sorting.loss.whole(rows.targets)
        order = sorting.loss.row_order(targets)
        cells, counts = sort_columns(
            rows.frame,
            sorting.domain.features,
            partial(histogram, max_bins=sorting.max_bins),
            threads,
        )
        codes = np.empty((len(cells), targets.size), dtype=np.uint8)
        states = np.empty(targets.size, np.int32)
        return cls(order, targets[order], counts, cells, codes, states, threads)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.targets.size

    def answer(self, query: CellCounts) -> ScaledInteger:
        """Return the rows in each cell of a feature."""
        return ScaledInteger(self.counts[query.feature])

    def follow(self, merge: MergeCells) -> None:
        """Give every row the bin of its cell; the cells are not needed again."""
        k = merge.feature
        cells, codes = self.cells.pop(k), self.codes[k]
        self.threads.map(
            lambda part: recode(cells, merge.bin_of_cell, self.order[part], codes[part]),
            even_parts(codes.size, self.threads.number),
        )

    def boost(self, given: Boosting) -> Outcome:
        """Run these steps, from where those before them left the rows."""
        return boost(self.codes, self.targets, given, self.threads, self.states)

    def close(self, finished: bool) -> None:
        """Nothing was kept outside of memory."""


class DPEBMCurator(Curator):
    """Answers first for the histogram of every feature, then for the steps of boosting, in parts.

    Parameters
    ----------
    rows
        As `read_training_rows` returns them.
    domain
        Says which cell a value lies in.
    loss
        Says what a row's target and residual are.
    settings
        What will be asked, and with how much noise.
    ledger, seed
        See `Curator`. The ledger's relation is that of all queries.
    threads
        They share the rows.

    Raises
    ------
    ValueError
        On values that the domain rules out.
    BudgetError
        If a phase would spend more than its budget.
    """

    relations = frozenset({ZERO_OUT, ADD_REMOVE, REPLACE_ONE})

    def __init__(
        self,
        rows: Private[FitRows],
        domain: Domain,
        loss: Loss,
        settings: FitSettings,
        ledger: Ledger,
        seed: int | None,
        threads: Threads = ALONE,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        if type(loss) not in (LogisticLoss, SquaredLoss):
            raise SensitivityError(
                f"{type(loss).__name__} would see the rows: only LogisticLoss and SquaredLoss may"
            )
        if loss.adaptive and not loss.is_logistic:
            raise SensitivityError("only the residuals of labels have a bound that can adapt")
        if abs(loss.whole_start) > LIMIT:
            raise SensitivityError(f"scores start at {loss.start}, where no residual is known")
        self._ledger, self._loss = ledger, loss
        self._enter_mechanisms(settings, len(domain.features))
        self._exact = Private(self._hold(rows.open(), domain, settings, threads))
        self._told: set[int] = set()
        self._planned, self._done = settings.n_steps, 0
        # As all that follows from rows, even where noise was added.
        self._functions: Private[np.ndarray] | None = None

    def _hold(
        self, rows: FitRows, domain: Domain, settings: FitSettings, threads: Threads
    ) -> ExactRows | RowsInRounds:
        sorting = Sorting(domain, self._loss, settings.max_bins)
        if isinstance(rows, Rows):
            return ExactRows.of(rows, sorting, threads)
        make = partial(EBMPartition, sorting=sorting)
        if isinstance(rows, CollectionRows):
            return RowsInRounds(ClusterBackend(rows, sorting, make), drawn_now)
        holder = ChunkBackend.of(rows, sorting, make, threads)
        self._go_on_with(holder.answers)
        return RowsInRounds(holder, holder.answers.once)

    def _enter_mechanisms(self, settings: FitSettings, n_features: int) -> None:
        adjacency, loss = self._ledger.adjacency, self._loss
        self._histograms = self._gaussian(
            releases="for each feature, the number of rows in each category or interval of values",
            noise_multiplier=settings.noise.binning,
            sensitivity=histogram_sensitivity(adjacency),
            uses=n_features,
            budget=settings.noise.binning_budget,
        )
        self._steps = self._gaussian(
            releases=loss.released,
            noise_multiplier=settings.noise.boosting,
            sensitivity=loss.charged_sensitivity(adjacency) * settings.learning_rate,
            uses=settings.n_steps,
            budget=settings.noise.boosting_budget,
        )

    def number_of_rows(self) -> int:
        """Return n, where the ledger lists it among what is public.

        Raises
        ------
        PrivateRowsError
            If it does not: the noisy histograms say about how many rows there are.
        """
        if NUMBER_OF_ROWS not in self._ledger.assumed_public:
            raise PrivateRowsError(
                f"the ledger does not assume that the {NUMBER_OF_ROWS} is public: take it from the "
                "noisy histograms"
            )
        return self._exact.open().n_rows

    def cell_counts(self, query: CellCounts) -> NoisyAnswer:
        """Return the noisy rows per cell of a feature, float64 (cells,); see `histogram`.

        Raises
        ------
        BudgetError
            If as many histograms were answered as there are features.
        SensitivityError
            If the query is for another relation than the ledger.
        """
        self._check_relation(query)
        return self._answer(self._histograms, query, self._exact.open().answer)

    def leaf_sums(self, query: LeafSums, steps: Steps) -> Boosted:
        """Run the next steps (Algorithm 2, lines 11 to 28) on the bins that were told.

        They go on from those before them, and start with the first feature.

        Raises
        ------
        BudgetError
            If there are more steps in all than were planned.
        SensitivityError
            If the query is for another relation, residual bound or grid than are enforced here, if
            a row could be in several leaves of a step, if the bins of a feature are not told yet,
            or if there were others in the steps before.
        ValueError
            If the noise is too large for int64.
        """
        self._check_relation(query)
        loss = self._loss
        self._check_steps(query, steps)
        scale, normals = self._steps.hand_to_kernel(query, (len(steps.cuts), steps.max_leaves))
        # Rounded up, by more than the kernel's product with a noise factor is rounded down.
        in_sums = in_units(scale, query.unit)
        dyadic(in_sums)  # Raises where int64 would not hold the noise.
        n_bins = np.array([counts.size for counts in steps.counts])
        before = self._functions
        given = Boosting(
            steps.cuts, normals, in_sums, padded(steps.counts), n_bins, query.learning_rate,
            loss.whole_start, loss.is_logistic, loss.whole_bound, loss.adaptive,
            None if before is None else before.open(), self._done, self._planned,
        )  # fmt: skip
        shapes, noise_factors, sums = self._exact.open().boost(given)
        functions = [
            np.ldexp(shape[:size].astype(np.float64), -loss.score_bits)
            for shape, size in zip(shapes, n_bins, strict=True)
        ]
        self._functions, self._done = Private(shapes), self._done + len(steps.cuts)
        answer = Boosted(sums * query.unit, scale, noise_factors, functions)
        self._announce(query, answer)
        return answer

    def _check_relation(self, query: CellCounts | LeafSums) -> None:
        if query.adjacency != self._ledger.adjacency:
            raise SensitivityError(
                f"the query is for {query.adjacency}, but the ledger states its guarantee under "
                f"{self._ledger.adjacency}: ask for that"
            )

    def _check_steps(self, query: LeafSums, steps: Steps) -> None:
        if query.residual_bound != self._loss.residual_bound:
            raise SensitivityError(
                f"the query says that residuals are at most {query.residual_bound!r}, but the "
                f"curator lets them reach {self._loss.residual_bound!r}: make it of the same loss"
            )
        if query.grid != self._loss.part_bits:
            raise SensitivityError(
                f"the query counts in units of 2^-{query.grid}, but the curator in units of "
                f"2^-{self._loss.part_bits}: make it of the same loss"
            )
        if (steps.cuts[:, 1:] < steps.cuts[:, :-1]).any() or (steps.cuts == 0).any():
            raise SensitivityError(
                "cuts must ascend from 1 on, or a row is in several leaves of a step"
            )
        before = self._functions
        if before is not None and before.open().shape != padded(steps.counts).shape:
            raise SensitivityError("steps must have the bins of those before them")
        if untold := set(range(len(steps.counts))) - self._told:
            raise SensitivityError(
                f"features {sorted(untold)} have no bins yet: tell the curator to merge cells"
            )

    def _follow(self, instruction: Any) -> None:
        self._exact.open().follow(instruction)
        self._told.add(instruction.feature)

    def _end(self, finished: bool) -> None:
        self._exact.open().close(finished)


def padded(counts: list[np.ndarray]) -> np.ndarray:
    """Return arrays of different lengths as the rows of one, float64 (K, B), zeros behind them."""
    table = np.zeros((len(counts), max(row.size for row in counts)))
    for k, row in enumerate(counts):
        table[k, : row.size] = row
    return table
