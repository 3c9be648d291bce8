"""A function inferred from noisy sums by empirical Bayes: the noise is known, the roughness is not.

Pure post-processing: everything here works on what has been released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

_PULL = 0.3
"""A walk also pulls every value to its centre, this much less than it ties its ends together."""

_REACH, _STEP = 24.0, 0.2
_GRID = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
"""Log odds at which `expected_rates` tabulates."""

LINEAR = np.empty((2, 0))
"""Stands for g(f) = f where a table of g and g' is asked for."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

_ITERATIONS, _HALVINGS = 12, 6
_SETTLED = 1e-3
"""Of the log posterior: a thousandth is nothing beside what noise does to it."""


@dataclass(frozen=True)
class Priors:
    """M models of a function on B bins, each as likely as any other before the data.

    Attributes
    ----------
    variances : float64 (M,)
        s^2. Values are independent with this variance, or a walk whose two ends differ by it.
    walks : bool (M,)
    centres : float64 (M, B)
        What the function is expected to be.
    """

    variances: np.ndarray
    walks: np.ndarray
    centres: np.ndarray


def priors(scales: np.ndarray, centres: np.ndarray, *, ordered: bool) -> Priors:
    """Return models of every scale s around every centre: independent and, if `ordered`, walks.

    `scales` is float64 (S,), positive and rising; `centres` float64 (C, B).
    """
    kinds = (True, False) if ordered and centres.shape[1] > 2 else (False,)
    found = [(s * s, walk, centre) for centre in centres for walk in kinds for s in scales]
    variances, walks, of_model = (list(part) for part in zip(*found, strict=True))
    return Priors(np.array(variances), np.array(walks), np.array(of_model))


def smooth(
    sums: np.ndarray,
    variances: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    models: Priors,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean and variance of f, float64 (B,), given t_b ~ N(n_b g(f_b), v_b).

    For each model the mode is found by Gauss and Newton's method, and the posterior taken as normal
    around it, which is exact for g(f) = f. Models are weighed by their marginal likelihood
    (Laplace's method), and the answer is their average. A small s shrinks, so that what is lost in
    the noise becomes the centre. Where g is nearly flat, as for rare labels, a bin must
    stand out in t itself: noise that would be large log odds if g were a line moves nothing.

    All matrices are tridiagonal: O(B) time for each model and iteration.

    Parameters
    ----------
    sums, variances : float64 (B,)
        t and v; v is positive.
    counts : float64 (B,)
        n, positive.
    table : float64 (2, G)
        g and g' as `expected_rates` returns them, or `LINEAR`.
    models
        See `priors`.
    start : float64 (B,)
        Where the search begins.
    """
    return _average(
        sums, variances, counts, table, models.variances, models.walks, models.centres, start
    )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy")
def _tabulate(intercept, deviation):  # type: ignore[no-untyped-def]
    table = np.zeros((2, _GRID.size))
    for i in range(_GRID.size):
        for j in range(_NODES.size):
            p = 1 / (1 + math.exp(-(intercept + _GRID[i] + deviation * _NODES[j])))
            table[0, i] += _WEIGHTS[j] * p
            table[1, i] += _WEIGHTS[j] * p * (1 - p)
    return table


def expected_rates(intercept: float, deviation: float) -> np.ndarray:
    """Tabulate g(f) = E sigmoid(intercept + f + Z), Z ~ N(0, deviation^2), and g', float64 (2, G).

    The share of positive labels that a bin of value f has if the other functions' sum is normal
    there, as where features are independent, with the variance that it has over all rows.
    """
    return np.asarray(_tabulate(intercept, deviation))


def lookup(table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return g and g' at `values`, float64 (2, B)."""
    expected, slope = np.empty(values.size), np.empty(values.size)
    _evaluate(values, np.ones(values.size), table, expected, slope)
    return np.stack([expected, slope])


@njit(nogil=True, cache=True, error_model="numpy")
def _evaluate(values, counts, table, expected, slope):  # type: ignore[no-untyped-def]
    """Fill in n g(f) and n g'(f)."""
    last = table.shape[1] - 1
    for b in range(values.size):
        if last < 0:
            expected[b], slope[b] = counts[b] * values[b], counts[b]
            continue
        place = min(max((values[b] + _REACH) / _STEP, 0.0), last - 1e-9)
        i = int(place)
        rest = place - i
        expected[b] = counts[b] * (table[0, i] + rest * (table[0, i + 1] - table[0, i]))
        slope[b] = counts[b] * max(table[1, i] + rest * (table[1, i + 1] - table[1, i]), 1e-12)


@njit(nogil=True, cache=True, error_model="numpy")
def _average(t, v, counts, table, variances, walks, centres, start):  # type: ignore[no-untyped-def]
    models, n_bins = centres.shape
    means, spreads = np.empty((models, n_bins)), np.empty((models, n_bins))
    evidence = np.empty(models)
    f = start.copy()
    for k in range(models):
        # A scale's mode is near that of the scale before it.
        if k == 0 or variances[k] < variances[k - 1]:
            f = start - centres[k]
        evidence[k] = _mode(
            t, v, counts, table, variances[k], walks[k], centres[k], f, spreads[k]
        )  # fmt: skip
        means[k] = f + centres[k]
    shares = np.exp(evidence - evidence.max())
    shares /= shares.sum()
    mean, square = np.zeros(n_bins), np.zeros(n_bins)
    for k in range(models):
        mean += shares[k] * means[k]
        square += shares[k] * (spreads[k] + means[k] ** 2)
    return mean, square - mean**2


@njit(nogil=True, cache=True, error_model="numpy")
def _mode(t, v, counts, table, variance, walk, centre, f, spread):  # type: ignore[no-untyped-def]
    """Move f, measured from the centre, to the mode; fill in variances; return log p(t).

    Every iteration is the posterior mean of g's tangent, seen at z = f + (t - n g) / n g' with
    variance v / (n g')^2, and halves its step until the posterior is no smaller.
    """
    expected, slope, new = np.empty(f.size), np.empty(f.size), np.empty(f.size)
    _evaluate(f + centre, counts, table, expected, slope)
    value = _misfit(t, v, expected, f, variance, walk)
    for _ in range(_ITERATIONS):
        _posterior(f + (t - expected) / slope, v / slope**2, variance, walk, new, spread)
        for _ in range(_HALVINGS):
            _evaluate(new + centre, counts, table, expected, slope)
            after = _misfit(t, v, expected, new, variance, walk)
            if after <= value:
                break
            new[:] = (f + new) / 2
        if after > value:
            _evaluate(f + centre, counts, table, expected, slope)
            break
        f[:] = new
        gained, value = value - after, after
        if gained < _SETTLED:
            break
    # Seen at the mode itself, z = f: what `_posterior` says of z's fit goes out again.
    precision = slope**2 / v
    determinants = _posterior(f, 1 / precision, variance, walk, new, spread)
    return determinants - 0.5 * (precision * new * f).sum() - value


@njit(nogil=True, cache=True, error_model="numpy")
def _misfit(t, v, expected, f, variance, walk):  # type: ignore[no-untyped-def]
    """Return minus the log of likelihood times prior, up to a constant."""
    tie = (f.size - 1) / variance if walk else 0.0
    own = (_PULL if walk else 1.0) / variance
    total = 0.0
    for b in range(f.size):
        total += (t[b] - expected[b]) ** 2 / v[b] + own * f[b] ** 2
        if b > 0:
            total += tie * (f[b] - f[b - 1]) ** 2
    return 0.5 * total


@njit(nogil=True, cache=True, error_model="numpy")
def _posterior(z, v, variance, walk, mean, spread):  # type: ignore[no-untyped-def]
    """Fill in mean and variances given z ~ N(f, v); return log p(z) up to a constant.

    With prior precision Q and A = Q + diag(1/v): mean = A^-1 z/v, and
    log p(z) = (log|Q| - log|A| + (z/v)' A^-1 (z/v)) / 2 + constant. Both determinants are products
    of pivots, from the first bin on (`down`); those from the last one on (`up`) give the diagonal
    of A^-1.
    """
    n_bins = z.size
    tie = (n_bins - 1) / variance if walk else 0.0
    own = (_PULL if walk else 1.0) / variance
    down, up, pivot = np.empty(n_bins), np.empty(n_bins), 0.0
    evidence = 0.0
    for b in range(n_bins):
        ties = tie * ((b > 0) + (b < n_bins - 1))
        pivot = own + ties - (tie * tie / pivot if b > 0 else 0.0)
        factor = tie / down[b - 1] if b > 0 else 0.0
        down[b] = own + ties + 1 / v[b] - factor * tie
        mean[b] = z[b] / v[b] + (factor * mean[b - 1] if b > 0 else 0.0)
        evidence += math.log(pivot / down[b]) + mean[b] * mean[b] / down[b]
    for b in range(n_bins - 1, -1, -1):
        ties = tie * ((b > 0) + (b < n_bins - 1))
        full = own + ties + 1 / v[b]
        after = b < n_bins - 1
        mean[b] = (mean[b] + (tie * mean[b + 1] if after else 0.0)) / down[b]
        up[b] = full - (tie * tie / up[b + 1] if after else 0.0)
        spread[b] = 1 / (down[b] + up[b] - full)
    return 0.5 * evidence
