"""Smooth distributions: no row gets more than 1 / (kappa n) of the weight."""

from __future__ import annotations

import math

import numpy as np

_ROUNDING = 1e-12


def project(log_measure: np.ndarray, density: float) -> np.ndarray:
    """Return the Bregman projection of a measure onto those of density at least kappa.

    Among measures with values in [0, 1] and a sum of at least kappa n it is the one nearest to
    exp(log_measure) in KL divergence: min(1, c exp(log_measure)), where c = 1 if that sum is
    reached already, and else c > 1 such that it is reached exactly (Barak, Hardt, Kale 2009; Asadi
    et al. 2022, section 2.1). One sort gives c: with the i largest values capped at 1, c is
    (kappa n - i) over the sum of all others, and the first i at which no other exceeds 1 is it.

    Parameters
    ----------
    log_measure
        float64 (n,), finite; logarithms, so that no weight is lost to underflow.
    density
        kappa, in (0, 1].

    Returns
    -------
    float64 (n,) in [0, 1]
    """
    capped = np.exp(np.minimum(log_measure, 0.0))
    least = density * log_measure.size
    if capped.sum() >= least:
        return capped
    falling = np.sort(log_measure)[::-1]
    log_rest = np.logaddexp.accumulate(falling[::-1])[::-1]
    largest = np.arange(math.ceil(least))  # at most this many can be capped
    log_factor = np.log(least - largest) - log_rest[: largest.size]
    first = np.argmax(log_factor + falling[: largest.size] <= _ROUNDING)
    return np.exp(np.minimum(log_measure + log_factor[first], 0.0))


def smooth_weights(log_measure: np.ndarray, density: float) -> np.ndarray:
    """Return the projection normalised: float64 (n,) of sum 1, each at most 1 / (kappa n)."""
    measure = project(log_measure, density)
    return measure / measure.sum()
