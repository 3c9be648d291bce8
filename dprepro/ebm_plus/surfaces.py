"""Infer a function of two features from noisy sums over cells: `smoothing`, in two dimensions.

Cell (g, h) has the mass m, which is its rows or their curvatures, and a sum t of about
m f + N(0, v). Some dozens of priors of f are tried: independent cells, and fields in which
neighbours are alike, of several sizes. The posteriors are averaged, weighted by how well a prior
explains the sums. All of it is post-processing of releases.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dprepro.compiled import kernel
from dprepro.ebm_plus.banded import band_of_inverse, factor, solve

_KINDS = np.array([[1.0, 0.0], [0.3, 1.0], [0.03, 1.0]])
"""Pulls to zero and ties between neighbours of the priors: f of size s has the log density, up to a
constant, -(pull sum f^2 + tie sum (f - its neighbour)^2) / (2 s^2)."""

_SWEEPS = 25


class Surface(NamedTuple):
    """What `smooth_surface` finds: mean and variance a posteriori, float64 (G, H), and evidence.

    `evidence` is the logarithm of how many times likelier the sums are under these priors, all
    taken to be equally likely, than if the function were zero everywhere.
    """

    mean: np.ndarray
    variance: np.ndarray
    evidence: float


def smooth_surface(
    sums: np.ndarray,
    masses: np.ndarray,
    variances: np.ndarray,
    scales: np.ndarray,
    ordered: tuple[bool, bool],
) -> Surface:
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
    return Surface(mean, variance, float(evidence))


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
    """Do what `smooth_surface` says, given z ~ N(f, 1 / weights)."""
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
