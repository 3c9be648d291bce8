"""Boosting where the rows are in many places: each step is a round of questions and answers.

`dprepro.methods.dp_ebm.kernel.boost` does the same in one call, with the same bits, where the rows
are in the memory of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import Rows
from dprepro.methods.dp_ebm.binning import histogram
from dprepro.methods.dp_ebm.kernel import (
    Boosting,
    Outcome,
    add_to_shape,
    cut_into_blocks,
    fused_pass,
    move_states,
    release_sums,
    start_states,
)
from dprepro.methods.dp_ebm.losses import (
    BLOCK_ROWS,
    COARSER,
    LARGEST,
    LIMIT,
    Loss,
    largest_label_part,
)
from dprepro.methods.dp_ebm.queries import CellCounts
from dprepro.privacy.query import Instruction, ScaledInteger
from dprepro.rows.backends import ChunkBackend
from dprepro.rows.cluster import ClusterBackend
from dprepro.rows.partition import Columns, Partition, SortedRows, sort_columns
from dprepro.rows.table import report


@dataclass(frozen=True)
class Sorting:
    """How rows become whole numbers: of public things alone.

    Attributes
    ----------
    domain, loss, max_bins
        They say which cells a value lies in, and what a row's target is.
    """

    domain: Domain
    loss: Loss
    max_bins: int

    def __call__(self, rows: Rows) -> SortedRows:
        """Return the rows' numbers, in the order that the kernel takes fastest.

        Raises
        ------
        ValueError
            On values that the domain rules out.
        """
        targets = self.loss.whole(rows.targets)
        order = self.loss.row_order(targets)
        cells, counts = sort_columns(
            rows.frame, self.domain.features, partial(histogram, max_bins=self.max_bins)
        )
        return SortedRows(targets[order], {k: found[order] for k, found in cells.items()}, counts)


@dataclass(frozen=True)
class StepSums:
    """Asks for the sums of a step: of all parts, and of those above each cut; int64 (C + 1,).

    Attributes
    ----------
    feature
        Its number.
    below : uint8 (C,)
        The cuts less one.
    bound
        What a row's part is clipped to.
    """

    feature: int
    below: np.ndarray
    bound: int


@dataclass(frozen=True)
class Start(Instruction):
    """Let this be the score of all rows, as a multiple of 2^-g."""

    score: int


@dataclass(frozen=True)
class Rise(Instruction):
    """Let scores rise by what a step added to a function (Algorithm 2, lines 24 to 26).

    Attributes
    ----------
    feature, below
        See `StepSums`.
    rises : int32 (C + 1,)
        For all rows, and above each cut.
    """

    feature: int
    below: np.ndarray
    rises: np.ndarray


class EBMPartition(Partition):
    """Rows of DP-EBM, whose scores are kept as the kernel's states.

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
        self._is_logistic = sorting.loss.is_logistic
        self._blocks: np.ndarray | None = None

    def answer(self, question: CellCounts | StepSums) -> ScaledInteger:
        """Return the exact answer: private."""
        if isinstance(question, CellCounts):
            return ScaledInteger(self._counts[question.feature])
        columns, sums = self._columns, np.zeros(question.below.size + 1, np.int64)
        with self._up_to_date(Rise) as rise:
            codes = columns.codes[question.feature]
            update = (
                (codes, question.below, np.zeros(sums.size, np.int32))
                if rise is None
                else (columns.codes[rise.feature], rise.below, rise.rises)
            )
            fused_pass(
                columns.scores, columns.targets, self._in_blocks(), update, codes, question.below,
                self._is_logistic, np.int32(question.bound), _buffers(), sums,
            )  # fmt: skip
        return ScaledInteger(sums)

    def _in_blocks(self) -> np.ndarray:
        if self._blocks is None:
            found = cut_into_blocks(self._columns.targets, self._is_logistic)
            self._blocks = found.copy()  # it looks into an array of one number a row
        return self._blocks

    def _move(self, instruction: Start | Rise) -> None:
        columns = self._columns
        if isinstance(instruction, Start):
            start_states(columns.targets, self._is_logistic, instruction.score, columns.scores)
        else:
            move_states(
                columns.scores, columns.targets, self._in_blocks(),
                columns.codes[instruction.feature], instruction.below, instruction.rises,
                self._is_logistic,
            )  # fmt: skip


def _buffers() -> tuple[np.ndarray, np.ndarray]:
    return np.empty(BLOCK_ROWS, np.int32), np.empty(BLOCK_ROWS, np.int64)


def boost_by_rounds(
    ask: Callable[[StepSums], np.ndarray],
    tell: Callable[[Instruction], None],
    answer_with_noise: Callable[[StepSums, Callable[[], np.ndarray]], np.ndarray],
    given: Boosting,
) -> Outcome:
    """Do what `dprepro.methods.dp_ebm.kernel.boost` does, wherever the rows are.

    Parameters
    ----------
    ask
        Returns the sums of a step over all rows.
    tell
        Lets all rows follow an instruction.
    answer_with_noise
        Takes what a step asks and what computes its noisy leaf sums, int64 (L,). Returns them, or
        those that were released before.
    given
        See `boost`.
    """
    cuts, n_bins, bound = given.cuts, given.n_bins, given.bound
    n_features, n_leaves = len(n_bins), given.normals.shape[1]
    shapes = given.functions.copy()
    noise_factors, leaf_sums = np.ones(len(cuts)), np.zeros(given.normals.shape[:2], np.int64)
    so_far = [shape[:size] for shape, size in zip(shapes, n_bins, strict=True)]
    highest, lowest = (np.array([f(shape) for shape in so_far]) for f in (np.max, np.min))
    below = cuts - np.uint8(1)
    if given.before is None:
        tell(Start(given.start))
    for step in range(len(cuts)):
        k = step % n_features
        top, bottom = given.start + int(highest.sum()), given.start + int(lowest.sum())
        if given.adaptive:
            bound = int(largest_label_part(max(top, -bottom)))
            noise_factors[step] = bound / LARGEST
        leaves = min(n_leaves, int(n_bins[k]))

        asked = StepSums(k, below[step], bound)
        noise = given.normals[step], noise_factors[step] * given.scale, leaves
        leaf_sums[step] = answer_with_noise(asked, partial(_noisy, ask, asked, *noise))
        rises = np.zeros(cuts.shape[1] + 1, np.int32)
        shape = shapes[k, : n_bins[k]]
        add_to_shape(
            shape, cuts[step], leaf_sums[step], given.counts[k, : n_bins[k]], leaves,
            given.rate * (1 << COARSER), int(lowest[k]) - bottom - LIMIT,
            int(highest[k]) - top + LIMIT, rises,
        )  # fmt: skip
        highest[k], lowest[k] = shape.max(), shape.min()
        tell(Rise(k, below[step], rises))
        report("boosting", given.done + step + 1, given.planned)
    return Outcome(shapes, noise_factors, leaf_sums)


def _noisy(
    ask: Callable[[StepSums], np.ndarray],
    asked: StepSums,
    normals: np.ndarray,
    scale: float,
    leaves: int,
) -> np.ndarray:
    found = np.zeros(len(normals), np.int64)
    release_sums(ask(asked), normals, scale, leaves, found)
    return found


@dataclass(frozen=True, eq=False)
class RowsInRounds:
    """Rows that are in many places, for the curator alone: what `ExactRows` does, step by step.

    Attributes
    ----------
    holder
        Where the rows are.
    answer_with_noise
        See `boost_by_rounds`.
    """

    holder: ChunkBackend[EBMPartition] | ClusterBackend
    answer_with_noise: Callable[[StepSums, Callable[[], np.ndarray]], np.ndarray]

    @property
    def n_rows(self) -> int:
        """See `ExactRows`."""
        return self.holder.n_rows

    def answer(self, query: CellCounts) -> ScaledInteger:
        """See `ExactRows`."""
        return self.holder.answer(query)

    def follow(self, instruction: Instruction) -> None:
        """See `ExactRows`."""
        self.holder.follow(instruction)

    def boost(self, given: Boosting) -> Outcome:
        """See `ExactRows`."""
        return boost_by_rounds(
            lambda step: self.holder.answer(step).numbers,
            self.holder.follow,
            self.answer_with_noise,
            given,
        )

    def close(self, finished: bool) -> None:
        """See `ChunkBackend`."""
        self.holder.close(finished)


def drawn_now(_: StepSums, noisy: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the noisy sums of a step where none are kept from one run of a fit to the next."""
    return noisy()
