"""Infer a function from noisy sums by empirical Bayes: the noise is known, the roughness is not.

Bin b has n_b rows, whose targets add up to about n_b g(f_b) + N(0, v_b). Some dozens of priors are
tried: independent values, walks from bin to bin, and smooth curves, of several sizes each. Each
gives a posterior of f; `smooth` averages these, weighted by how well the prior explains the sums.
All of it is post-processing of releases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dprepro.compiled import kernel
from dprepro.ebm_plus.banded import backward, diagonal_of_inverse, factor, forward

INDEPENDENT, WALK, JUMPS, CURVE = 0, 1, 2, 3
"""Kinds of priors: independent values; a walk of normal steps from bin to bin; a walk of Cauchy
steps, most of them small and few large; a curve, whose steps change little from bin to bin."""

_ALL_KINDS, _UNORDERED = np.array([JUMPS, WALK, INDEPENDENT, CURVE]), np.array([INDEPENDENT])

_PULL = 0.3
"""A walk of scale s around the centre m has the log density, up to a constant,
-((B - 1) sum_b (f_b - f_(b-1))^2 + `_PULL` sum_b (f_b - m_b)^2) / (2 s^2)."""

_BEND = 0.05
"""A curve has `_BEND` (B - 1)^3 sum_b (f_b - 2 f_(b-1) + f_(b-2))^2 in place of the first sum. With
30 bins a line is then about twice as large a priori as the largest bend."""

_REACH, _STEP = 24.0, 0.2
_GRID = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
"""Log odds f at which `expected_rates` tabulates g and g'."""

LINEAR = np.empty((2, 0))
"""The table of g(f) = f, g'(f) = 1: regression needs none."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
"""Gauss-Hermite quadrature: E h(Z) is about sum_j `_WEIGHTS`_j h(`_NODES`_j) for Z ~ N(0, 1)."""

_ITERATIONS, _HALVINGS = 12, 6
"""At most so many Newton steps for a mode, and so many halvings of each."""

_SETTLED = 1e-3
"""The search for a mode ends where a step raises the log posterior by less: noise changes it by far
more."""


@dataclass(frozen=True)
class Priors:
    """Priors of a function on B bins, equally likely before any answer: S T C in all.

    Attributes
    ----------
    squared_scales : float64 (S,)
        s^2, rising. Values are independent with this variance, or a walk of B - 1 steps whose
        squared scales add up to it; for a curve see `_BEND`.
    kinds : int64 (T,)
        `INDEPENDENT`, `WALK`, `JUMPS` or `CURVE`.
    centres : float64 (C, B)
        What the function is expected to be.
    """

    squared_scales: np.ndarray
    kinds: np.ndarray
    centres: np.ndarray


def priors(scales: np.ndarray, centres: np.ndarray, *, ordered: bool) -> Priors:
    """Return priors of every scale s around every centre: independent and, if `ordered`, all kinds.

    `scales` is float64 (S,), positive and rising; `centres` float64 (C, B).
    """
    kinds = _ALL_KINDS if ordered and centres.shape[1] > 2 else _UNORDERED
    return Priors(scales * scales, kinds, centres)


def smooth(
    sums: np.ndarray,
    variances: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    models: Priors,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean and variance of f, float64 (B,), given t_b ~ N(n_b g(f_b), v_b).

    For each prior, the Gauss-Newton method finds the mode of the posterior, which is then taken as
    normal around its mode: exact for g(f) = f and no jumps. The answer is the average of the
    posteriors, weighted by the marginal likelihood of each prior (Laplace's method). A prior with
    a small s shrinks, so that what is lost in the noise becomes the centre. Where g is nearly
    flat, as for rare labels, a bin must stand out in t itself: noise that would be large log odds
    if g were a line moves nothing.

    A walk with jumps is taken for one of normal steps, each with the variance that its Cauchy step
    is worth at the mode. That is a rule of thumb. It favours jumps where bins are many, by up to
    0.4 nats a step, and states standard deviations that are too small. The true evidence would
    hardly ever find a jump.

    All matrices have two bands beside the diagonal: O(B) time for each prior and iteration.

    Parameters
    ----------
    sums, variances : float64 (B,)
        t and v: the sum of the targets in each bin, and its variance, positive.
    counts : float64 (B,)
        n: rows in each bin, positive.
    table : float64 (2, G)
        g and g' as `expected_rates` returns them, or `LINEAR`.
    models
        See `priors`.
    start : float64 (B,)
        Where the search begins.
    """
    return _average(
        sums, variances, counts, table, models.squared_scales, models.kinds, models.centres, start
    )  # fmt: skip


@kernel("(float64, float64)", error_model="numpy")
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

    g(f) is the share of positive labels in a bin of value f, if the sum of the other functions is
    normal over the bin's rows, with the variance that it has over all rows: so it is about where
    features are independent.
    """
    return np.asarray(_tabulate(intercept, deviation))


def lookup(table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return g and g' at `values`, float64 (2, B), by interpolation in a table of `_GRID`."""
    found = np.empty((2, values.size))
    _evaluate(values, np.zeros(values.size), np.ones(values.size), table, found[0], found[1])
    return found


@kernel(
    "(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1])",
    error_model="numpy",
)
def _evaluate(offsets, centre, counts, table, expected, slope):  # type: ignore[no-untyped-def]
    """Fill in n g(f), `expected`, and n g'(f), `slope`: f = `centre` + `offsets`, n = `counts`."""
    last = table.shape[1] - 1
    for b in range(offsets.size):
        value = offsets[b] + centre[b]
        if last < 0:
            expected[b], slope[b] = counts[b] * value, counts[b]
            continue
        place = min(max((value + _REACH) / _STEP, 0.0), last - 1e-9)
        i = int(place)
        rest = place - i
        expected[b] = counts[b] * (table[0, i] + rest * (table[0, i + 1] - table[0, i]))
        slope[b] = counts[b] * max(table[1, i] + rest * (table[1, i + 1] - table[1, i]), 1e-12)


@kernel(
    "(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], int64[::1], "
    "float64[:, ::1], float64[::1])",
    error_model="numpy",
)
def _average(t, v, counts, table, squared_scales, kinds, centres, start):  # type: ignore[no-untyped-def]
    """Do what `smooth` says."""
    n_bins = start.size
    models = centres.shape[0] * kinds.size * squared_scales.size
    means, spreads = np.empty((models, n_bins)), np.empty((models, n_bins))
    evidence, expected, slope = np.empty(models), np.empty(n_bins), np.empty(n_bins)
    k = 0
    for centre in centres:
        for kind in kinds:
            f = start - centre
            _evaluate(f, centre, counts, table, expected, slope)
            # A scale's mode is near that of the scale before it.
            for squared_scale in squared_scales:
                evidence[k] = _mode(
                    t, v, counts, table, squared_scale, kind, centre, f, expected, slope, spreads[k]
                )  # fmt: skip
                for b in range(f.size):
                    means[k, b] = f[b] + centre[b]
                k += 1
    shares = _shares(evidence)
    mean, variance = np.zeros(n_bins), np.zeros(n_bins)
    for k in range(models):
        for b in range(n_bins):
            mean[b] += shares[k] * means[k, b]
            variance[b] += shares[k] * (spreads[k, b] + means[k, b] * means[k, b])
    for b in range(n_bins):
        variance[b] -= mean[b] * mean[b]
    return mean, variance


@kernel(error_model="numpy")
def _shares(evidence):  # type: ignore[no-untyped-def]
    """Return the probabilities of models whose log evidence is given."""
    largest, total = -math.inf, 0.0
    for value in evidence:
        largest = max(largest, value)
    shares = np.empty(evidence.size)
    for k in range(evidence.size):
        shares[k] = math.exp(evidence[k] - largest)
        total += shares[k]
    for k in range(evidence.size):
        shares[k] /= total
    return shares


@kernel(error_model="numpy")
def _mode(t, v, counts, table, squared_scale, kind, centre, f, expected, slope, spread):  # type: ignore[no-untyped-def]
    """Move f, measured from the centre, to the mode; fill in variances; return log p(t).

    `expected` and `slope` are those at f, before and after; see `_evaluate`.

    Every iteration goes to the posterior mean under g's tangent, which sees f as
    z = f + (t - n g) / n g' with variance v / (n g')^2.
    """
    new, z, variance = np.empty(f.size), np.empty(f.size), np.empty(f.size)
    before = _misfit(t, v, expected, f, squared_scale, kind)
    for _ in range(_ITERATIONS):
        matrix = _precision(f, squared_scale, kind)
        for b in range(f.size):
            z[b] = f[b] + (t[b] - expected[b]) / slope[b]
            variance[b] = v[b] / (slope[b] * slope[b])
        _begin(z, variance, matrix, new)
        backward(matrix, new)
        after = _shorten(
            t, v, counts, table, squared_scale, kind, centre, f, before, new, expected, slope
        )  # fmt: skip
        gained, before = before - after, after
        if gained < _SETTLED:
            break
    # log p(t) needs the determinants at the mode only: the fit of z = f is subtracted again.
    prior, fit = _precision(f, squared_scale, kind), 0.0
    for b in range(f.size):
        variance[b] = 1 / (slope[b] * slope[b] / v[b])
    determinants = _posterior(f, variance, prior, new, spread)
    for b in range(f.size):
        fit += slope[b] * slope[b] / v[b] * new[b] * f[b]
    return determinants - 0.5 * fit - before


@kernel(error_model="numpy")
def _shorten(t, v, counts, table, squared_scale, kind, centre, f, before, new, expected, slope):  # type: ignore[no-untyped-def]
    """Move f to `new`, or half the way, a quarter, ..., to where the posterior is no smaller.

    Return the misfit there, at most `before`; `expected` and `slope` are those at f.
    """
    for _ in range(_HALVINGS):
        _evaluate(new, centre, counts, table, expected, slope)
        after = _misfit(t, v, expected, new, squared_scale, kind)
        if after <= before:
            for b in range(f.size):
                f[b] = new[b]
            return after
        for b in range(f.size):
            new[b] = (f[b] + new[b]) / 2
    _evaluate(f, centre, counts, table, expected, slope)
    return before


@kernel(error_model="numpy")
def _pull(squared_scale, kind):  # type: ignore[no-untyped-def]
    """Return the precision by which the prior pulls every value to its centre."""
    return (1.0 if kind == INDEPENDENT else _PULL) / squared_scale


@kernel(error_model="numpy")
def _tie(squared_scale, kind, n_bins):  # type: ignore[no-untyped-def]
    """Return the precision of a step, or of what a step differs from the one before it."""
    if kind == CURVE:
        return _BEND * (n_bins - 1) ** 3 / squared_scale
    return (n_bins - 1) / squared_scale


@kernel(error_model="numpy")
def _precision(f, squared_scale, kind):  # type: ignore[no-untyped-def]
    """Return the prior's precision Q, float64 (3, B); see `banded`.

    -log of a Cauchy density, log(1 + x^2), has the same slope at x as a square of weight
    1 / (1 + x^2), which nowhere lies below it: going to that square's minimum leads to a mode.
    """
    found = np.zeros((3, f.size))
    found[0] = _pull(squared_scale, kind)
    tie = _tie(squared_scale, kind, f.size)
    if kind in (WALK, JUMPS):
        for b in range(1, f.size):
            weight = tie
            if kind == JUMPS:
                weight *= 2 / (1 + tie * (f[b] - f[b - 1]) ** 2)
            found[0, b] += weight
            found[0, b - 1] += weight
            found[1, b] -= weight
    elif kind == CURVE:
        for b in range(2, f.size):
            found[0, b] += tie
            found[0, b - 1] += 4 * tie
            found[0, b - 2] += tie
            found[1, b] -= 2 * tie
            found[1, b - 1] -= 2 * tie
            found[2, b] += tie
    return found


@kernel(error_model="numpy")
def _misfit(t, v, expected, f, squared_scale, kind):  # type: ignore[no-untyped-def]
    """Return minus the log of likelihood times prior, up to a constant."""
    pull, tie = _pull(squared_scale, kind), _tie(squared_scale, kind, f.size)
    total = 0.0
    for b in range(f.size):
        total += (t[b] - expected[b]) ** 2 / v[b] + pull * f[b] ** 2
        if b > 0 and kind == WALK:
            total += tie * (f[b] - f[b - 1]) ** 2
        elif b > 0 and kind == JUMPS:
            total += 2 * math.log(1 + tie * (f[b] - f[b - 1]) ** 2)
        elif b > 1 and kind == CURVE:
            total += tie * (f[b] - 2 * f[b - 1] + f[b - 2]) ** 2
    return 0.5 * total


@kernel(error_model="numpy")
def _begin(z, v, matrix, mean):  # type: ignore[no-untyped-def]
    """Begin to solve A f = z/v, A = Q + diag(1/v): `matrix` holds Q before, A's factors after."""
    for b in range(z.size):
        matrix[0, b] += 1 / v[b]
        mean[b] = z[b] / v[b]
    factor(matrix)
    forward(matrix, mean)


@kernel(error_model="numpy")
def _posterior(z, v, prior, mean, spread):  # type: ignore[no-untyped-def]
    """Fill in mean and variances given z ~ N(f, v); return log p(z) up to a constant.

    `prior` holds the prior's precision Q before, and A's factors after.

    With A = Q + diag(1/v): mean = A^-1 z/v, and
    log p(z) = (log|Q| - log|A| + (z/v)' A^-1 (z/v)) / 2 + constant. Both determinants are products
    of the factors' diagonals.
    """
    own = prior.copy()
    factor(own)
    _begin(z, v, prior, mean)
    evidence = 0.0
    for b in range(z.size):
        evidence += math.log(own[0, b] / prior[0, b]) + mean[b] * mean[b] / prior[0, b]
    backward(prior, mean)
    diagonal_of_inverse(prior, spread)
    return 0.5 * evidence
