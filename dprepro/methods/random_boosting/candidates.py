"""Candidates for splits, and what a fit asks of its rows, with how much noise: from public numbers.

A feature with candidates c_0 < c_1 < ... has one bin more than candidates: bin i holds the values
in (c_{i-1}, c_i], and the last one what is above all of them, or missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Feature, category_codes, numbers_of
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.composition import gdp_part, gdp_sigma, rho_of
from dprepro.privacy.sensitivity import Sensitivity

UPDATES = ("newton", "gbm", "averaging")

CANDIDATES = ("uniform", "quantile", "adaptive_hessian")

COMPOSITIONS = ("gdp", "rdp")

GRADIENT_BOUND = 1.0
"""|p - y| <= 1, and the label itself where trees average labels."""

CURVATURE_BOUNDS = {"newton": 0.25, "gbm": 1.0, "averaging": 1.0}
"""p (1 - p) <= 1/4; or 1, where rows are counted."""


def as_numbers(column: pd.Series, feature: Feature) -> np.ndarray:
    """Return a column as float64 (n,): numbers, or the codes of categories; NaN where missing."""
    if not isinstance(feature, CategoricalFeature):
        return numbers_of(column)
    codes = category_codes(column, feature.categories)
    return np.where(codes < 0, np.nan, codes)


def bounds_of(feature: Feature) -> tuple[float, float]:
    """Return the least and the largest number that `as_numbers` can return."""
    if isinstance(feature, CategoricalFeature):
        return 0.0, float(max(len(feature.categories) - 1, 0))
    return feature.lower, feature.upper


def ranks(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the place of each value among ascending known ones, float64 (n,); NaN stays NaN.

    A value that is not known gets the place of the next larger one.
    """
    return np.where(np.isnan(values), np.nan, np.searchsorted(known, values).astype(np.float64))


def uniform(lower: float, upper: float, number: int) -> np.ndarray:
    """Return candidates at equal distances from `lower` on, without `upper`: float64, ascending."""
    return np.unique(np.linspace(lower, upper, number, endpoint=False))


def quantiles(values: np.ndarray, number: int) -> np.ndarray:
    """Return the quantiles of orders 0, 1/number, 2/number, ...: float64, ascending, distinct."""
    known = values[~np.isnan(values)]
    orders = np.arange(number) / number
    return np.unique(np.quantile(known, orders)) if known.size else np.zeros(1)


def bins(values: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the bin of each value, intp (n,)."""
    return np.searchsorted(candidates, values, side="left")


def refined(
    candidates: np.ndarray, curvature: np.ndarray, wanted: float, number: int
) -> np.ndarray:
    """Return candidates whose bins hold more nearly `wanted` each, float64, ascending.

    Bins are merged from below until they hold more than `wanted`; where fewer than `number`
    candidates are left, the gaps between them are cut into equal parts.

    Parameters
    ----------
    candidates
        Ascending, one or more.
    curvature
        What each bin holds, with noise, float64 (candidates + 1,); below 0 counts as 0.
    wanted
        The mean over the features of what all bins hold, over `number`.
    """
    kept, held, last = list[float](), 0.0, len(candidates) - 1
    for place, inside in enumerate(np.maximum(curvature[:last], 0.0)):
        held += inside
        if held > wanted:
            kept.append(candidates[place])
            held = 0.0
            if len(candidates) < number and len(kept) < number:
                kept.append((candidates[place] + candidates[place + 1]) / 2)
    kept.append(candidates[last])
    ends = np.unique(kept)
    parts = math.ceil(number / len(ends))
    if len(ends) >= number or parts < 2:
        return ends
    return np.unique(
        np.concatenate([ends, *(_parts(low, high, parts) for low, high in pairwise(ends))])
    )


def _parts(low: float, high: float, parts: int) -> np.ndarray:
    return np.linspace(low, high, parts, endpoint=False)


def mean_total(histograms: Sequence[np.ndarray]) -> float:
    """Return the mean of what histograms hold in all, noise below 0 included."""
    return float(np.mean([histogram.sum() for histogram in histograms]))


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
