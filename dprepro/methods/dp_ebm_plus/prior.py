"""Gaussian priors of functions and histograms, their posteriors, and how likely each prior is.

What is inferred is a vector f of B values: a function on its bins, or a histogram on its cells. A
priori f ~ N(0, s^2 Q^-1). Q says how neighbours hang together: not at all (categories), as an
Ornstein-Uhlenbeck process, or as a curve whose second differences are small. Several sizes s are
tried with each Q. The answers about f are

    t_b = h_b f_b + N(0, v_b) + a_b e_b - c_b e_(b+1),

where e_b are independent standard normal numbers: noise that neighbours share, by the strategy
that was asked with. Each prior gives a normal posterior, and the evidence of t. `mixture` averages
the posteriors, weighted by their evidence (empirical Bayes). Where noise is large the evidence says
nothing: then all effects are shrunk alike, and none is set to 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dprepro.runtime.kernels import kernel

SIZES = np.array([1 / 27, 1 / 9, 1 / 3, 1.0, 3.0, 9.0])
"""s, in the unit of the loss."""

REACHES = (1.0, 0.2)
"""At which parts of the range an Ornstein-Uhlenbeck process has a correlation of 1/e."""

_BEND, _PULL = 0.05, 0.3
"""A curve has the precision `_BEND` (B - 1)^3 D'D + `_PULL` I, D being second differences. With 30
bins a line is then about twice as large a priori as the largest bend."""


@dataclass(frozen=True)
class Priors:
    """M priors of B values: precisions Q, and sizes.

    Attributes
    ----------
    diagonal, next, second : float64 (M, B)
        Q_bb, Q_b,b+1 and Q_b,b+2.
    sizes : float64 (M,)
        s. They run through all sizes for one Q, then for the next.
    """

    diagonal: np.ndarray
    next: np.ndarray
    second: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, precisions: Sequence[tuple[np.ndarray, ...]], sizes: np.ndarray) -> Priors:
        """Return each of the `precisions`, (diagonal, next) or (.., second), with each size."""
        zeros = np.zeros_like(precisions[0][0])
        rows = [(*q, zeros)[:3] for q in precisions]
        diagonal, beside, second = (
            np.repeat(np.array(part), sizes.size, axis=0) for part in zip(*rows, strict=True)
        )
        return cls(diagonal, beside, second, np.tile(sizes, len(precisions)))


class Posteriors(NamedTuple):
    """What each of M priors makes of t: float64 (M, B) each, and log evidence (M,)."""

    means: np.ndarray
    variances: np.ndarray
    rises: np.ndarray
    evidence: np.ndarray


class Posterior(NamedTuple):
    """What is known of f, each float64 (B,); `rise` is d mean_b / d t_b."""

    mean: np.ndarray
    variance: np.ndarray
    rise: np.ndarray


def independent(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the precision of values that have nothing to do with each other."""
    return np.ones(size), np.zeros(size)


def ornstein_uhlenbeck(apart: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the precision of values with variance 1 and correlation exp(-distance / reach).

    `apart`, float64 (B - 1,), are the distances of neighbours. Returns Q_bb, and Q_b,b+1 with a 0
    at the end.
    """
    alike = np.array([math.exp(-d / reach) for d in apart])
    left = np.append(1 - alike**2, 1.0)
    right = np.append(1.0, 1 - alike**2)
    diagonal = 1 / left + 1 / right - 1
    return diagonal, np.append(-alike / (1 - alike**2), 0.0)


def curve(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the precision of values of which second differences are small; see `_BEND`."""
    bends = max(size - 2, 0)
    parts = np.zeros((3, size))
    parts[0] = _PULL
    tie = _BEND * (size - 1) ** 3
    for place, square in enumerate((1.0, 4.0, 1.0)):
        parts[0, place : place + bends] += tie * square
    for place in range(2):
        parts[1, place : place + bends] -= 2 * tie
    parts[2, :bends] += tie
    return parts[0], parts[1], parts[2]


def with_missing(parts: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return a precision with one more value, of missing ones, that has no neighbour."""
    return tuple(np.append(part, 1.0 if k == 0 else 0.0) for k, part in enumerate(parts))


def posteriors(
    t: np.ndarray,
    v: np.ndarray,
    shared: np.ndarray,
    h: np.ndarray,
    priors: Priors,
    unit: float,
    has_level: bool = False,
) -> Posteriors:
    """Return what each prior makes of t; see the module.

    Parameters
    ----------
    t, v, h : float64 (B,)
        Answers, variances of what is their own alone, and how t rises with f. v is positive.
    shared : float64 (2, B)
        a and c; the last of c is 0.
    unit
        Of the sizes.
    has_level
        Whether t is of f plus a level, of which nothing is known. It is what fits best with each
        prior, and the evidence is the mean over all levels.
    """
    squares = (priors.sizes * unit) ** 2
    return Posteriors(
        *_posteriors(
            t, v, shared, h, priors.diagonal, priors.next, priors.second, squares, has_level
        )
    )


def log_normal(sizes: np.ndarray, usual: float, spread: float) -> np.ndarray:
    """Return how likely sizes are before any answer, float64 (S,): log-normal, adding up to 1."""
    weights = np.exp(-0.5 * (np.log(sizes / usual) / math.log(spread)) ** 2)
    return np.asarray(weights / weights.sum())


def half_cauchy(sizes: np.ndarray, scale: float) -> np.ndarray:
    """Return how likely sizes in even ratios are before any answer, float64 (S,), adding up to 1.

    The prior of Gelman (2006) for a standard deviation: most sizes are below `scale`, and one that
    is far larger needs little evidence.
    """
    weights = sizes / (scale**2 + sizes**2)
    return np.asarray(weights / weights.sum())


def mixture(each: Posteriors, of_sizes: np.ndarray) -> Posterior:
    """Return the average of posteriors, weighted by evidence and how likely sizes are before."""
    logs = each.evidence + np.log(np.tile(of_sizes, each.evidence.size // of_sizes.size))
    weights = np.exp(logs - logs.max())
    shares = (weights / weights.sum())[:, None]
    # No matrix product: its last digit is not the same on every machine.
    mean = (shares * each.means).sum(axis=0)
    square = (shares * (each.variances + each.means**2)).sum(axis=0)
    rise = (shares * each.rises).sum(axis=0)
    return Posterior(mean, np.maximum(square - mean**2, 0.0), rise)


@kernel(error_model="numpy")
def _fill(band, diagonal, following, second, square):  # type: ignore[no-untyped-def]
    """Fill in the precision of x = (f_1, e_1, f_2, e_2, ...): Q / s^2 of f, and 1 of e."""
    band[:] = 0.0
    for b in range(diagonal.size):
        i = 2 * b
        band[i, 4] = diagonal[b] / square
        band[i + 1, 4] = 1.0
        if b > 0:
            band[i, 2] = following[b - 1] / square
        if b > 1:
            band[i, 0] = second[b - 2] / square


@kernel(
    "(float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], "
    "float64[:, ::1], float64[:, ::1], float64[::1], boolean)",
    error_model="numpy",
)
def _posteriors(  # type: ignore[no-untyped-def]
    t, v, shared, h, diagonal, following, second, squares, has_level
):
    """Do what `posteriors` says: f and e are inferred together, by one banded system.

    A level l has the precision h' h / v, and `tied` is what ties it to f and e.
    """
    models, size = squares.size, t.size
    means, variances = np.empty((models, size)), np.empty((models, size))
    rises, evidence = np.empty((models, size)), np.empty(models)
    band, right, found = np.empty((2 * size, 5)), np.empty(2 * size), np.empty(2 * size)
    tied, by_level = np.empty(2 * size), np.empty(2 * size)
    for m in range(models):
        _fill(band, diagonal[m], following[m], second[m], squares[m])
        of_prior = factor(band)
        _fill(band, diagonal[m], following[m], second[m], squares[m])
        right[:], tied[:] = 0.0, 0.0
        square, precision, towards = 0.0, 0.0, 0.0
        for b in range(size):
            i, weight, own, after = 2 * b, 1 / v[b], shared[0, b], shared[1, b]
            square += weight * t[b] * t[b]
            band[i, 4] += weight * h[b] * h[b]
            band[i + 1, 4] += weight * own * own
            band[i + 1, 3] += weight * own * h[b]
            right[i] += weight * t[b] * h[b]
            right[i + 1] += weight * t[b] * own
            precision += weight * h[b] * h[b]
            towards += weight * t[b] * h[b]
            tied[i] += weight * h[b] * h[b]
            tied[i + 1] += weight * h[b] * own
            if b + 1 < size:
                tied[i + 3] -= weight * h[b] * after
                band[i + 3, 4] += weight * after * after
                band[i + 3, 2] -= weight * after * own
                band[i + 3, 1] -= weight * after * h[b]
                right[i + 3] -= weight * t[b] * after
        of_posterior = factor(band)
        solve(band, right, found)
        inverse = band_of_inverse(band)
        for i in range(2 * size):
            square -= right[i] * found[i]
        if has_level:
            solve(band, tied, by_level)
            for i in range(2 * size):
                precision -= tied[i] * by_level[i]
                towards -= tied[i] * found[i]
            for i in range(2 * size):
                found[i] -= by_level[i] * towards / precision
            square += math.log(precision) - towards * towards / precision
        evidence[m] = 0.5 * (of_prior - of_posterior - square)
        for b in range(size):
            i = 2 * b
            means[m, b] = found[i]
            variances[m, b] = inverse[i, 0]
            rise = inverse[i, 0] * h[b] + inverse[i, 1] * shared[0, b]
            if b + 1 < size:
                rise -= inverse[i, 3] * shared[1, b]
            rises[m, b] = rise / v[b]
    return means, variances, rises, evidence


# --- banded systems -------------------------------------------------------------------------------

# A banded, positive definite matrix A of n rows is float64 (n, w + 1), for w bands on either side:
# row i holds the entries (i, i - w) to (i, i). Those left of the first column are not read.


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
