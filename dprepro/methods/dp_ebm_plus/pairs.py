"""Pairs of features in DP-EBM+: which are asked about, which are kept, and how they are learned.

The epochs of `dprepro.methods.dp_ebm_plus.algorithm` are divided in three. In the first ones the
functions of single features are learned as usual. Then some epochs ask about candidates: the pairs
of the features whose functions are largest so far, each with the same share. A pair is kept where
its sums are likelier by a stated factor if it has a function than if it has none. In the last
epochs the functions of features and of the pairs that were kept are asked and learned together. If
no pair is kept, the last epochs are as usual.

All that is asked belongs to the epochs, which are one mechanism in the ledger: the shares of an
epoch add up to 1, whatever is asked in it, and they follow from earlier answers. A row lies in one
cell of each pair, and its part in a query is limited (`PairResiduals`). So the guarantee is that of
the epochs without pairs. All else is post-processing of answers.

A function of two features is inferred as one of one feature is (`smoothing`). Cell (g, h) has the
mass m, which is its rows or their curvatures, and a sum t of about m f + N(0, v). Some dozens of
priors of f are tried: independent cells, and fields in which neighbours are alike, of several
sizes. The posteriors are averaged, weighted by how well a prior explains the sums.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dprepro.additive.bins import (
    MOST_GROUPS,
    FeatureBins,
    Pair,
    PairTerm,
    even_groups,
    pair_name,
    without_sides,
)
from dprepro.data.domain import Domain
from dprepro.methods.dp_ebm_plus.algorithm import epoch, prepare, results
from dprepro.methods.dp_ebm_plus.booster import _SCALES, Booster, budget_allocation
from dprepro.methods.dp_ebm_plus.clipping import best_bound, likely_residual_scales
from dprepro.methods.dp_ebm_plus.curator import PlusCurator
from dprepro.methods.dp_ebm_plus.function import Answer, Function
from dprepro.methods.dp_ebm_plus.losses import Loss
from dprepro.methods.dp_ebm_plus.queries import (
    COUNT_WEIGHT,
    CodedResiduals,
    Magnitudes,
    PairResiduals,
    Residuals,
    pair_norm,
)
from dprepro.methods.dp_ebm_plus.smoothing import band_of_inverse, factor, lookup, solve
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.query import NoisyAnswer
from dprepro.runtime.kernels import kernel

_KINDS = np.array([[1.0, 0.0], [0.3, 1.0], [0.03, 1.0]])
"""Pulls to zero and ties between neighbours of the priors: f of size s has the log density, up to a
constant, -(pull sum f^2 + tie sum (f - its neighbour)^2) / (2 s^2)."""

_SWEEPS = 25

ALONE, ASKING = 0.25, 0.25
"""Parts of the epochs in which features are learned alone, and in which candidates are asked."""

LEAST_EPOCHS = 3
"""One epoch of each kind, at least."""

CANDIDATE_FEATURES = 10
"""So many features at most, of the largest functions: 45 pairs."""

MARGIN = 2.0
"""A pair is kept if the logarithm of how many times likelier its sums are with it exceeds this."""

EFFECT = 0.1
"""Size of the effects of pairs, in units of the bound of residuals, by which cells are made."""

LEAST_CELLS = 9.0
"""Pairs are asked about if a candidate is to have as many cells at least; see `cells_for`."""


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


class PairFunction(Function):
    """A function on the cells of a pair while it is learned; see `Function`.

    `feature` is the pair, and `counts` are what the counts of both features say of its cells.

    Attributes
    ----------
    pair
        Its features and cells.
    sides
        Rows in each group of either feature.
    ordered_sides
        Whether groups next to each other are next to each other in value.
    base : float64 (B,)
        What the functions of both features came to in each cell when the pair was made.
    surface
        What all answers so far say.
    """

    def __init__(self, pair: Pair, first: Function, second: Function, rows: float) -> None:
        self.pair = pair
        groups = (pair.first_groups, pair.second_groups)
        self.sides = tuple(
            np.bincount(group, function.counts)
            for group, function in zip(groups, (first, second), strict=True)
        )
        means = [
            np.bincount(group, f.counts * f.values) / side
            for group, f, side in zip(groups, (first, second), self.sides, strict=True)
        ]
        self.base = np.add.outer(*means).ravel()
        shares = [side / side.sum() for side in self.sides]
        counts = rows * np.outer(*shares).ravel()
        nothing = np.zeros(counts.size)
        super().__init__(pair, counts, nothing, nothing, ordered=False)  # type: ignore[arg-type]
        self.ordered_sides = (first.ordered, second.ordered)
        self.surface: BivariatePosterior | None = None
        self._sums = np.zeros((3, counts.size))
        self._noise = np.zeros(2)

    def take(self, answer: Answer, weight: float, unit: float) -> None:
        """Add an answer to the weighted averages; `unit` is what a row of mass 1 adds to a mass."""
        residuals, masses = answer.sums
        self._weight += weight
        self._sums += weight * np.stack([residuals, masses / unit, self.values])
        self._noise += (weight * answer.deviation * np.array([1.0, 1 / unit])) ** 2

    def infer(self, prior: np.ndarray, sampling: float, scales: np.ndarray) -> BivariatePosterior:
        """Return what all answers say of the function.

        Parameters
        ----------
        prior : float64 (B,)
            The masses as likely as can be said without the answers, give or take as much again.
        sampling
            Variance of a residual over its mass.
        scales : float64 (S,)
            Sizes that the function may have.
        """
        residuals, noisy, before = self._sums / self._weight
        noise, of_masses = self._noise / self._weight**2
        trust = prior**2 / (prior**2 + of_masses)
        # Raised by half a deviation: see `booster._CAUTION`.
        masses = np.maximum(trust * noisy + (1 - trust) * prior, 0.0)
        masses += 0.5 * np.sqrt(trust * of_masses) + 1e-3 * prior
        sums = residuals + masses * before
        shape = self.pair.shape
        self.surface = smooth_bivariate(
            sums.reshape(shape),
            masses.reshape(shape),
            (noise + sampling * masses).reshape(shape),
            scales,
            self.ordered_sides,
        )
        return self.surface

    def term(self, width: float) -> PairTerm:
        """Return the function in the unit of the model: all but counts times `width`."""
        shape = self.pair.shape
        return PairTerm(
            self.pair,
            width * self.values.reshape(shape),
            self.counts.reshape(shape),
            width * self.deviations.reshape(shape),
        )


class PairBooster(Booster):
    """A `Booster` whose functions may be those of pairs, too."""

    @classmethod
    def after(cls, booster: Booster) -> PairBooster:
        """Return one that goes on where another stopped, with the same functions."""
        made = cls(
            booster.functions, booster.loss, booster.rows, booster.start, booster.typical,
            booster.deviation, booster.n_epochs, booster.rows_noise,
        )  # fmt: skip
        made.intercept = booster.intercept
        made.bound, made.mean_square = booster.bound, booster.mean_square
        made.magnitudes = booster.magnitudes
        made.damping = booster.damping
        return made

    def residuals_of(  # type: ignore[override]
        self, function: Function, share: float
    ) -> Residuals | CodedResiduals | PairResiduals:
        """See `Booster.residuals_of`."""
        if not isinstance(function, PairFunction):
            return super().residuals_of(function, share)
        charged = pair_norm(self.loss, self.bound)
        return PairResiduals(charged, share, function.pair, self.bound, self.loss)

    @property
    def singles(self) -> list[Function]:
        """See `Booster.singles`."""
        return [function for function in self.functions if not isinstance(function, PairFunction)]

    def learn(self, function: Function, answer: Answer, share: float, number: int) -> np.ndarray:
        """See `Booster.learn`."""
        if not isinstance(function, PairFunction):
            return super().learn(function, answer, share, number)
        self.remember(function, answer, (number + 1) * share)
        values = self.values_of(function)
        if not self.loss.at_once:
            return values
        # It makes up for rows that features have just made up for.
        return function.values + self.damping.value * (values - function.values)

    def remember(self, function: PairFunction, answer: Answer, weight: float) -> None:
        """Add an answer to what is known of a pair."""
        unit = 1.0 if self.loss.is_logistic else COUNT_WEIGHT * self.bound
        function.take(answer, weight, unit)

    def take_in(self, kept: list[tuple[Function, Function]], n_epochs: int) -> list[PairFunction]:
        """Add functions of pairs that are kept, to be learned in so many epochs; return them."""
        self.shares = budget_allocation(len(self.functions) + len(kept), self.loss)
        share = self.shares.features / max(len(self.functions) + len(kept), 1)
        cells = cells_for(self.rows, self.deviation / math.sqrt(share * n_epochs))
        pairs = [pair_function(first, second, cells, self.rows) for first, second in kept]
        self.functions = [*self.functions, *pairs]
        if pairs:
            self.magnitudes = []  # the residuals of a model without them were larger
        return pairs

    def choose_bound_for_pairs(self, sizes: NoisyAnswer, deviation: float, cells: float) -> None:
        """Choose as `choose_bound`, for pairs of so many cells: `deviation` is their noise."""
        self.choose_bound(sizes)
        found, _ = likely_residual_scales(sizes.value, sizes.scale, self.rows, self.typical)
        self.bound = best_bound(found, deviation, cells)
        self.mean_square = min(self.mean_square, self.bound**2)

    def evidence_of(self, function: PairFunction) -> float:
        """Return the evidence for a pair; see `BivariatePosterior`."""
        slopes = lookup(self.table(function), function.base + function.values)[1]
        surface = function.infer(
            function.counts * slopes,
            self.loss.sampling_variance(self.mean_square),
            _SCALES * self.loss.scales(self.bound),
        )
        return surface.evidence

    def values_of(self, function: PairFunction) -> np.ndarray:
        """Set a pair's deviations, and return the values, float64 (B,), that it moves to."""
        self.evidence_of(function)
        surface = function.surface
        assert surface is not None
        function.deviations = np.sqrt(surface.variance).ravel()
        return without_sides(surface.mean, *function.sides).ravel()


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


def learn_with_pairs(
    curator: PlusCurator,
    domain: Domain,
    loss: Loss,
    budget: PrivacyBudget,
    n_epochs: int | None,
    most: int,
) -> tuple[list[FeatureBins], list[Function], float, np.ndarray | None, list[PairFunction]]:
    """Do what `algorithm.learn` does, with up to `most` pairs, which are the last result."""
    bins, functions, booster = prepare(curator, domain, loss, budget, n_epochs, has_pairs=True)
    n_epochs = booster.n_epochs
    alone, asking = schedule(n_epochs) if asks_pairs(booster) else (n_epochs, 0)
    for number in range(alone):
        epoch(curator, booster, number)
    pairs: list[PairFunction] = []
    if asking:
        booster = PairBooster.after(booster)
        kept = choose(curator, booster, asking, most)
        pairs = booster.take_in(kept, n_epochs - alone - asking)
    for number in range(alone + asking, n_epochs):
        epoch(curator, booster, number)
    return (*results(bins, functions, booster), pairs)


def schedule(n_epochs: int) -> tuple[int, int]:
    """Return how many epochs learn features alone, and how many ask about candidates."""
    asking = max(1, round(ASKING * n_epochs))
    return max(1, min(round(ALONE * n_epochs), n_epochs - asking - 1)), asking


def asks_pairs(booster: Booster) -> bool:
    """Return whether there are rows enough for the noise, and features, to ask about pairs."""
    features = min(len(booster.functions), CANDIDATE_FEATURES)
    if booster.has_few_rows or features < 2:
        return False
    _, asking = schedule(booster.n_epochs)
    deviation = booster.deviation * math.sqrt(math.comb(features, 2) / asking)
    return cells_for(booster.rows, deviation) >= LEAST_CELLS


def most_pairs(features: int, most: int) -> int:
    """Return how many pairs can be kept at most, of so many features, where `most` are asked."""
    return min(most, math.comb(min(features, CANDIDATE_FEATURES), 2))


def cells_for(rows: float, deviation: float) -> float:
    """Return how many cells a pair is to have: so many that noise and effects are alike in each.

    Effects are about `EFFECT` of the bound of residuals. `deviation` is that of the noise in the
    sum of a cell, for a bound of 1.
    """
    return EFFECT * rows / deviation


def choose(
    curator: PlusCurator, booster: PairBooster, n_epochs: int, most: int
) -> list[tuple[Function, Function]]:
    """Ask about all candidates in so many epochs; return those to keep, the surest first."""
    features = sorted(booster.functions, key=lambda f: -f.spread())[:CANDIDATE_FEATURES]
    couples = list(combinations(sorted(features, key=lambda f: f.feature), 2))
    weight = booster.loss.sizes_weight
    # The intercept is not asked here: what all cells share is no evidence for a pair.
    total = len(couples) + weight
    share = 1 / total
    deviation = booster.deviation / math.sqrt(share * n_epochs)
    cells = cells_for(booster.rows, deviation)
    candidates = [pair_function(*couple, cells, booster.rows) for couple in couples]
    for _ in range(n_epochs):
        if weight:
            noisy = curator.answer(Magnitudes(1.0, weight / total))
            booster.choose_bound_for_pairs(noisy, deviation, cells)
        for pair in candidates:
            noisy = curator.answer(booster.residuals_of(pair, share))
            booster.remember(pair, Answer(noisy.value, noisy.scale), share)
    evidence = [booster.evidence_of(pair) for pair in candidates]
    best = sorted(range(len(candidates)), key=lambda k: -evidence[k])[:most]
    return [couples[k] for k in best if evidence[k] > MARGIN]


def pair_function(first: Function, second: Function, cells: float, rows: float) -> PairFunction:
    """Return a function of zeros of two features, on about so many cells."""
    sides = np.array([first.counts.size, second.counts.size])
    most = np.minimum(sides, MOST_GROUPS)
    fair = np.clip(math.sqrt(cells), 2, most)
    # Where one side has few bins, the other one may have more groups.
    first_groups, second_groups = np.clip(cells / fair[::-1], 2, most).round().astype(int)
    pair = Pair(
        first.feature, second.feature,
        groups_of(first, first_groups), groups_of(second, second_groups),
    )  # fmt: skip
    return PairFunction(pair, first, second, rows)


def groups_of(function: Function, most: int) -> np.ndarray:
    """Return the group of each bin, uint8 (B,): of neighbours, or of categories of like values."""
    size = function.counts.size
    order = np.arange(size) if function.ordered else np.argsort(function.values, kind="stable")
    return even_groups(function.counts, order, most)
