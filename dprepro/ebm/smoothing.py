"""Smoothing of noisy values by empirical Bayes: the noise is known, the roughness is not.

Pure post-processing: everything here works on what has been released.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_PULL = 0.3
"""A walk also pulls every value to zero, this much less than it ties the ends to each other."""


def smooth(
    values: np.ndarray, variances: np.ndarray, scales: np.ndarray, *, ordered: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean and variance of values seen through Gaussian noise, float64 (B,).

    z_b = f_b + N(0, v_b) with known v. A priori f is Gaussian with mean zero: independent values
    of variance s^2, or, if `ordered`, as likely a walk over the bins whose two ends differ with
    variance s^2. Each s in `scales` is as likely as any other before the data; afterwards they
    are weighed by the marginal likelihood of z, and the answer is the average (Bayesian model
    averaging). A small s shrinks, so that what is lost in the noise becomes zero.

    All matrices are tridiagonal: O(B) time for each s.

    Parameters
    ----------
    values, variances : float64 (B,)
        z and v; v is positive.
    scales : float64 (S,)
        Candidates for s, positive, in the unit of `values`.
    ordered
        Whether neighbouring bins are neighbours in value, too.
    """
    walks = (True, False) if ordered and values.size > 2 else (False,)
    models = np.array([(s * s, walk) for walk in walks for s in scales])
    return _average(values, variances, models)


@njit(nogil=True, cache=True, error_model="numpy")
def _average(z, v, models):  # type: ignore[no-untyped-def]
    means, spreads = np.empty((len(models), z.size)), np.empty((len(models), z.size))
    evidence = np.empty(len(models))
    for m in range(len(models)):
        evidence[m] = _posterior(z, v, models[m, 0], models[m, 1] > 0, means[m], spreads[m])
    mean, square, total = np.zeros(z.size), np.zeros(z.size), 0.0
    highest = evidence.max()
    for m in range(len(models)):
        weight = math.exp(evidence[m] - highest)
        total += weight
        mean += weight * means[m]
        square += weight * (spreads[m] + means[m] ** 2)
    mean /= total
    return mean, square / total - mean**2


@njit(nogil=True, cache=True, error_model="numpy")
def _posterior(z, v, variance, walk, mean, spread):  # type: ignore[no-untyped-def]
    """Fill in posterior means and variances; return log p(z) up to a constant.

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
