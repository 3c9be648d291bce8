"""Infer a function from noisy sums by empirical Bayes: the noise is known, the roughness is not.

Bin b has n_b rows, whose targets add up to about n_b g(f_b) + N(0, v_b), and noise that neighbours
may share. Some dozens of priors are tried: independent values, walks from bin to bin, and smooth
curves, of several sizes each. Each gives a posterior of f; `smooth` averages these, weighted by how
well the prior explains the sums. g is the identity for targets, and for labels the expected rate
of positive ones in a bin whose rows differ (`expected_responses`). All of it is post-processing.

A banded, positive definite matrix A of n rows is float64 (n, w + 1), for w bands on either side:
row i holds the entries (i, i - w) to (i, i). Those left of the first column are not read. A matrix
that is not positive definite gives NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dprepro.runtime.kernels import kernel

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

_ITERATIONS, _HALVINGS = 12, 6
"""At most so many Newton steps for a mode, and so many halvings of each."""

NO_NOISE = np.empty((2, 0))
"""No `noise`, see `smooth`: all of it is in the variances."""

_SETTLED = 1e-3
"""The search for a mode ends where a step raises the log posterior by less: noise changes it by far
more."""

_REACH, _STEP = 24.0, 0.2

_GRID = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
"""Log odds f at which `expected_responses` tabulates g and g'."""

LINEAR = np.empty((2, 0))
"""The table of g(f) = f, g'(f) = 1: regression needs none."""

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)

WEIGHTS = WEIGHTS / WEIGHTS.sum()
"""Gauss-Hermite quadrature: E h(Z) is about sum_j `WEIGHTS`_j h(`NODES`_j) for Z ~ N(0, 1)."""

_TOLERANCE, _BISECTIONS = 1.5, 30
"""How many times the released odds those of the rarer label may be; halvings of a deviation."""


@kernel("(float64[:, ::1])", error_model="numpy")
def factor(band):  # type: ignore[no-untyped-def]
    """Let a band of A become that of its Cholesky factor L, A = L L'; return log |A|."""
    size, width = band.shape[0], band.shape[1] - 1
    logarithm = 0.0
    for i in range(size):
        for j in range(max(0, i - width), i + 1):
            total = band[i, j - i + width]
            for k in range(max(0, i - width), j):
                total -= band[i, k - i + width] * band[j, k - j + width]
            if j < i:
                band[i, j - i + width] = total / band[j, width]
            else:
                band[i, width] = math.sqrt(total)
                logarithm += math.log(total)
    return logarithm


@kernel(error_model="numpy")
def solve(factors, right, found):  # type: ignore[no-untyped-def]
    """Fill in `found` = A^-1 `right`, by the band of the Cholesky factor of A."""
    size, width = factors.shape[0], factors.shape[1] - 1
    for i in range(size):
        total = right[i]
        for k in range(max(0, i - width), i):
            total -= factors[i, k - i + width] * found[k]
        found[i] = total / factors[i, width]
    for i in range(size - 1, -1, -1):
        total = found[i]
        for k in range(i + 1, min(size, i + width + 1)):
            total -= factors[k, i - k + width] * found[k]
        found[i] = total / factors[i, width]


@kernel(error_model="numpy")
def band_of_inverse(factors):  # type: ignore[no-untyped-def]
    """Return the band of A^-1, float64 (n, w + 1): row i holds (i, i) to (i, i + w).

    It follows from the band of L, from the last row up.

    With the columns l of L below its diagonal d, (A^-1)_ij = [i = j] / d_i^2 - (1 / d_i) sum over
    k > i of l_ki (A^-1)_kj, for j >= i (Takahashi et al. 1973).
    """
    size, width = factors.shape[0], factors.shape[1] - 1
    inverse = np.zeros((size, width + 1))
    for i in range(size - 1, -1, -1):
        last = min(size - 1, i + width)
        for j in range(last, i - 1, -1):
            total = 1 / factors[i, width] if j == i else 0.0
            for k in range(i + 1, last + 1):
                low, high = min(k, j), max(k, j)
                total -= factors[k, i - k + width] * inverse[low, high - low]
            inverse[i, j - i] = total / factors[i, width]
    return inverse


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


class Posterior(NamedTuple):
    """What is known of a function, each float64 (B,).

    Attributes
    ----------
    mean, variance
        Of each bin's value.
    rise
        By how much the mean rises with the sum of its own bin, d mean_b / d t_b, each prior's share
        being as it is.
    """

    mean: np.ndarray
    variance: np.ndarray
    rise: np.ndarray


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
    noise: np.ndarray = NO_NOISE,
) -> Posterior:
    """Return the posterior of f given the sums t.

    t_b = n_b g(f_b) + N(0, v_b) + a_b e_b - c_b e_(b+1), where e_b are independent standard normal
    numbers. a and c are the `noise`; without it t_b ~ N(n_b g(f_b), v_b).

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

    All matrices have two bands on either side of the diagonal, or four, as e is inferred with f
    where there is noise: O(B) time for each prior and iteration.

    Parameters
    ----------
    sums, variances : float64 (B,)
        t and v: the sum of the targets in each bin, and its variance, positive.
    counts : float64 (B,)
        n: rows in each bin, positive.
    table : float64 (2, G)
        g and g' as `expected_responses` returns them, or `LINEAR`.
    models
        See `priors`.
    start : float64 (B,)
        Where the search begins.
    noise : float64 (2, B) or (2, 0)
        a, and c; the last of c is 0.
    """
    return Posterior(
        *_average(
            sums, variances, noise, counts, table,
            models.squared_scales, models.kinds, models.centres, start,
        )
    )  # fmt: skip


@kernel(
    "(float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], float64[::1], "
    "int64[::1], float64[:, ::1], float64[::1])",
    error_model="numpy",
)
def _average(t, v, noise, counts, table, squared_scales, kinds, centres, start):  # type: ignore[no-untyped-def]
    """Do what `smooth` says, and return what a `Posterior` holds.

    What is inferred is one vector x: f_b, measured from the centre, followed by e_b if there is
    `noise`.
    """
    n_bins = start.size
    stride = 2 if noise.size > 0 else 1
    models = centres.shape[0] * kinds.size * squared_scales.size
    means, spreads = np.empty((models, n_bins)), np.empty((models, n_bins))
    rises = np.empty((models, n_bins))
    evidence, expected, slope = np.empty(models), np.empty(n_bins), np.empty(n_bins)
    k = 0
    for centre in centres:
        for kind in kinds:
            x = np.zeros(n_bins * stride)
            for b in range(n_bins):
                x[b * stride] = start[b] - centre[b]
            evaluate(x, centre, counts, table, expected, slope)
            # A scale's mode is near that of the scale before it.
            for squared_scale in squared_scales:
                evidence[k] = _mode(
                    t, v, noise, counts, table, squared_scale, kind, centre, x, expected, slope,
                    spreads[k], rises[k],
                )  # fmt: skip
                for b in range(n_bins):
                    means[k, b] = x[b * stride] + centre[b]
                k += 1
    shares = _shares(evidence)
    mean, variance, rise = np.zeros(n_bins), np.zeros(n_bins), np.zeros(n_bins)
    for k in range(models):
        for b in range(n_bins):
            rise[b] += shares[k] * rises[k, b]
            mean[b] += shares[k] * means[k, b]
            variance[b] += shares[k] * (spreads[k, b] + means[k, b] * means[k, b])
    for b in range(n_bins):
        variance[b] -= mean[b] * mean[b]
    return mean, variance, rise


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
def _mode(  # type: ignore[no-untyped-def]
    t, v, noise, counts, table, squared_scale, kind, centre, x, expected, slope, spread, rise
):  # fmt: skip
    """Move x to the mode; return log p(t), up to a constant.

    Fill in the variances of f, `spread`, and by how much f rises with t in its own bin, `rise`.

    `expected` and `slope` are those at x, before and after; see `evaluate`.

    Every iteration goes to the posterior mean under g's tangent.
    """
    stride = x.size // t.size
    new, right = np.empty(x.size), np.empty(x.size)
    band = np.empty((x.size, 2 * stride + 1))
    before = _misfit(t, v, noise, expected, x, squared_scale, kind)
    for _ in range(_ITERATIONS):
        _fill_prior(band, x, stride, squared_scale, kind)
        _add_fit(band, right, t, v, noise, expected, slope, x)
        factor(band)
        solve(band, right, new)
        after = _shorten(
            t, v, noise, counts, table, squared_scale, kind, centre, x, before, new, expected, slope
        )  # fmt: skip
        gained, before = before - after, after
        if gained < _SETTLED:
            break
    _fill_prior(band, x, stride, squared_scale, kind)
    of_prior = factor(band)
    _fill_prior(band, x, stride, squared_scale, kind)
    _add_fit(band, right, t, v, noise, expected, slope, x)
    of_posterior = factor(band)
    inverse = band_of_inverse(band)
    for b in range(t.size):
        i = b * stride
        spread[b] = inverse[i, 0]
        rise[b] = inverse[i, 0] * slope[b]
        if stride == 2:
            rise[b] += inverse[i, 1] * noise[0, b]
            if b + 1 < t.size:
                rise[b] -= inverse[i, 3] * noise[1, b]
        rise[b] /= v[b]
    return 0.5 * (of_prior - of_posterior) - before


@kernel(error_model="numpy")
def _shorten(  # type: ignore[no-untyped-def]
    t, v, noise, counts, table, squared_scale, kind, centre, x, before, new, expected, slope
):  # fmt: skip
    """Move x to `new`, or half the way, a quarter, ..., to where the posterior is no smaller.

    Return the misfit there, at most `before`; `expected` and `slope` are those at x.
    """
    for _ in range(_HALVINGS):
        evaluate(new, centre, counts, table, expected, slope)
        after = _misfit(t, v, noise, expected, new, squared_scale, kind)
        if after <= before:
            for i in range(x.size):
                x[i] = new[i]
            return after
        for i in range(x.size):
            new[i] = (x[i] + new[i]) / 2
    evaluate(x, centre, counts, table, expected, slope)
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
def _fill_prior(band, x, stride, squared_scale, kind):  # type: ignore[no-untyped-def]
    """Fill in the prior's precision, as `banded` has it: of f as the kind says, of e 1.

    -log of a Cauchy density, log(1 + d^2), has the same slope at d as a square of weight
    1 / (1 + d^2), which nowhere lies below it: going to that square's minimum leads to a mode.
    """
    n_bins, last = x.size // stride, 2 * stride
    band[:] = 0.0
    for i in range(x.size):
        band[i, last] = _pull(squared_scale, kind) if i % stride == 0 else 1.0
    tie = _tie(squared_scale, kind, n_bins)
    if kind in (WALK, JUMPS):
        for b in range(1, n_bins):
            i, weight = b * stride, tie
            if kind == JUMPS:
                weight *= 2 / (1 + tie * (x[i] - x[i - stride]) ** 2)
            band[i, last] += weight
            band[i - stride, last] += weight
            band[i, last - stride] -= weight
    elif kind == CURVE:
        for b in range(2, n_bins):
            i = b * stride
            band[i, last] += tie
            band[i - stride, last] += 4 * tie
            band[i - 2 * stride, last] += tie
            band[i, last - stride] -= 2 * tie
            band[i - stride, last - stride] -= 2 * tie
            band[i, last - 2 * stride] += tie


@kernel(error_model="numpy")
def _add_fit(band, right, t, v, noise, expected, slope, x):  # type: ignore[no-untyped-def]
    """Add to the precision of x what t says under g's tangent, and fill in the right-hand side.

    Row b says slope_b f_b + a_b e_b - c_b e_(b+1) = t_b - expected_b + slope_b x_b, up to the
    variance v_b.
    """
    stride, last = x.size // t.size, band.shape[1] - 1
    right[:] = 0.0
    for b in range(t.size):
        i, weight = b * stride, 1 / v[b]
        target = weight * (t[b] - expected[b] + slope[b] * x[i])
        band[i, last] += weight * slope[b] * slope[b]
        right[i] += target * slope[b]
        if stride == 1:
            continue
        own, following = noise[0, b], noise[1, b]
        band[i + 1, last] += weight * own * own
        band[i + 1, last - 1] += weight * own * slope[b]
        right[i + 1] += target * own
        if b + 1 < t.size:
            band[i + 3, last] += weight * following * following
            band[i + 3, last - 2] -= weight * following * own
            band[i + 3, last - 3] -= weight * following * slope[b]
            right[i + 3] -= target * following


@kernel(error_model="numpy")
def _misfit(t, v, noise, expected, x, squared_scale, kind):  # type: ignore[no-untyped-def]
    """Return minus the log of likelihood times prior, up to a constant."""
    n_bins = t.size
    stride = x.size // n_bins
    pull, tie = _pull(squared_scale, kind), _tie(squared_scale, kind, n_bins)
    total = 0.0
    for b in range(n_bins):
        i = b * stride
        gap = t[b] - expected[b]
        if stride == 2:
            gap -= noise[0, b] * x[i + 1]
            if b + 1 < n_bins:
                gap += noise[1, b] * x[i + 3]
            total += x[i + 1] ** 2
        total += gap**2 / v[b] + pull * x[i] ** 2
        if b > 0 and kind == WALK:
            total += tie * (x[i] - x[i - stride]) ** 2
        elif b > 0 and kind == JUMPS:
            total += 2 * math.log(1 + tie * (x[i] - x[i - stride]) ** 2)
        elif b > 1 and kind == CURVE:
            total += tie * (x[i] - 2 * x[i - stride] + x[i - 2 * stride]) ** 2
    return 0.5 * total


@kernel("(float64, float64)", error_model="numpy")
def _tabulate(intercept, deviation):  # type: ignore[no-untyped-def]
    table = np.zeros((2, _GRID.size))
    for i in range(_GRID.size):
        for j in range(NODES.size):
            p = 1 / (1 + math.exp(-(intercept + _GRID[i] + deviation * NODES[j])))
            table[0, i] += WEIGHTS[j] * p
            table[1, i] += WEIGHTS[j] * p * (1 - p)
    return table


@kernel("(float64, float64)", error_model="numpy")
def expected_response(intercept, deviation):  # type: ignore[no-untyped-def]
    """Return E sigmoid(intercept + Z), Z ~ N(0, deviation^2)."""
    rate = 0.0
    for j in range(NODES.size):
        rate += WEIGHTS[j] / (1 + math.exp(-(intercept + deviation * NODES[j])))
    return rate


@kernel("(float64, float64, float64)", error_model="numpy")
def believable(intercept, deviation, start):  # type: ignore[no-untyped-def]
    """Return the standard deviation that scores may have around the intercept.

    The wider normal scores lie, the closer to one half is the share of positive labels that they
    lead to, E sigmoid(intercept + Z), Z ~ N(0, deviation^2). If its odds exceed those that there
    are, exp(`start`), more than `_TOLERANCE` times, scores are not as wide as functions of
    independent features would make them, or not normal: the deviation is as small then as it must
    be, and 0 if the intercept alone has larger odds than that. Above an intercept of 0 the same
    holds for negative labels.
    """
    side = 1.0 if intercept > 0 else -1.0
    rate = 1 / (1 + math.exp(side * math.log(_TOLERANCE) - start))
    least, most = 0.0, deviation
    if side * (expected_response(intercept, most) - rate) >= 0:
        return most
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        if side * (expected_response(intercept, middle) - rate) >= 0:
            least = middle
        else:
            most = middle
    return least


def expected_responses(intercept: float, deviation: float) -> np.ndarray:
    """Tabulate g(f) = E sigmoid(intercept + f + Z), Z ~ N(0, deviation^2), and g', float64 (2, G).

    g(f) is the share of positive labels in a bin of value f, if the sum of the other functions is
    normal over the bin's rows, with the variance that it has over all rows: so it is about where
    features are independent.
    """
    return np.asarray(_tabulate(intercept, deviation))


def lookup(table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return g and g' at `values`, float64 (2, B), by interpolation in a table of `_GRID`."""
    found = np.empty((2, values.size))
    evaluate(values, np.zeros(values.size), np.ones(values.size), table, found[0], found[1])
    return found


@kernel(
    "(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1])",
    error_model="numpy",
)
def evaluate(x, centre, counts, table, expected, slope):  # type: ignore[no-untyped-def]
    """Fill in n g(f), `expected`, and n g'(f), `slope`; n is `counts`, and f = `centre` + offset.

    `x` holds the offsets, one in each stride of places.
    """
    last, stride = table.shape[1] - 1, x.size // centre.size
    for b in range(centre.size):
        value = x[b * stride] + centre[b]
        if last < 0:
            expected[b], slope[b] = counts[b] * value, counts[b]
            continue
        place = min(max((value + _REACH) / _STEP, 0.0), last - 1e-9)
        i = int(place)
        rest = place - i
        expected[b] = counts[b] * (table[0, i] + rest * (table[0, i + 1] - table[0, i]))
        slope[b] = counts[b] * max(table[1, i] + rest * (table[1, i + 1] - table[1, i]), 1e-12)
