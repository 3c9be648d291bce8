"""One run against a hypothesised trade-off curve: a sharper bound than for (epsilon, delta)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from dprepro.privacy.audit import CONFIDENCE, check_counts

CURVE = "Gaussian trade-off curve"
"""The hypothesis under which `one_run_mu_bound` holds, in words."""

_LARGEST_MU = 16.0
_GRID, _REFINEMENTS = 33, 5
"""Values of mu that are tried at once, and how often the interval between two of them is divided:
16 / 32^5 is below 1e-6."""


def one_run_mu_bound(
    canaries: int, guesses: int, correct: int, confidence: float = CONFIDENCE
) -> float:
    """Return the largest mu for which one run refutes mu-GDP, 0 if none.

    Each of m canaries is put in or left out by its own fair coin; one run is made; from its output
    the auditor guesses r of the coins and gets v right. The hypothesis is that the mechanism is
    mu-GDP with respect to one canary: what is likely x without it is likely F(x) with it, at most,
    where F(x) = Phi(Phi^-1(x) + mu). See `refutes_gaussian` for the test.

    Raises
    ------
    ValueError
        Unless 0 <= correct <= guesses <= canaries.
    """
    check_counts(canaries, guesses, correct)
    low, high = 0.0, _LARGEST_MU
    for _ in range(_REFINEMENTS):
        tried = np.linspace(low, high, _GRID)
        refuted = refutes_gaussian(tried, canaries, guesses, correct, 1 - confidence)
        # A mechanism that is mu-GDP is so for every larger mu: the refuted ones come first.
        last = int(refuted.sum()) - 1
        if last < 0:
            return 0.0
        # The largest is not refuted: there any number of right guesses is likely.
        low, high = float(tried[last]), float(tried[last + 1])
    return low


def refutes_gaussian(
    mu: np.ndarray, canaries: int, guesses: int, correct: int, risk: float
) -> np.ndarray:
    """Return for each mu whether v right guesses or more are less likely than `risk`, bool.

    By Mahloujifar, Melis and Chaudhuri (2025). Let p_i be the probability of i right guesses. For a
    canary drawn at random, {its guess is right, and i in all} has the probability i p_i / m; its
    coin turned, the guess is wrong and i - 1 are right: (r - i + 1) p_(i-1) / m. F is concave, so
    for every i the sums R_i = sum_(t >= i) t p_t / m and H_i = sum_(t >= i) (r - t) p_t / m satisfy

        R_i <= F(H_(i-1)),  that is  H_(i-1) >= F^-1(R_i).

    If the tail from v on holds at least `risk`, R and H are least when all of it lies at v. Going
    down from there, H_i = max(H_(i+1), F^-1(R_(i+1))) is least, and R_i grows by i / (r - i) times
    what H_i grows. All p_i sum to 1, so R_0 + H_0 = r / m; a larger sum is a contradiction.

    Parameters
    ----------
    mu : float64 (M,)
        Values to test.
    risk
        The level of the test.
    """
    wrong, whole = guesses - correct, guesses / canaries
    right_part = np.full(mu.shape, risk * correct / canaries)
    wrong_part = np.full(mu.shape, risk * wrong / canaries)
    for i in range(correct - 1, -1, -1):
        # Beyond 1 the contradiction is there already.
        needed = ndtr(ndtri(np.minimum(right_part, 1.0)) - mu)
        grown = np.maximum(wrong_part, needed)
        right_part += i / (guesses - i) * (grown - wrong_part)
        wrong_part = grown
    return np.asarray(right_part + wrong_part > whole)
