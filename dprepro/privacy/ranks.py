"""A lower bound on mu from how scores rank: sharper than guesses at one threshold."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, owens_t

FEWEST_RUNS = 1000
"""With fewer, the law of U is not taken as normal."""
_LARGEST_MU = 1.0
"""Beyond, where most pairs are ranked right, the law of U is not taken as normal either."""


def mu_by_ranks(scores: np.ndarray, present: np.ndarray, confidence: float) -> float:
    """Return the largest mu, at most 1, for which ranks refute mu-GDP; 0 if they refute none.

    U counts in how many pairs a run with the canary scores higher than one without it. Ties do not
    count. Under mu-GDP a score tells the worlds apart no better than N(0, 1) and N(mu, 1) are told
    apart, at any threshold (Dong, Roth, Su 2019). So if scores are transformed such that those
    without the canary are N(0, 1), then those with it are stochastically at most N(mu, 1). Raising
    one of these raises U, or leaves it. Hence U is stochastically at most what it is for the two
    normals. With m and n runs and h = mu / sqrt(2), that has the mean m n p and the variance

        m n (p (1 - p) + (m + n - 2) (q - p^2)),  p = Phi(h),  q = Phi(h) - 2 T(h, 1 / sqrt(3)),

    where q is how likely one normal exceeds two of the other kind, and T is Owen's function. The
    law of U is taken as normal, which for `FEWEST_RUNS` and more it nearly is. For large m and n
    this bound is as sharp as that of guesses with half as many runs again.

    Parameters
    ----------
    scores, present : float64 (N,), bool (N,)
        The larger a score, the likelier the canary is there. How scores are computed was settled
        before these runs.

    Raises
    ------
    ValueError
        With fewer than `FEWEST_RUNS` runs.
    """
    if scores.size < FEWEST_RUNS:
        raise ValueError(f"ranks need at least {FEWEST_RUNS} runs, got {scores.size}")
    without = np.sort(scores[~present])
    m, n = int(present.sum()), without.size
    if min(m, n) == 0:
        return 0.0
    won = float(np.searchsorted(without, scores[present], side="left").sum())
    deviations = float(ndtri(confidence))

    def excess(mu: float) -> float:
        """Return by how much U exceeds what is likely under mu-GDP; falls with mu."""
        h = mu / math.sqrt(2)
        p = float(ndtr(h))
        both = p - 2 * float(owens_t(h, 1 / math.sqrt(3)))
        variance = m * n * (p * (1 - p) + (m + n - 2) * (both - p * p))
        return won - m * n * p - deviations * math.sqrt(variance)

    if excess(0.0) <= 0:
        return 0.0
    if excess(_LARGEST_MU) > 0:
        return _LARGEST_MU
    return float(brentq(excess, 0.0, _LARGEST_MU, xtol=1e-9))
