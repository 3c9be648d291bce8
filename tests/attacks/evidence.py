"""What the answers of an attack prove."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scipy import stats

CONFIDENCE = 0.999
"""Of each bound on a rate, to one side."""


@dataclass(frozen=True)
class Claims:
    """How often an attack claimed something of tables for which it was true, and was false.

    Attributes
    ----------
    right, wrong
        Claims that were true, and that were false.
    runs
        Models of either kind.
    """

    right: int
    wrong: int
    runs: int

    @classmethod
    def of(cls, claim: Callable[..., bool], true: Iterable, false: Iterable) -> Claims:
        """Return how often `claim` was made of releases from both kinds of tables."""
        made = [[claim(release) for release in releases] for releases in (true, false)]
        assert len(made[0]) == len(made[1])
        return cls(sum(made[0]), sum(made[1]), len(made[0]))

    @property
    def epsilon(self) -> float:
        """The largest epsilon that the claims rule out where delta is 0; 0 if none."""
        if not self.right:
            return 0.0
        return max(0.0, math.log(self._at_least(self.right) / self._at_most(self.wrong)))

    def delta(self, epsilon: float) -> float:
        """Return the largest delta that the claims rule out at an epsilon; 0 if none."""
        excess = self._at_least(self.right) - math.exp(epsilon) * self._at_most(self.wrong)
        return max(0.0, excess)

    @property
    def advantage(self) -> float:
        """The rate of claims where they are true less that where they are false; 0 is chance."""
        return (self.right - self.wrong) / self.runs

    @property
    def error(self) -> float:
        """The standard error of `advantage`."""
        rates = self.right / self.runs, self.wrong / self.runs
        return math.sqrt(sum(rate * (1 - rate) for rate in rates) / self.runs)

    def _at_least(self, found: int) -> float:
        return float(stats.beta.ppf(1 - CONFIDENCE, found, self.runs - found + 1)) if found else 0.0

    def _at_most(self, found: int) -> float:
        if found == self.runs:
            return 1.0
        return float(stats.beta.ppf(CONFIDENCE, found + 1, self.runs - found))
