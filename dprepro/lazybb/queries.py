"""What LazyBB asks of a round: choices by smooth weights, and by how much a row moves each."""

from __future__ import annotations

from dataclasses import dataclass

from dprepro.privacy.query import Query, SensitivityError
from dprepro.privacy.robust import (
    error_sensitivity,
    gain_sensitivity,
    leaf_sensitivity,
    smooth_distance,
    unit_of,
)


@dataclass(frozen=True)
class SmoothQuery(Query):
    """A choice by the weights of one round, of which no row has more than 1 / (kappa n).

    Attributes
    ----------
    density, rows
        kappa and n. The curator projects to this density.
    dropped
        How many of its low bits an exact answer drops: the curator answers in whole numbers of
        `unit`.

    Raises
    ------
    SensitivityError
        On a number of bits below 0, and as `Query`.
    """

    density: float
    rows: int
    dropped: int

    def check(self) -> None:
        """See `Query`."""
        if self.dropped < 0:
            raise SensitivityError(f"an answer can drop 0 bits or more, got {self.dropped!r}")
        super().check()

    @property
    def unit(self) -> float:
        """What the answer counts in; all rows weigh 1 together."""
        return unit_of(self.dropped)

    @property
    def zeta(self) -> float:
        """The distance between the weights of neighbours, 1 / (kappa n) and a little more."""
        return smooth_distance(self.density, self.rows)


@dataclass(frozen=True)
class RuleQuery(SmoothQuery):
    """The 1-Rule of a round, by its weighted error: a position among `errors`."""

    @property
    def enforced(self) -> float:
        """See `robust.error_sensitivity`."""
        return error_sensitivity(self.zeta, self.unit)


@dataclass(frozen=True)
class SplitQuery(SmoothQuery):
    """The next split of a tree, by its gain: leaf times columns plus column."""

    @property
    def enforced(self) -> float:
        """See `robust.gain_sensitivity`."""
        return gain_sensitivity(self.zeta, self.unit)


@dataclass(frozen=True)
class LabelQuery(SmoothQuery):
    """The labels -1 and 1 of all leaves, of which there are so many, by the weights of both."""

    leaves: int

    @property
    def enforced(self) -> float:
        """See `robust.leaf_sensitivity`."""
        return leaf_sensitivity(self.zeta, self.unit, self.leaves)
