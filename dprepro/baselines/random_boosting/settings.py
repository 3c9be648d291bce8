"""What a fit asks of its rows, and what noise each answer gets: from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_part, gdp_sigma
from dprepro.privacy.rounds import rho_of
from dprepro.privacy.sensitivity import Sensitivity

UPDATES = ("newton", "gbm", "averaging")
CANDIDATES = ("uniform", "quantile", "adaptive_hessian")
COMPOSITIONS = ("gdp", "rdp")

GRADIENT_BOUND = 1.0
"""|p - y| <= 1, and the label itself where trees average labels."""
CURVATURE_BOUNDS = {"newton": 0.25, "gbm": 1.0, "averaging": 1.0}
"""p (1 - p) <= 1/4; or 1, where rows are counted."""


@dataclass(frozen=True)
class Size:
    """How many answers a fit needs.

    Attributes
    ----------
    trees
        All trees.
    histograms
        Histograms of curvature, for adaptive candidates.
    unpaid
        How many of these the noise is not scaled to.
    update
        A member of `UPDATES`.
    separate
        Whether gradients and curvatures are two answers for each tree, not one.
    """

    trees: int
    histograms: int
    unpaid: int
    update: str
    separate: bool

    @property
    def answers(self) -> int:
        """All answers that the noise is scaled to. All have noise of one multiplier."""
        return self.trees * (2 if self.separate else 1) + self.histograms - self.unpaid

    @property
    def curvature(self) -> Sensitivity:
        """That of sums of curvatures over disjoint bins or leaves."""
        bound = CURVATURE_BOUNDS[self.update]
        return Sensitivity(bound, math.sqrt(2) * bound)

    @property
    def gradient(self) -> Sensitivity:
        """That of sums of gradients: an exchange moves a leaf by up to 2, averaging by up to 1."""
        exchanged = math.sqrt(2) if self.update == "averaging" else 2.0
        return Sensitivity(GRADIENT_BOUND, exchanged * GRADIENT_BOUND)

    @property
    def both(self) -> Sensitivity:
        """That of gradients and curvatures together: no more than that of each, as two axes."""
        parts = self.gradient, self.curvature
        return Sensitivity(
            math.hypot(*(part.stated for part in parts)),
            math.hypot(*(part.replace_one for part in parts)),
        )


def noise_multiplier(answers: int, budget: PrivacyBudget, composition: str) -> float:
    """Return the standard deviation of the noise on each answer, over its sensitivity.

    "gdp" spends the budget exactly. "rdp" is by Renyi DP: k answers are k / (2 sigma^2)-zCDP, which
    is turned into (epsilon, delta) by Proposition 12 of Canonne, Kamath, Steinke 2020.
    """
    if composition == "gdp":
        return gdp_sigma(answers, *budget)
    return math.sqrt(answers / (2 * rho_of(*budget)))


def part_of_budget(budget: PrivacyBudget, uses: int, answers: int) -> PrivacyBudget:
    """Return the budget of so many of all answers, which share it equally."""
    return gdp_part(budget, uses / answers)[1]
