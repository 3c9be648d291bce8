"""Functions of two features: which are asked about, which are kept, and how they are inferred.

A first part of the epochs asks about features alone. A second part asks about candidates: the pairs
of the features whose functions are largest so far. The rest asks about features, and about the
candidates that were kept, as the answers are likelier by a stated factor if there is a function
than if there is none. If rows are too few for candidates of some cells, all epochs are about
features.

A pair is one more feature, whose bins are its cells: groups of neighbouring bins on either side. It
is asked about in the same query, with a code of its own. So the guarantee is that of the epochs.

What depends on one side alone is for the functions of single features. A cell is expected to have
the targets that both of these and the pair's function lead to.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dprepro.additive.bins import (
    MOST_GROUPS,
    Pair,
    PairTerm,
    even_groups,
    pair_name,
    without_sides,
)
from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm_plus.booster import Booster, Effect, Question
from dprepro.methods.dp_ebm_plus.prior import (
    SIZES,
    Posterior,
    band_of_inverse,
    factor,
    independent,
    solve,
)
from dprepro.methods.dp_ebm_plus.strategy import Strategy
from dprepro.runtime.kernels import kernel

ALONE, ASKING = 0.25, 0.25
"""Parts of the epochs in which features are learned alone, and in which candidates are asked."""

LEAST_EPOCHS = 3
"""One epoch of each kind, at least."""

CANDIDATE_FEATURES = 10
"""So many features at most, of the largest functions: 45 candidates."""

MARGIN = 2.0
"""A pair is kept if the logarithm of how many times likelier its answers are exceeds this."""

CELLS = 0.6
"""So many cells times the noise in one, as an epoch's is measured by `Booster.noise_in_a_bin`."""

LEAST_CELLS = 6.0
"""Pairs are asked about if a candidate is to have as many cells at least."""

_KINDS = np.array([[1.0, 0.0], [0.3, 1.0], [0.03, 1.0]])
"""Pulls to zero and ties between neighbours of the priors: f of size s has the log density, up to a
constant, -(pull sum f^2 + tie sum (f - its neighbour)^2) / (2 s^2)."""

_SWEEPS = 25


class PairEffect(Effect):
    """The function of a pair while it is learned; `feature` is the pair, bins are its cells.

    Rows of a cell are those of its groups, as if both features were independent.
    """

    def __init__(self, first: Effect, second: Effect, groups: list[np.ndarray]) -> None:
        self.pair = Pair(first.feature, second.feature, *groups)
        self._singles = (first, second)
        self._sides = [
            np.bincount(group, each.counts)
            for group, each in zip(groups, self._singles, strict=True)
        ]
        counts = np.outer(self._sides[0], self._sides[1]).ravel() / first.counts.sum()
        super().__init__(self.pair, counts)

    def known(self) -> tuple[np.ndarray, float]:
        """Return the sum of the three functions, float64 (cells,), and the sum of their variances.

        A group has the mean of its bins.
        """
        groups = (self.pair.first_groups, self.pair.second_groups)
        means = [
            np.bincount(group, each.counts * each.values) / side
            for group, each, side in zip(groups, self._singles, self._sides, strict=True)
        ]
        together = np.add.outer(means[0], means[1]).ravel() + self.values
        return together, self.spread + sum(each.spread for each in self._singles)

    def centred(self, values: np.ndarray) -> np.ndarray:
        """Return values, float64 (cells,), less what depends on one side alone."""
        return without_sides(values.reshape(self.pair.shape), *self._sides).ravel()

    def term(self, width: float) -> PairTerm:
        """Return the function in the unit of the model: all but counts times `width`."""
        shape = self.pair.shape
        values, band = width * self.values, width * self.band
        return PairTerm(
            self.pair, values.reshape(shape), self.counts.reshape(shape), band.reshape(shape)
        )


class OfPair(Question):
    """How a pair is asked about: each cell by itself. Groups in order may be alike.

    Parameters
    ----------
    strategy
        See `Question`.
    shape, ordered
        Groups on either side, and whether they are in order.

    Attributes
    ----------
    evidence
        How many times likelier the answers are if there is a function than if there is none: the
        logarithm, at the last `posterior`.
    """

    def __init__(
        self, strategy: Strategy, shape: tuple[int, int], ordered: tuple[bool, bool]
    ) -> None:
        super().__init__(strategy)
        self._shape, self._ordered, self.evidence = shape, ordered, 0.0

    def posterior(
        self, t: np.ndarray, own: np.ndarray, shared: np.ndarray, h: np.ndarray, unit: float
    ) -> Posterior:
        """See `Question.posterior`."""
        noise = own + (shared**2).sum(axis=0)
        sums, masses, variances = (each.reshape(self._shape) for each in (t, h, noise))
        found = smooth_bivariate(sums, masses, variances, SIZES * unit, self._ordered)
        self.evidence = found.evidence
        variance = found.variance.ravel()
        return Posterior(found.mean.ravel(), variance, variance * h / noise)


class Pairs:
    """Which pairs a fit asks about, and which it keeps.

    Parameters
    ----------
    booster
        It asks about all features at first.
    domain
        It says of which features bins are in order.
    most
        So many pairs are kept at most; 0 to ask about none.
    n_epochs
        Of the fit.

    Attributes
    ----------
    kept
        The functions of the pairs that were kept, the surest first.
    """

    def __init__(self, booster: Booster, domain: Domain, most: int, n_epochs: int) -> None:
        self._booster, self._domain, self._most = booster, domain, most
        self._features = booster.asked
        asking = max(1, round(ASKING * n_epochs))
        self._first = max(1, min(round(ALONE * n_epochs), n_epochs - asking - 1))
        self._last = self._first + asking
        self._asked: list[tuple[PairEffect, OfPair]] = []
        self.kept: list[PairEffect] = []

    def choose(self, number: int) -> None:
        """Let the booster ask about what epoch `number` is to ask about."""
        booster = self._booster
        if self._most and number == self._first:
            self._asked = self._candidates()
            if self._asked:
                # Nothing moves: no answer is better than another one.
                booster.weights[number : self._last] = booster.weights[number : self._last].mean()
                booster.ask_about(self._asked, moves=False)
        elif number == self._last and self._asked:
            booster.infer_all()
            sure = [each for each in self._asked if each[1].evidence > MARGIN]
            best = sorted(sure, key=lambda each: -each[1].evidence)[: self._most]
            self.kept = [effect for effect, _ in best]
            booster.ask_about([*self._features, *best])

    def _candidates(self) -> list[tuple[PairEffect, OfPair]]:
        """Return pairs with functions of zeros, and how they are asked; none if rows are few."""
        booster = self._booster
        largest = sorted(booster.effects, key=lambda each: -each.spread)[:CANDIDATE_FEATURES]
        couples = list(combinations(sorted(largest, key=lambda each: each.feature), 2))
        noise = booster.noise_in_a_bin(len(couples)) / math.sqrt(self._last - self._first)
        cells = CELLS / noise
        if not couples or cells < LEAST_CELLS:
            return []
        return [self._candidate(first, second, noise, cells) for first, second in couples]

    def _candidate(
        self, first: Effect, second: Effect, noise: float, cells: float
    ) -> tuple[PairEffect, OfPair]:
        """Return a pair of about so many cells; `noise` is that of `Strategy.of`."""
        couple = (first, second)
        most = np.minimum([each.counts.size for each in couple], MOST_GROUPS)
        fair = np.clip(math.sqrt(cells), 2, most)
        # Where one side has few bins, the other one may have more groups.
        numbers = np.clip(cells / fair[::-1], 2, most).round().astype(int)
        features = self._domain.features
        ordered = [isinstance(features[each.feature], NumericFeature) for each in couple]
        groups = [
            even_groups(each.counts, _order(each, in_order), int(number))
            for each, in_order, number in zip(couple, ordered, numbers, strict=True)
        ]
        effect = PairEffect(first, second, groups)
        alone = independent(effect.counts.size)
        strategy = Strategy.of(effect.pair, effect.counts, alone, noise, self._booster.part)
        # Each cell by itself: there is nothing to mix.
        strategy = replace(strategy, code=replace(strategy.code, mix=None))
        return effect, OfPair(strategy, effect.pair.shape, (ordered[0], ordered[1]))


def _order(effect: Effect, ordered: bool) -> np.ndarray:
    """Return the bins in their order, or categories by their values."""
    return np.arange(effect.counts.size) if ordered else np.argsort(effect.values, kind="stable")


def check_names(domain: Domain) -> None:
    """Raise ValueError if two functions could have one name; reads the domain alone."""
    names = [feature.name for feature in domain.features]
    functions = names + [pair_name(*couple) for couple in combinations(names, 2)]
    if len(set(functions)) < len(functions):
        twice = next(name for name in functions if functions.count(name) > 1)
        raise ValueError(
            f"with pairs two functions would be called {twice!r}: rename a feature, or fit with "
            "pairs=0"
        )


def most_pairs(features: int, most: int) -> int:
    """Return how many pairs can be kept at most, of so many features, where `most` are asked."""
    return min(most, math.comb(min(features, CANDIDATE_FEATURES), 2))


class BivariatePosterior(NamedTuple):
    """What `smooth_bivariate` finds: mean and variance a posteriori, float64 (G, H), and evidence.

    `evidence` is the logarithm of how many times likelier the sums are under these priors, all
    taken to be equally likely, than if the function were zero everywhere.
    """

    mean: np.ndarray
    variance: np.ndarray
    evidence: float


def smooth_bivariate(
    sums: np.ndarray,
    masses: np.ndarray,
    variances: np.ndarray,
    scales: np.ndarray,
    ordered: tuple[bool, bool],
) -> BivariatePosterior:
    """Return what sums t ~ N(m f, v) say of f.

    What depends on one side alone is taken out first, by weighted least squares: it is for the
    functions of single features to learn, and is no evidence for a pair.

    Parameters
    ----------
    sums, masses, variances : float64 (G, H)
        t, m and v; the last two positive.
    scales : float64 (S,)
        Sizes s that the function may have a priori, positive.
    ordered
        Whether groups next to each other are alike, for both sides.
    """
    weights = masses**2 / variances
    apart = _beside_sides(sums / masses, weights)
    mean, variance, evidence = _fit(apart, weights, scales, np.array(ordered, float), _KINDS)
    return BivariatePosterior(mean, variance, float(evidence))


@kernel("(float64[:, ::1], float64[:, ::1])", error_model="numpy")
def _beside_sides(values, weights):  # type: ignore[no-untyped-def]
    """Return values less the best sum of a function of g and one of h, by weighted squares."""
    rows, columns = values.shape
    rest = values.copy()
    for _ in range(_SWEEPS):
        for g in range(rows):
            total, weight = 0.0, 0.0
            for h in range(columns):
                total += weights[g, h] * rest[g, h]
                weight += weights[g, h]
            for h in range(columns):
                rest[g, h] -= total / weight
        for h in range(columns):
            total, weight = 0.0, 0.0
            for g in range(rows):
                total += weights[g, h] * rest[g, h]
                weight += weights[g, h]
            for g in range(rows):
                rest[g, h] -= total / weight
    return rest


@kernel(
    "(float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[:, ::1])",
    error_model="numpy",
)
def _fit(z, weights, scales, ordered, kinds):  # type: ignore[no-untyped-def]
    """Do what `smooth_bivariate` says, given z ~ N(f, 1 / weights)."""
    rows, columns = z.shape
    size, models = z.size, kinds.shape[0] * scales.size
    means, spreads = np.empty((models, size)), np.empty((models, size))
    evidence = np.empty(models)
    prior = np.zeros((size, columns + 1))
    posterior = np.zeros((size, columns + 1))
    right = np.empty(size)
    k = 0
    for kind in range(kinds.shape[0]):
        pull, tie = kinds[kind, 0], kinds[kind, 1]
        _fill_prior(prior, rows, columns, pull, tie * ordered[0], tie * ordered[1])
        factors = prior.copy()
        of_prior = factor(factors)
        for scale in scales:
            precision = 1 / (scale * scale)
            for i in range(size):
                weight = weights[i // columns, i % columns]
                for j in range(columns + 1):
                    posterior[i, j] = prior[i, j] * precision
                posterior[i, columns] += weight
                right[i] = weight * z[i // columns, i % columns]
            of_posterior = factor(posterior)
            solve(posterior, right, means[k])
            inverse = band_of_inverse(posterior)
            for i in range(size):
                spreads[k, i] = inverse[i, 0]
            fit = 0.0
            for i in range(size):
                fit += right[i] * means[k, i]
            determinants = of_prior + size * math.log(precision) - of_posterior
            evidence[k] = 0.5 * (determinants + fit)
            k += 1
    return _averaged(means, spreads, evidence, rows, columns)


@kernel(error_model="numpy")
def _averaged(means, spreads, evidence, rows, columns):  # type: ignore[no-untyped-def]
    """Return mean and variance of a mixture, (rows, columns), and the log of its mean evidence."""
    largest, total = -math.inf, 0.0
    for value in evidence:
        largest = max(largest, value)
    mean, variance = np.zeros((rows, columns)), np.zeros((rows, columns))
    for k in range(evidence.size):
        total += math.exp(evidence[k] - largest)
    for k in range(evidence.size):
        share = math.exp(evidence[k] - largest) / total
        for i in range(means.shape[1]):
            g, h = i // columns, i % columns
            mean[g, h] += share * means[k, i]
            variance[g, h] += share * (spreads[k, i] + means[k, i] * means[k, i])
    for g in range(rows):
        for h in range(columns):
            variance[g, h] = max(variance[g, h] - mean[g, h] * mean[g, h], 0.0)
    return mean, variance, largest + math.log(total / evidence.size)


@kernel(error_model="numpy")
def _fill_prior(prior, rows, columns, pull, down, across):  # type: ignore[no-untyped-def]
    """Fill in the precision of a field of size 1: ties `down` columns and `across` rows of it."""
    prior[:] = 0.0
    for g in range(rows):
        for h in range(columns):
            i = g * columns + h
            prior[i, columns] += pull
            if g > 0:
                prior[i, 0] -= down
                prior[i, columns] += down
                prior[i - columns, columns] += down
            if h > 0:
                # With one column, (i, i - 1) is what `down` ties already: there is no h > 0 then.
                prior[i, columns - 1] -= across
                prior[i, columns] += across
                prior[i - 1, columns] += across
