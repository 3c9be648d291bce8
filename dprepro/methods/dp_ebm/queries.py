"""What DP-EBM asks of the rows, what it tells the curator to do with them, and what it gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.methods.dp_ebm.losses import Loss
from dprepro.privacy.composition import TwoPhaseNoise
from dprepro.privacy.query import Instruction, NoisyAnswer, Query
from dprepro.privacy.sensitivity import Adjacency, histogram_sensitivity, leaf_sum_sensitivity


@dataclass(frozen=True)
class CellCounts(Query):
    """Rows per cell of a feature's histogram: one use (Algorithm 2, line 7).

    Attributes
    ----------
    feature
        Its number.
    adjacency
        Who counts as a neighbour.
    """

    feature: int
    adjacency: Adjacency

    @property
    def enforced(self) -> float:
        """A row lies in one cell; see `histogram_sensitivity`."""
        return histogram_sensitivity(self.adjacency).stated


@dataclass(frozen=True)
class LeafSums(Query):
    """Learning rate times the sum of residuals of each leaf: one use a step (lines 16 and 17).

    Of an adaptive loss, `charged` and `enforced` are those of residuals up to 1: in each step both,
    and the noise, are multiplied by the largest residual then possible.

    Attributes
    ----------
    adjacency
        Who counts as a neighbour.
    learning_rate
        eta.
    residual_bound
        The largest absolute residual that the curator lets through.
    grid
        Sums of residuals are whole numbers of 2^-grid.
    """

    adjacency: Adjacency
    learning_rate: float
    residual_bound: float
    grid: int

    @classmethod
    def of(cls, loss: Loss, adjacency: Adjacency, learning_rate: float) -> LeafSums:
        """Return the query that charges what the loss says, with its gap if it has one."""
        charged = loss.charged_sensitivity(adjacency) * learning_rate
        return cls(
            charged.stated, 1.0, adjacency, learning_rate, loss.residual_bound, loss.part_bits,
            gap=loss.gap,
        )  # fmt: skip

    @property
    def unit(self) -> float:
        """What a whole number in the noisy answer counts: learning rate times 2^-grid."""
        return math.ldexp(self.learning_rate, -self.grid)

    @property
    def enforced(self) -> float:
        """A row adds its residual to one leaf; see `leaf_sum_sensitivity`."""
        step = leaf_sum_sensitivity(self.adjacency, self.residual_bound)
        return (step * self.learning_rate).stated


@dataclass(frozen=True)
class FitSettings:
    """What is settled before any row is read.

    Attributes
    ----------
    max_bins
        See `histogram`.
    learning_rate
        eta.
    n_steps
        Steps of boosting: epochs times features.
    noise
        Of both phases.
    """

    max_bins: int
    learning_rate: float
    n_steps: int
    noise: TwoPhaseNoise


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of boosting, in order: all, or the next ones; made of what is public alone.

    Attributes
    ----------
    cuts : uint8 (T, C)
        See `random_cuts`.
    max_leaves
        Leaves of a step on a feature with as many bins.
    counts : list of float64 (n_bins,)
        Noisy rows per bin of each feature.
    """

    cuts: np.ndarray
    max_leaves: int
    counts: list[np.ndarray]


@dataclass(frozen=True, eq=False)
class Boosted(NoisyAnswer):
    """The answer to `LeafSums`.

    Attributes
    ----------
    value : float64 (T, max_leaves)
        Noisy leaf sums of every step, whole numbers times `LeafSums.unit`; 0 in places of leaves
        that a step does not have.
    scale
        Standard deviation of the noise in each, before it is multiplied by `noise_factors`.
    noise_factors : float64 (T,)
        1 unless the loss is adaptive.
    shapes : list of float64 (n_bins,)
        The functions that follow from all leaf sums so far and the counts: scores, multiples of
        2^-g with g = `Loss.score_bits`.
    """

    noise_factors: np.ndarray
    shapes: list[np.ndarray]

    @property
    def scales(self) -> np.ndarray:
        """Standard deviation of the noise in the leaf sums of each step, float64 (T,)."""
        return self.scale * self.noise_factors


@dataclass(frozen=True, eq=False)
class MergeCells(Instruction):
    """Let the cells of a feature be these bins: int (cells,), below `MAX_BINS`."""

    tells_bins = True

    feature: int
    bin_of_cell: np.ndarray
