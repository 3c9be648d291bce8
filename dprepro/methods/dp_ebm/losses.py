"""What DP-EBM and EBM minimise: log loss for two labels, squared error for regression.

A loss owns what differs between the two: how targets become what the kernels take, where scores
start, what a residual is, how large it can be, what noise is charged for it, and how it is worded.

What a row adds to the sums of a step is a whole number, of its own state and of what is public. Its
state is one int32 in units of 2^-g, g = `SCORE_BITS` for labels:

* labels: the margin m, which is the score F of a row of label 1 and -F of one of label 0. The
  residual y - sigmoid(F) is 1 / (1 + exp(m)), with the sign of the label;
* targets: the residual y - F itself.

A step adds whole numbers to the state. So it is exact, whatever the order of steps and rows. What
the row adds to sums is a function of the state alone, in units of 2^-(g - `COARSER`), with no more
than float32 operations that IEEE 754 defines.

So sums are exact: a row more or less moves them by its own part, to the last bit. Two rules keep it
so:

* What is computed for a row must not depend on where the row stands. Under "fastmath" LLVM divides
  by reciprocal estimates in the vectorised body of a loop, but not in what is left over at its end.
  Loops that compute a row's part are compiled without; they vectorise as they are, and give the
  same bits with SSE2, AVX2 and AVX-512.
* int32 sums are emptied before they can overflow: `BLOCK_ROWS` parts of at most `LARGEST`. The
  int64 sums over blocks are exact up to 8 * 10^12 rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from dprepro.data.domain import Domain
from dprepro.privacy.sensitivity import Adjacency, Sensitivity, leaf_sum_sensitivity
from dprepro.runtime.kernels import kernel

LARGEST = 2**20
"""1 in units of sums: the parts of rows are whole numbers from -LARGEST to LARGEST."""

BLOCK_ROWS = 1984
"""Rows a block. As many parts of size `LARGEST` stay below 2^31; a multiple of 64, which is what
loops are unrolled to."""

SCORE_BITS = 24
"""Scores, and the functions in a model, are multiples of 2^-24: as fine as float32 is near 1, so
that steps of a learning rate of 10^-4 are not rounded away."""

COARSER = 4
"""By how many bits the unit of sums is coarser than that of scores: 1 is `LARGEST` then."""

LIMIT = 2**30 - 1
"""Scores stay within +-LIMIT, +-64 for labels. Targets do, too, so that int32 holds residuals."""

_PER_UNIT = np.float32(math.log2(math.e) * 2.0**-SCORE_BITS)
_NEAREST = np.float32(1.5 * 2**23)
"""Added to a float32 below 2^22 in size it rounds to whole numbers, which the last bits hold."""

_EXPONENT = np.int32(23)
_SCALE = np.float32(LARGEST)

# 2^r on [-1/2, 1/2] is (r^2 + c + d r) / (r^2 + c - d r): the form of Pade's approximant, with our
# own minimax fit of c and d. The relative error is 4.4e-7: half a unit of a residual, or less.
_CENTRE = np.float32(25.03910667973302)
_SLOPE = np.float32(8.677838838052995)

_HALF = np.int32(1 << (COARSER - 1))
_SHIFT = np.int32(COARSER)

UNBOUNDED_RESIDUALS = (
    "residuals y - F(x) are not bounded by the label range R that scales the noise "
    "(Theorem 6 holds for label DP only)"
)
"""The gap of the paper's regression."""

_CHARGED_BOUND = 1.0
"""Theorem 6: residuals are at most R, which is 1 in the unit of scaled targets."""

_LARGEST_WHOLE_PART = 2**27 - 1
"""Nothing is clipped to it that int32 holds in units of scores, which are 2^4 finer."""

_FARTHEST = 2.0**20
"""Ranges that targets can be away from 0 where they are not centred: 9 binary digits are left."""

_TARGET_BITS = 30
"""Targets whose bounds are public lie within 2^30 units, as scores do."""


@kernel("(int32, int32)", inline="always", error_model="numpy")
def label_part(margin, bound):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(margin)) in units of 1 / `LARGEST`, at least 0 and at most `bound`.

    The margin is within +-`LIMIT`, where no exponent of float32 overflows. It is off by less than 2
    units, and never above `LARGEST`: a divisor is at least as large as the dividend without its
    factor `LARGEST`.
    """
    t = np.float32(margin) * _PER_UNIT
    shifted = t + _NEAREST
    r = t - (shifted - _NEAREST)  # t is a whole number plus r
    even, odd = r * r + _CENTRE, _SLOPE * r
    above, below = even + odd, even - odd  # 2^r is above / below
    exponent = np.int32(np.float32(shifted).view(np.int32) << _EXPONENT)
    raised = np.int32(np.float32(above).view(np.int32) + exponent).view(np.float32)
    return min(np.int32(_SCALE * below / (below + raised)), bound)


@kernel("(int32, int32)", inline="always")
def target_part(residual, bound):  # type: ignore[no-untyped-def]
    """Return the residual, rounded to units of sums, within +-`bound` of these units.

    It is clipped before it is rounded: `bound` << `COARSER` rounds to `bound`.
    """
    most = np.int32(bound << _SHIFT)
    return np.int32(np.int32(min(max(residual, -most), most) + _HALF) >> _SHIFT)


@kernel("(int64,)")
def largest_label_part(reach):  # type: ignore[no-untyped-def]
    """Return a bound of the parts of all rows whose scores are at most `reach` in size.

    The part of margin -`reach`, and one more: float32 does not fall where exp rises, to the last
    bit. Parts are clipped to it, so that it holds whatever they are.
    """
    return min(np.int64(label_part(np.int32(-reach), np.int32(LARGEST))) + 1, LARGEST)


@dataclass(frozen=True)
class Loss(ABC):
    """A loss, as the kernels and the curator are told of it.

    Attributes
    ----------
    start
        The score from which all rows start.
    offset, unit
        A prediction is ``offset + unit * score``.
    clip
        The kernel clips residuals to [-clip, clip]; inf leaves them as they are.
    adaptive
        Whether the noise of a step is multiplied by the largest residual that the functions
        released so far allow to any row.
    is_logistic
        Which form of the kernels computes the residuals.
    """

    start: float = 0.0
    offset: float = 0.0
    unit: float = 1.0
    clip: float = math.inf
    adaptive: bool = False

    is_logistic: ClassVar[bool]

    @property
    def score_bits(self) -> int:
        """The g of DP-EBM's grid: scores and functions are multiples of 2^-g; see above."""
        return SCORE_BITS

    @property
    def part_bits(self) -> int:
        """The same for what a row adds to sums."""
        return self.score_bits - COARSER

    @property
    def whole_start(self) -> int:
        """The start as a multiple of 2^-g."""
        return round(math.ldexp(self.start, self.score_bits))

    @property
    def whole_bound(self) -> int:
        """The residual bound in units of the sums, rounded down; the kernel enforces it."""
        if math.isinf(self.residual_bound):
            return _LARGEST_WHOLE_PART
        return math.floor(math.ldexp(self.residual_bound, self.part_bits))

    @property
    def released(self) -> str:
        """What a step releases, for the ledger."""
        return (
            "in each step, for each of a few groups of categories or intervals of one feature: the "
            "sum over its rows of the target less what is predicted so far, in units of the range "
            "of the target, times the learning rate"
        ) + (
            ". Noise and sensitivity are multiplied by the largest difference that any row can "
            "then have" * self.adaptive
        )

    @property
    @abstractmethod
    def residual_bound(self) -> float:
        """The largest absolute residual that the kernel lets through; inf where nothing bounds it.

        Noise is charged for it; where it is larger, for the paper's `_CHARGED_BOUND`, with a gap.
        """

    @property
    def gap(self) -> str | None:
        """The text of the gap, where noise is charged for less than the kernel lets through."""
        return UNBOUNDED_RESIDUALS if self.residual_bound > _CHARGED_BOUND else None

    def charged_sensitivity(self, adjacency: Adjacency) -> Sensitivity:
        """Return the L2 sensitivity of a step's sums of residuals for which noise is charged."""
        return leaf_sum_sensitivity(adjacency, min(self.residual_bound, _CHARGED_BOUND))

    @abstractmethod
    def scaled(self, targets: np.ndarray) -> np.ndarray:
        """Return targets (n,) as the kernels of EBM take them, float32."""

    @abstractmethod
    def whole(self, targets: np.ndarray) -> np.ndarray:
        """Return targets (n,) as the kernel of DP-EBM takes them, int32."""

    def strata(self, targets: np.ndarray) -> np.ndarray | None:
        """Return the class of each row, int64 (n,), for held-out rows with a share of each."""
        return None

    @abstractmethod
    def residuals(self, targets: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return scaled targets minus predictions, float64 (n,), clipped."""

    def row_order(self, targets: np.ndarray) -> np.ndarray:
        """Return in which order the kernel takes the rows fastest, int64 (n,)."""
        return np.arange(targets.size)


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """Log loss: the residual is y - sigmoid(F), y being 0 or 1; scores are log odds."""

    is_logistic = True

    @property
    def residual_bound(self) -> float:
        """Return 1: labels and probabilities lie in [0, 1]."""
        return 1.0

    def scaled(self, targets: np.ndarray) -> np.ndarray:
        """Return labels, clipped to [0, 1]: `residual_bound` follows from that."""
        return np.clip(targets, 0, 1).astype(np.float32, copy=False)

    def whole(self, targets: np.ndarray) -> np.ndarray:
        """Return labels: 1 where they are above 0, else 0."""
        return (targets > 0).astype(np.int32)

    def strata(self, targets: np.ndarray) -> np.ndarray:
        """Return the labels."""
        return targets.astype(np.int64)

    def residuals(self, targets: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return y - sigmoid(F)."""
        return np.asarray(targets - expit(scores))

    def row_order(self, targets: np.ndarray) -> np.ndarray:
        """Return negative labels first: a block of the kernel holds rows of one label."""
        return np.argsort(targets > 0, kind="stable")


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """Squared error: the residual is (y - offset) / unit - F, clipped.

    Attributes
    ----------
    bounds
        Targets are clipped to them.
    """

    bounds: tuple[float, float] = (-math.inf, math.inf)

    is_logistic = False

    @classmethod
    def centred(cls, targets: np.ndarray) -> SquaredLoss:
        """Return the one of EBM: residuals in units of the targets' standard deviation.

        Targets (n,) are multiplied by a power of two before they are squared. So targets times a
        power of two have the same residuals, to the bit.
        """
        power = math.frexp(float(np.abs(targets).max()))[1]
        near_one = np.ldexp(targets, -power)
        mean = float(near_one.mean())
        unit = float(near_one.std())
        return cls(offset=math.ldexp(mean, power), unit=math.ldexp(unit, power) or 1.0)

    @classmethod
    def published(cls, domain: Domain) -> SquaredLoss:
        """Return the paper's: residuals in units of the target's range R, not centred or clipped.

        Raises
        ------
        ValueError
            If the range of the domain's target is empty or not finite, or if the targets are far
            from 0: they are not centred, so their digits would be lost.
        """
        lower, upper = _target_bounds(domain)
        if max(abs(lower), abs(upper)) > _FARTHEST * (upper - lower):
            raise ValueError(
                f"the domain's target bounds are more than {_FARTHEST:,.0f} times as far from 0 as "
                'from each other, and sensitivity="published" does not centre targets: choose '
                'sensitivity="sound", or subtract a public number from y and the bounds'
            )
        return cls(unit=upper - lower, bounds=(lower, upper))

    @classmethod
    def sound(cls, domain: Domain) -> SquaredLoss:
        """Return the one that starts from the middle of the range and clips residuals to +-R/2.

        Raises
        ------
        ValueError
            As `published`.
        """
        lower, upper = _target_bounds(domain)
        return cls(offset=(lower + upper) / 2, unit=upper - lower, clip=0.5, bounds=(lower, upper))

    @property
    def residual_bound(self) -> float:
        """Return where residuals are clipped."""
        return self.clip

    @property
    def score_bits(self) -> int:
        """As many as leave the bounds within `LIMIT`, and no more than for labels."""
        lower, upper = ((bound - self.offset) / self.unit for bound in self.bounds)
        largest = max(abs(lower), abs(upper))
        if math.isinf(largest):
            return SCORE_BITS
        return min(SCORE_BITS, _TARGET_BITS - math.frexp(largest)[1])

    def scaled(self, targets: np.ndarray) -> np.ndarray:
        """Return (y - offset) / unit, y clipped to the bounds."""
        return self._in_units(targets).astype(np.float32)

    def whole(self, targets: np.ndarray) -> np.ndarray:
        """Return the nearest multiples of 2^-g to (y - offset) / unit, y clipped to the bounds."""
        nearest = np.rint(np.ldexp(self._in_units(targets), self.score_bits))
        return np.clip(nearest, -LIMIT, LIMIT).astype(np.int32)

    def _in_units(self, targets: np.ndarray) -> np.ndarray:
        clipped = np.clip(targets.astype(np.float64), *self.bounds)
        return np.asarray((clipped - self.offset) / self.unit)

    def residuals(self, targets: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return y - F within [-clip, clip]."""
        return np.clip(targets - scores, -self.clip, self.clip)


def _target_bounds(domain: Domain) -> tuple[float, float]:
    lower, upper = (float(bound) for bound in domain.target)
    if not upper - lower > 0:
        raise ValueError(
            "the target's range is empty or not finite, so there is nothing to learn: give "
            "public target bounds, or more than n_samples=1 distinct value"
        )
    return lower, upper
