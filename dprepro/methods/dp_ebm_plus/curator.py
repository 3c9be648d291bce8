"""The curator of DP-EBM+: the one object of a fit that holds rows, codes, targets and scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dprepro.additive.bins import Pair
from dprepro.data.domain import Domain
from dprepro.estimators.inputs import FitRows, Rows
from dprepro.methods.dp_ebm_plus.clipping import MAGNITUDES
from dprepro.methods.dp_ebm_plus.grid import fine_cells
from dprepro.methods.dp_ebm_plus.kernel import (
    BITS,
    LABELS,
    UNIT,
    add_by_code,
    limited_residuals,
    magnitude_cells,
    move_scores,
)
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, POISSON, SQUARED, Loss, Softmax
from dprepro.methods.dp_ebm_plus.queries import (
    CENTRE_UNIT,
    FACTORS,
    INTERCEPT,
    ClassCounts,
    ClassResiduals,
    Coded,
    CodedHistogram,
    CodedResiduals,
    Magnitudes,
    Merge,
    Move,
    Moves,
    Residuals,
    Start,
    Totals,
    totals_sensitivity,
)
from dprepro.methods.dp_ebm_plus.sums import class_sums, coded_sums, move_vectors
from dprepro.methods.dp_ebm_plus.weighing import WHOLE, weigh, weighted_counts
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
from dprepro.privacy.sensitivity import ADD_REMOVE, histogram_sensitivity, leaf_sum_sensitivity
from dprepro.rows.backends import ChunkBackend, MemoryBackend
from dprepro.rows.chunked import CollectionRows
from dprepro.rows.cluster import ClusterBackend
from dprepro.rows.partition import (
    WEIGHT_UNIT,
    Columns,
    MemoryColumns,
    Partition,
    SortedRows,
    count_rows,
    sort_columns,
)
from dprepro.runtime.threads import ALONE, Threads

CuratedLoss: TypeAlias = Loss | Softmax

_OF_PAIRS = (
    "Some passes release such sums for each cell of some pairs of features, instead or as well"
)


WEIGHTED = (
    "largest weight of a row: in every answer a row counts as its weight over the largest, rounded "
    "down to 1/256"
)
"""What a ledger says of a fit to rows with weights."""


@dataclass(frozen=True)
class Sorting:
    """How rows become whole numbers: cells a value lies in, and targets; of public things alone.

    Attributes
    ----------
    domain, loss
        They say which cells a value lies in, and what a row's target is.
    """

    domain: Domain
    loss: CuratedLoss

    def __call__(self, rows: Rows) -> SortedRows:
        """Return the rows' numbers.

        Raises
        ------
        ValueError
            On values that the domain rules out.
        """
        cells, counts = sort_columns(rows.frame, self.domain.features, fine_cells)
        targets = self.loss.targets(rows.targets, self.domain)
        n_scores = self.loss.n_classes if isinstance(self.loss, Softmax) else 1
        weights = rows.weights
        if weights is not None:
            counts = [
                weighted_counts(cells[k], weights, each.size) for k, each in enumerate(counts)
            ]
        return SortedRows(targets, cells, counts, n_scores, weights)


class ExactAnswers(Partition):
    """What queries come to without noise: for a curator, and for whoever knows the rows himself.

    Parameters
    ----------
    columns, counts, moves
        See `Partition`.
    sorting
        What sorted the rows.
    """

    def __init__(
        self,
        columns: Columns,
        counts: Sequence[np.ndarray],
        moves: list[Instruction],
        sorting: Sorting,
    ) -> None:
        super().__init__(columns, counts, moves)
        self._loss = sorting.loss
        self._features = sorting.domain.features
        self._bins = {INTERCEPT: 1}

    @classmethod
    def of(cls, rows: Rows, domain: Domain, loss: CuratedLoss) -> ExactAnswers:
        """Return those of rows in memory. Raises as `Sorting`."""
        sorting = Sorting(domain, loss)
        return cls.over(sorting(rows), sorting)

    @classmethod
    def over(cls, found: SortedRows, sorting: Sorting) -> ExactAnswers:
        """Return those of sorted rows, which stay as they are: nothing is asked or told yet."""
        return cls(MemoryColumns(found), found.counts, [], sorting)

    def answer(self, query: Query) -> ScaledInteger:
        """Return the exact answer: private."""
        answers: dict[type[Query], Callable[[Any], ScaledInteger]] = {
            Totals: self._totals,
            CodedHistogram: self._coded_histogram,
            Magnitudes: self._magnitudes,
            Residuals: self._residuals,
            CodedResiduals: self._coded_residuals,
            ClassCounts: self._class_counts,
            ClassResiduals: self._class_residuals,
        }
        return answers[type(query)](query)

    def _totals(self, query: Totals) -> ScaledInteger:
        centred, weights = self._one_score.centred(self._columns.targets), self._columns.weights
        parts = np.ones(1, np.int64) if weights is None else np.clip(weights, 0, WHOLE)
        sums, power = [centred.size if weights is None else int(parts.sum(dtype=np.int64))], centred
        for degree in range(query.powers):
            if degree:
                power = np.sign(power * centred) * (np.abs(power * centred) >> BITS)
            sums.append(int((power * parts).sum()))
        sums = [factor * value for factor, value in zip(FACTORS[: len(sums)], sums, strict=True)]
        self._columns.let_go()
        units = np.array([1.0, *[UNIT] * query.powers])
        return ScaledInteger(np.array(sums), units * self._part_of_a_row)

    @property
    def _part_of_a_row(self) -> float:
        """What counts of rows are whole numbers of; see `weighing`."""
        return 1.0 if self._columns.weights is None else WEIGHT_UNIT

    def _coded_histogram(self, query: CodedHistogram) -> ScaledInteger:
        code, k = query.code, query.code.feature
        if isinstance(k, Pair):
            raise SensitivityError("a histogram is of a feature, not of a pair")
        counts = self._counts[k]
        if code.n_bins != counts.size:
            raise SensitivityError(
                f"a code of {code.n_bins} cells for feature {k}, which has {counts.size}"
            )
        unit = CENTRE_UNIT * self._part_of_a_row
        return ScaledInteger(code.numbers(counts), code.weights * unit)

    def _magnitudes(self, _: Magnitudes) -> ScaledInteger:
        columns = self._columns
        with self._up_to_date(Move) as move:
            cells, weights = magnitude_cells(self._limited(move), MAGNITUDES), columns.weights
        if weights is None:
            counts = count_rows(cells, MAGNITUDES)
        else:
            counts = weighted_counts(cells, weights, MAGNITUDES)
        return ScaledInteger(counts, self._part_of_a_row)

    def _limited(self, move: Move | None, bound: float = 1.0) -> np.ndarray:
        """Let the scores follow a move; return residuals within +-`bound`, int32 (n,) in `UNIT`."""
        scores, targets = self._columns.scores, self._columns.targets
        move_scores(scores, *self._change(move))
        residuals, ones = np.empty(targets.size, np.int32), np.ones(targets.size, np.int32)
        limit = math.floor(bound / UNIT)
        limited_residuals(scores, targets, ones, limit, self._one_score.kind, residuals)
        return residuals

    def _residuals(self, query: Residuals) -> ScaledInteger:
        columns, codes = self._columns, self._codes(query.feature)
        with self._up_to_date(Move) as move:
            sums = np.zeros(self._bins[query.feature], np.int64)
            residuals = self._limited(move, query.bound)
            if columns.weights is not None:
                weigh(residuals, columns.weights)
            add_by_code(residuals, codes, sums)
        return ScaledInteger(sums, UNIT)

    def _coded_residuals(self, query: CodedResiduals) -> ScaledInteger:
        columns, kind = self._columns, self._one_score.kind
        with self._following(query) as changes:
            return coded_sums(
                columns.scores, columns.targets, self._codes, query, changes, kind,
                columns.weights,
            )  # fmt: skip

    def _class_residuals(self, query: ClassResiduals) -> ScaledInteger:
        columns, classes = self._columns, self._softmax.n_classes
        with self._following(query) as changes:
            return class_sums(
                columns.scores, columns.targets, self._codes, query, changes, classes,
                columns.weights,
            )  # fmt: skip

    @contextmanager
    def _following(self, query: Coded) -> Iterator[dict[int | Pair, np.ndarray]]:
        """Let the scores follow all moves but the last, whose changes by feature the block gets."""
        for code in query.codes:
            k = code.feature
            has = k.n_cells if isinstance(k, Pair) else self._bins[k]
            if code.n_bins != has:
                what = "a pair" if isinstance(k, Pair) else f"feature {k}"
                raise SensitivityError(f"a code of {code.n_bins} bins for {what}, which has {has}")
        with self._up_to_date(Moves) as moves:
            yield {} if moves is None else {move.feature: move.change for move in moves.moves}

    def _class_counts(self, _: ClassCounts) -> ScaledInteger:
        classes, weights = self._softmax.n_classes, self._columns.weights
        if weights is None:
            counts = np.bincount(self._columns.targets, minlength=classes)
        else:
            counts = weighted_counts(self._columns.targets, weights, classes)
        self._columns.let_go()
        return ScaledInteger(counts, self._part_of_a_row)

    @property
    def _one_score(self) -> Loss:
        """The loss, where rows have one score each; SensitivityError if they have several."""
        if isinstance(self._loss, Softmax):
            raise SensitivityError("rows of several classes answer ClassCounts and ClassResiduals")
        return self._loss

    @property
    def _softmax(self) -> Softmax:
        """The loss, where rows have several scores; SensitivityError if they have one."""
        if not isinstance(self._loss, Softmax):
            raise SensitivityError("rows have one score each: they answer nothing about classes")
        return self._loss

    def merge(self, instruction: Merge) -> None:
        """Give every row the bin of its cell."""
        if not 0 < instruction.bin_of_cell.max() + 1 <= instruction.n_bins:
            raise SensitivityError(
                f"cells have bins up to {instruction.bin_of_cell.max()}, but {instruction.n_bins} "
                "bins are told"
            )
        self._bins[instruction.feature] = instruction.n_bins
        super().merge(instruction)

    def _move(self, instruction: Start | Move | Moves) -> None:
        scores = self._columns.scores
        if isinstance(instruction, Start):
            scores[:] = instruction.score
        elif isinstance(instruction, Moves):
            for move in instruction.moves:
                self._move(move)
        elif scores.ndim > 1:
            move_vectors(scores, *self._change(instruction))
        else:
            move_scores(scores, *self._change(instruction))

    def _change(self, move: Move | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the bins in the function that moves, and by what they move."""
        if move is None:
            return self._codes(INTERCEPT), np.zeros(1, np.int32)
        return self._codes(move.feature), move.change

    def _codes(self, feature: int | Pair) -> np.ndarray:
        if isinstance(feature, Pair):
            # Made anew, too: what is stored is the bins of single features.
            return feature.cells_of(self._codes(feature.first), self._codes(feature.second))
        if feature != INTERCEPT:
            return self._columns.codes[feature]
        # Made anew: kept for every chunk it would be a byte for each row.
        return np.zeros(self._columns.targets.size, np.uint8)


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
    threads
        They share the rows.

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
        loss: CuratedLoss,
        ledger: Ledger,
        seed: int | None,
        threads: Threads = ALONE,
    ) -> None:
        super().__init__(ledger, seed, domain.observed)
        known = any(loss is one for one in (LOGISTIC, SQUARED, POISSON))
        if not known and type(loss) is not Softmax:
            raise SensitivityError(
                f"{type(loss).__name__} would see the rows: only LOGISTIC, SQUARED, POISSON and "
                "Softmax may"
            )
        self._loss = loss
        # Whether weights were given is public, as the domain is; no weight is.
        held = rows.open()
        self._weighted = isinstance(held, Rows) and held.weights is not None
        if self._weighted:
            ledger.assumed_public.append(WEIGHTED)
        self._exact = Private(self._hold(held, domain, threads))
        self._uses: dict[type[Query], GaussianMechanism] = {}

    def _hold(
        self, rows: FitRows, domain: Domain, threads: Threads
    ) -> MemoryBackend[ExactAnswers] | ChunkBackend[ExactAnswers] | ClusterBackend:
        if isinstance(rows, Rows):
            return MemoryBackend(
                lambda part: ExactAnswers.of(rows.part(part), domain, self._loss),
                len(rows),
                threads,
            )
        sorting = Sorting(domain, self._loss)
        make = partial(ExactAnswers, sorting=sorting)
        if isinstance(rows, CollectionRows):
            return ClusterBackend(rows, sorting, make)
        holder = ChunkBackend.of(rows, sorting, make, threads)
        self._go_on_with(holder.answers)
        return holder

    def open_totals(self, mu: float, budget: PrivacyBudget) -> None:
        """Enter one `Totals` query in the ledger, of classes `ClassCounts`; it is mu-GDP."""
        if isinstance(self._loss, Softmax):
            self._uses[ClassCounts] = self._gaussian(
                releases="the number of rows of each class",
                noise_multiplier=1 / mu,
                sensitivity=histogram_sensitivity(ADD_REMOVE),
                uses=1,
                budget=budget,
            )
            return
        powers = self._loss.powers
        self._uses[Totals] = self._gaussian(
            releases="the number of rows, and the sum of the target, counted from -1/2 (first "
            "label or lower bound) to 1/2"
            + ("; also four times the sum of its squares" if powers > 1 else ""),
            noise_multiplier=1 / mu,
            sensitivity=totals_sensitivity(powers, self._weighted),
            uses=1,
            budget=budget,
        )

    def open_histograms(self, mu: float, n_features: int, budget: PrivacyBudget) -> float:
        """Enter a `CodedHistogram` of every feature in the ledger; together they are mu-GDP.

        Return the standard deviation of the noise in each number.
        """
        self._uses[CodedHistogram] = self._gaussian(
            releases="for each feature, the number of rows in each category or narrow interval; "
            "for numeric features, a weighted sum of the numbers of rows in an interval and in "
            "those above it, with weights that decay with the distance. All these numbers are "
            "scaled so that one row moves those of a feature by at most 1 together",
            noise_multiplier=math.sqrt(n_features) / mu,
            sensitivity=histogram_sensitivity(ADD_REMOVE),
            uses=n_features,
            budget=budget,
        )
        return math.sqrt(n_features) / mu

    def open_epochs(
        self,
        mu: float,
        n_epochs: int,
        budget: PrivacyBudget,
        *,
        has_pairs: bool = False,
    ) -> float:
        """Enter the epochs in the ledger; together they are mu-GDP.

        They take `CodedResiduals`, for numbers `Residuals` and `Magnitudes`, too; of several
        classes `ClassResiduals`.

        Return the noise of an epoch as a whole: the standard deviation for sensitivity 1, share 1.
        With `has_pairs` these may be about pairs, too.
        """
        multiplier = math.sqrt(n_epochs) / mu
        epochs = self._gaussian(
            releases=f"in each pass over the features: {self._loss.released}. "
            + (f"{_OF_PAIRS}. " if has_pairs else "")
            + "A difference is limited before it is added. All these sums are scaled so that one "
            "row moves them by at most 1 together",
            noise_multiplier=multiplier,
            sensitivity=leaf_sum_sensitivity(ADD_REMOVE, 1.0),
            uses=n_epochs,
            budget=budget,
        )
        asked: list[type[Query]] = [CodedResiduals]
        if isinstance(self._loss, Softmax):
            asked = [ClassResiduals]
        elif self._loss.kind != LABELS:
            asked += [Residuals, Magnitudes]
        self._uses |= dict.fromkeys(asked, epochs)
        return multiplier

    def answer(self, query: Query) -> NoisyAnswer:
        """Answer a query of a phase that is open.

        Raises
        ------
        BudgetError
            If its phase is not open, or has no uses left.
        SensitivityError
            If it takes the parts of rows for those of another loss.
        """
        if type(query) not in self._uses:
            raise BudgetError(f"no mechanism for {type(query).__name__} is in the ledger: open one")
        return self._answer(self._uses[type(query)], query, self._exact.open().answer)

    def _follow(self, instruction: Any) -> None:
        self._exact.open().follow(instruction)

    def _end(self, finished: bool) -> None:
        self._exact.open().close(finished)
