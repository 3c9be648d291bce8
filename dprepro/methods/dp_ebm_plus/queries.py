"""What DP-EBM+ asks of the rows, and what it tells the curator to do with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.additive.bins import Pair
from dprepro.methods.dp_ebm_plus.kernel import UNIT
from dprepro.privacy.query import LAST_BITS, Instruction, Query, SensitivityError
from dprepro.privacy.sensitivity import Sensitivity

INTERCEPT = -1
"""Stands for the intercept where the number of a feature is asked for."""

CENTRE_UNIT = 2.0**-8
"""What `Code.centre` and `Code.mix` count in: sums are exact up to 2^27 rows then."""

_LARGEST_MIX = 4.0
"""What numbers of a `Code.mix` and its centre may be at most, to either side of 0."""


FACTORS = (1, 1, 4)
"""What `Totals` multiplies the number of rows, the targets and their squares with. Squares are at
most 1/4, so that the same noise would be large for them."""


# --- queries ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Totals(Query):
    """The number of rows, and the sum of the centred targets, for regression of their squares, too.

    A row adds (1, t), or (1, t, 4 t^2), with |t| <= 1/2; see `FACTORS`.
    """

    powers: int

    @classmethod
    def up_to(cls, powers: int) -> Totals:
        """Return the query for all of its mechanism's mu^2, charged for what is enforced."""
        return cls(totals_sensitivity(powers).stated, 1.0, powers)

    @property
    def enforced(self) -> float:
        """See the class."""
        return totals_sensitivity(self.powers).stated


def totals_sensitivity(powers: int, weighted: bool = False) -> Sensitivity:
    """Return the L2 sensitivity of `Totals`, under add/remove-one and under replace-one.

    `weighted` says whether rows have weights: then an exchange can also be that of a row for one
    that counts next to nothing (`weighing`), which moves more.

    A row that comes adds at most (1, 1/2), or (1, 1/2, 1) with squares. An exchange of t for s
    leaves the number of rows, and moves the others by (t - s, 4 (t^2 - s^2)).

    - Without squares: |t - s| <= 1.
    - With squares, let a = |t - s| and b = |t + s|. Then a + b = 2 max(|t|, |s|) <= 1, so the
      squared norm, a^2 (1 + 16 b^2), is at most f(a) = a^2 (1 + 16 (1 - a)^2), 0 <= a <= 1. Its
      derivative, 2 a (17 - 48 a + 32 a^2), is 0 at a = (6 -+ sqrt(2)) / 8. So f is largest at
      a = (6 - sqrt(2)) / 8, where s = -1/2 and t = .0732, or at a = 1: 1.2862 and 1, with roots
      1.1341 and 1.
      Each square is rounded towards zero to a whole number of `kernel.UNIT`, which moves four times
      a difference of two by less than 4 units. It makes no part of a row longer.
    """
    longest = _longest_totals(powers)
    if powers < 2:
        return Sensitivity(longest, longest if weighted else 1.0)
    a = (6 - math.sqrt(2)) / 8
    exchange = a * math.hypot(1, FACTORS[2] * (1 - a)) + FACTORS[2] * UNIT
    return Sensitivity(longest, max(longest, exchange) if weighted else exchange)


def _longest_totals(powers: int) -> float:
    return math.sqrt(sum((factor * 0.5**k) ** 2 for k, factor in enumerate(FACTORS[: powers + 1])))


@dataclass(frozen=True)
class Magnitudes(Query):
    """Rows by |residual|, in `MAGNITUDES` half octaves."""

    @property
    def enforced(self) -> float:
        """A row adds 1 to one count."""
        return 1.0


@dataclass(frozen=True)
class Residuals(Query):
    """Sums of residuals, clipped to +-`bound`, per bin of a feature (or `INTERCEPT`: of all rows).

    For squared error; fits ask about the intercept alone. (B,).
    """

    feature: int
    bound: float

    @property
    def enforced(self) -> float:
        """A row's residual is clipped and goes into one bin."""
        return self.bound


@dataclass(frozen=True)
class Code:
    """What a row's bin in a feature (or `INTERCEPT`) becomes: a vector of C numbers.

    A row in bin b has w_c (1[b = c] - p_c) in place c; with a mix M, w_c (M_cb - p_c). Without a
    mix C is the number of bins, B.

    Attributes
    ----------
    feature
        Its number; or a pair, whose cells are the bins.
    weights : float64 (C,)
        w: how precisely each bin, or each row of the mix, is asked about. Positive.
    centre : int64 (C,)
        p, in `CENTRE_UNIT`: about the share of rows in each bin, so that a row in a bin that nearly
        all rows share has a short vector. From 0 to 1; with a mix, about the mean of each of its
        rows over the table, from -4 to 4.
    mix : int64 (C, B) or None
        M, in `CENTRE_UNIT`: numbers that neighbouring bins may have alike, so that one number tells
        of all of them. From -4 to 4.
    """

    feature: int | Pair
    weights: np.ndarray
    centre: np.ndarray
    mix: np.ndarray | None = None

    def __post_init__(self) -> None:
        """See `check`."""
        self.check()

    def check(self) -> None:
        """Raise SensitivityError on what no bound would hold for."""
        # Squares of whole numbers, or of float32, would be wrong.
        fine = (
            self.weights.dtype == np.float64
            and self.weights.ndim == 1
            and self.weights.size > 0
            and np.isfinite(self.weights).all()
            and (self.weights > 0).all()
            and self.weights.shape == self.centre.shape
        )
        if self.mix is None:
            fine = fine and _is_within(self.centre, 0.0, 1.0)
        else:
            fine = (
                fine
                and self.mix.ndim == 2
                and self.mix.shape[0] == self.weights.size
                and _is_within(self.mix, -_LARGEST_MIX, _LARGEST_MIX)
                and _is_within(self.centre, -_LARGEST_MIX, _LARGEST_MIX)
            )
        if not fine:
            raise SensitivityError(
                "a code needs a positive, finite weight for each bin, and a centre from 0 to 1 in "
                f"whole numbers of {CENTRE_UNIT:g}; with a mix, a weight for each of its rows, and "
                f"numbers from -4 to 4; got {self.weights}, {self.centre} and {self.mix}"
            )

    @property
    def n_bins(self) -> int:
        """B."""
        return int(self.centre.size if self.mix is None else self.mix.shape[1])

    def squared_norms(self) -> np.ndarray:
        """Return the squared L2 norm of a row's vector, by its bin: float64 (B,)."""
        squares, centre = self.weights**2, self.centre * CENTRE_UNIT
        if self.mix is not None:
            # No matrix product: its last digit is not the same on every machine.
            vectors = self.mix * CENTRE_UNIT - centre[:, None]
            return np.asarray((squares[:, None] * vectors**2).sum(axis=0))
        return np.asarray(squares * (1 - 2 * centre) + (squares * centre**2).sum())

    def numbers(self, sums: np.ndarray) -> np.ndarray:
        """Return what rows with these sums in the bins, int64 (B,), come to: int64 (C,), exact.

        Whole numbers of w_c `CENTRE_UNIT` times the unit of the sums.
        """
        mixed = round(1 / CENTRE_UNIT) * sums if self.mix is None else self.mix @ sums
        return np.asarray(mixed - self.centre * sums.sum())


def _is_within(numbers: np.ndarray, least: float, most: float) -> bool:
    """Return whether whole numbers of `CENTRE_UNIT` lie in a range; not if there are none."""
    return bool(
        numbers.dtype == np.int64
        and numbers.size > 0
        and numbers.min() * CENTRE_UNIT >= least
        and numbers.max() * CENTRE_UNIT <= most
    )


def _longest(code: Code) -> float:
    """Return the largest norm of a code, rounded up by more than a sum of squares can err."""
    return math.sqrt(float(code.squared_norms().max())) * (1 + LAST_BITS)


@dataclass(frozen=True)
class CodedHistogram(Query):
    """The sum over all rows of the code of a feature, whose bins are its cells. (C,)."""

    code: Code

    @classmethod
    def of(cls, code: Code) -> CodedHistogram:
        """Return the query that charges what a row can add."""
        return cls(_longest(code), 1.0, code)

    def check(self) -> None:
        """Raise SensitivityError as `Query.check` and `Code.check`: arrays can be written to."""
        self.code.check()
        super().check()

    @property
    def enforced(self) -> float:
        """The largest norm of a code: a row lies in one cell."""
        return _longest(self.code)


@dataclass(frozen=True)
class Coded(Query):
    """Sums over all rows of residual times code, for one feature, or for several at once."""

    codes: tuple[Code, ...]
    bound: float

    def check(self) -> None:
        """Raise SensitivityError as `Query.check` and `Code.check`, or if a feature has two codes.

        A curator checks again before it releases: arrays can be written to.
        """
        super().check()
        for code in self.codes:
            code.check()
        features = [code.feature for code in self.codes]
        if len(set(features)) < len(features):
            raise SensitivityError(f"a feature has two codes: {features}. Give each one")

    @property
    def enforced(self) -> float:
        """|r| |u| is at most the bound, by the clipping of r."""
        return self.bound


@dataclass(frozen=True)
class CodedResiduals(Coded):
    """Residuals times codes, where a row's residual is a number.

    For log loss the intercept is one of the features, for squared error the middle is
    (as `INTERCEPT`). Let u be a row's codes, one after the other. Its residual r is clipped to
    +-`bound` / |u|, and it adds r u. (The weights of all codes,).
    """


@dataclass(frozen=True)
class ClassCounts(Query):
    """Rows of each of several classes, (S,); their sum is the number of rows."""

    @property
    def enforced(self) -> float:
        """A row adds 1 to one count."""
        return 1.0


@dataclass(frozen=True)
class ClassResiduals(Coded):
    """Residuals of S classes times codes: one query about all features, and all classes.

    The residual of a row is a vector r, (S,): 1 for its class, else 0, less the probabilities of
    the classes. The row has one code u for all classes, and adds the outer product of both: u_c r_s
    to the number of place c and class s. (The weights of all codes, S).

    The sensitivity is the bound, as of `CodedResiduals`. The squared norm of a row's part is the
    sum over c and s of u_c^2 r_s^2, which is |u|^2 |r|^2. A residual vector that is longer than
    `bound` / |u| is shortened to that, so the part is no longer than `bound`; a row more or less
    moves the answer by its part. Norms of codes are rounded up, and lengths of residuals down: see
    `sums.limited_vectors`.
    """


# --- instructions -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Merge(Instruction):
    """Let the cells of a feature be these bins: int (C,), from 0 to `n_bins` - 1."""

    tells_bins = True

    feature: int
    bin_of_cell: np.ndarray
    n_bins: int


@dataclass(frozen=True)
class Start(Instruction):
    """Let this be every row's score, in whole numbers of `kernel.UNIT`; of S classes int32 (S,)."""

    score: int | np.ndarray


@dataclass(frozen=True)
class Move(Instruction):
    """Add a function's change to the scores of the rows in its bins, or in the cells of a pair.

    `change` is int32 (B,), in whole numbers of `kernel.UNIT`; of S classes (B, S).
    """

    feature: int | Pair
    change: np.ndarray


@dataclass(frozen=True)
class Moves(Instruction):
    """Add the changes of several functions, each of another feature or the intercept; see `Move`.

    Raises
    ------
    ValueError
        If two are of one feature.
    """

    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        """See the class."""
        features = [move.feature for move in self.moves]
        if len(set(features)) < len(features):
            raise ValueError(f"two moves are of one feature: {features}. Tell them one by one")
