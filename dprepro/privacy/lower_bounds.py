"""What outputs alone prove about epsilon: lower bounds that hold with a stated confidence.

An auditor draws one of two neighbouring datasets by a fair coin, runs the mechanism and guesses the
coin from the output. How often the guesses are right bounds epsilon from below, whatever the
mechanism does inside. Sharper bounds follow from a hypothesised trade-off curve, for one run with
many canaries, and from how scores rank, for Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri, owens_t
from scipy.stats import beta, binom

CONFIDENCE = 0.95
"""Of the bounds that are shown."""
REFUTING = 0.9999
"""Of the bounds that refute a guarantee. Who audits a hundred sound methods would see up to five
refuted by bounds that each hold with 95 %."""

_LARGEST_EPSILON = 60.0

Form = Literal["accuracy", "rates", "present", "absent"]
FORMS: tuple[Form, ...] = ("accuracy", "rates", "present", "absent")
"""What a bound is made of: the share of wrong guesses, which needs one confidence bound; the rates
of false positives and false negatives, which need two and pay off where one rate is tiny; or how
many of the guesses "present" are right, or of the guesses "absent", which needs one and pays off
there more, but holds for (epsilon, delta) alone."""

_RISK_OF_DELTA = 0.1
"""The share of the risk that more runs than are taken off fail with the probability delta."""


@dataclass(frozen=True)
class Guesses:
    """Guesses "present" or "absent" against fair coins; counts or int arrays of one shape.

    Attributes
    ----------
    false_positives, absent
        Wrong guesses "present", out of so many runs without the canary.
    false_negatives, present
        Wrong guesses "absent", out of so many runs with it.
    """

    false_positives: ArrayLike
    absent: ArrayLike
    false_negatives: ArrayLike
    present: ArrayLike

    def upper_error(self, confidence: float) -> np.ndarray:
        """Return the upper bound of the share of wrong guesses, (FPR + FNR) / 2."""
        wrong = np.add(self.false_positives, self.false_negatives)
        return upper_rate(wrong, np.add(self.absent, self.present), confidence)

    def upper_rates(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """Return upper bounds of both error rates, which hold together: half the risk each."""
        each = (1 + confidence) / 2
        return (
            upper_rate(self.false_positives, self.absent, each),
            upper_rate(self.false_negatives, self.present, each),
        )


def upper_rate(events: ArrayLike, trials: ArrayLike, confidence: float) -> np.ndarray:
    """Return Clopper and Pearson's exact upper bound of a rate, one-sided; 1 without trials."""
    events, trials = np.asarray(events), np.asarray(trials)
    missed = trials - events
    return np.where(missed > 0, beta.ppf(confidence, events + 1, np.maximum(missed, 1)), 1.0)


def mu_lower_bound(
    guesses: Guesses, form: Form = "accuracy", confidence: float = CONFIDENCE
) -> np.ndarray:
    """Return the largest mu for which mu-GDP is refuted; negative if not even mu = 0 is.

    mu-GDP is FNR >= Phi(Phi^-1(1 - FPR) - mu) for every distinguisher (Dong, Roth, Su 2019), so
    mu >= Phi^-1(1 - FPR) - Phi^-1(FNR); and FPR + FNR is smallest at FPR = FNR = Phi(-mu/2), so
    mu >= -2 Phi^-1((FPR + FNR) / 2).
    """
    if form == "accuracy":
        return -2 * ndtri(guesses.upper_error(confidence))
    if form != "rates":
        return np.full(np.shape(guesses.false_positives), -np.inf)
    false_positive, false_negative = guesses.upper_rates(confidence)
    # A rate that may be 1 says nothing; the sum of two infinities would say less.
    unknown = (false_positive >= 1) | (false_negative >= 1)
    with np.errstate(invalid="ignore"):
        return np.where(unknown, -np.inf, -ndtri(false_positive) - ndtri(false_negative))


def rho_lower_bound(
    guesses: Guesses, form: Form = "accuracy", confidence: float = CONFIDENCE
) -> np.ndarray:
    """Return the largest rho for which rho-zCDP is refuted; negative if not even rho = 0 is.

    rho-zCDP keeps the Kullback-Leibler divergence of either world from the other at rho (Bun,
    Steinke 2016). A guess post-processes, so kl(1 - FNR || FPR) <= rho and kl(1 - FPR || FNR) <=
    rho. As kl is jointly convex, kl(1 - e || e) <= rho for e = (FPR + FNR) / 2, and that is
    (1 - 2 e) ln((1 - e) / e). Only the form "accuracy" says anything.
    """
    if form != "accuracy":
        return np.full(np.shape(guesses.false_positives), -np.inf)
    error = guesses.upper_error(confidence)
    return np.abs(1 - 2 * error) * _log_ratio(1 - error, error)


def epsilon_lower_bound(
    guesses: Guesses, delta: float, form: Form = "accuracy", confidence: float = CONFIDENCE
) -> np.ndarray:
    """Return the largest epsilon for which (epsilon, delta)-DP is refuted; can be negative.

    For every distinguisher 1 - FNR <= e^epsilon FPR + delta and 1 - FPR <= e^epsilon FNR + delta
    (Kairouz, Oh, Viswanath 2015). Their sum bounds the error (FPR + FNR) / 2 from below by
    (1 - delta) / (1 + e^epsilon).

    Of the runs in which one of the two guesses is made, a share of at most e^epsilon / (1 +
    e^epsilon) is guessed right, as the coins are fair, up to delta: the runs in which a right guess
    comes from the part of the probability that delta covers are Binomial(runs, delta / 2) at most.
    So many as are likely are taken off the right guesses.
    """
    if form == "accuracy":
        error = guesses.upper_error(confidence)
        return _log_ratio(1 - delta - error, error)
    if form != "rates":
        return _of_one_guess(guesses, delta, form, confidence)
    false_positive, false_negative = guesses.upper_rates(confidence)
    return np.maximum(
        _log_ratio(1 - delta - false_negative, false_positive),
        _log_ratio(1 - delta - false_positive, false_negative),
    )


def _of_one_guess(guesses: Guesses, delta: float, guess: Form, confidence: float) -> np.ndarray:
    """Return the bound by the right ones among all guesses "present", or all guesses "absent"."""
    if guess == "present":
        right = np.subtract(guesses.present, guesses.false_negatives)
        wrong = np.asarray(guesses.false_positives)
    else:
        right = np.subtract(guesses.absent, guesses.false_positives)
        wrong = np.asarray(guesses.false_negatives)
    risk_of_delta = _RISK_OF_DELTA * (1 - confidence) if delta else 0.0
    runs = np.add(guesses.absent, guesses.present)
    covered = binom.isf(risk_of_delta, runs, delta / 2) if delta else 0
    right = np.maximum(right - covered, 0)
    error = upper_rate(wrong, right + wrong, confidence + risk_of_delta)
    return _log_ratio(1 - error, error)


def _log_ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(numerator, 0.0)) - np.log(denominator)


def one_run_p_value(
    canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    """Return how likely so many correct guesses are under (epsilon, delta)-DP, at most.

    Each of m canaries is put in or left out by its own fair coin; one run is made; from its output
    the auditor guesses r of the coins and gets v right. With W ~ Binomial(r, q), where
    q = e^epsilon / (1 + e^epsilon), every run that is (epsilon, delta)-DP with respect to one
    canary has

        P[correct >= v] <= P[W >= v] + m delta P[W >= v] P[W < v] / (v P[W = v]),

    and one attains it. By symmetry the worst run guesses every set of r coins alike, and errs in
    every set of k of them with the same probability p_k; changing a coin is then
    sum_k C(r-1, k) (p_k - e^epsilon p_(k+1))^+ <= m delta / r, and likewise for p_(k+1) - e^epsilon
    p_k. Chaining these from k <= r - v to k > r - v gives the bound; equality costs all of delta at
    k = r - v. Steinke, Nasr and Jagielski (2023) bound the second term by
    2 m delta max_i P[v - i <= W < v] / i, which is up to five times as large in the tail.

    Raises ValueError unless 0 <= correct <= guesses <= canaries, epsilon >= 0 and 0 <= delta <= 1.
    """
    check_counts(canaries, guesses, correct)
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise ValueError(
            f"epsilon must be at least 0 and delta in [0, 1], got {epsilon!r} and {delta!r}"
        )
    # In errors, whose rate keeps its digits at a large epsilon, and in logarithms for the tails.
    at = (guesses - correct, guesses, float(expit(-epsilon)))
    if correct == 0:
        return 1.0
    tail = float(binom.cdf(*at))
    both_sides = binom.logcdf(*at) + binom.logsf(*at) - binom.logpmf(*at)
    return min(1.0, tail + canaries * delta / correct * math.exp(both_sides))


def check_counts(canaries: int, guesses: int, correct: int) -> None:
    """Raise ValueError unless 0 <= correct <= guesses <= canaries."""
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(
            "correct <= guesses <= canaries must be counts, "
            f"got {correct!r}, {guesses!r} and {canaries!r}"
        )


def one_run_lower_bound(
    canaries: int, guesses: int, correct: int, delta: float, confidence: float = CONFIDENCE
) -> float:
    """Return the largest epsilon that one run refutes at the given confidence, 0 if none.

    Raises as `one_run_p_value`. `guesses` must have been fixed before the coins were looked at.
    """

    def excess(epsilon: float) -> float:
        return one_run_p_value(canaries, guesses, correct, epsilon, delta) - (1 - confidence)

    if excess(0.0) >= 0:
        return 0.0
    return float(brentq(excess, 0.0, _LARGEST_EPSILON, xtol=1e-9))


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

    Raises ValueError unless 0 <= correct <= guesses <= canaries.
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


FEWEST_RUNS = 1000
"""With fewer, the law of U is not taken as normal."""
_LARGEST_MU_OF_RANKS = 1.0
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

    Raises ValueError with fewer than `FEWEST_RUNS` runs.

    Parameters
    ----------
    scores, present : float64 (N,), bool (N,)
        The larger a score, the likelier the canary is there. How scores are computed was settled
        before these runs.
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
    if excess(_LARGEST_MU_OF_RANKS) > 0:
        return _LARGEST_MU_OF_RANKS
    return float(brentq(excess, 0.0, _LARGEST_MU_OF_RANKS, xtol=1e-9))
