"""The bound of one run under a Gaussian trade-off curve."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.lower_bounds import one_run_lower_bound, one_run_mu_bound, refutes_gaussian


def test_the_figure_of_ten_thousand_canaries():
    """1,486 of 2,500 guesses right; the exact worst case of all mechanisms says .314."""
    counts = 10_000, 2_500, 1_486
    assert epsilon_of(one_run_mu_bound(*counts), 1e-6) == pytest.approx(0.529, abs=5e-4)
    assert one_run_lower_bound(*counts, 1e-6) == pytest.approx(0.314, abs=5e-4)


@pytest.mark.parametrize("confidence", [0.2, 0.4])
def test_a_single_guess_is_refuted_beyond_the_best_accuracy(confidence):
    """One canary, one right guess: mu-GDP allows it with probability Phi(mu / 2)."""
    expected = 2 * norm.ppf(1 - confidence)
    assert one_run_mu_bound(1, 1, 1, confidence) == pytest.approx(expected, abs=1e-6)
    assert one_run_mu_bound(1, 1, 1, confidence) <= expected


def largest_tail(mu, canaries, guesses, correct):
    """Return the largest P[so many right or more] that all inequalities of the proof allow.

    A linear programme over p_0, ..., p_r, with the curve's tangents.
    """
    i = np.arange(guesses + 1)
    rows, limits = [], []
    for x in norm.cdf(np.linspace(-6, 6, 400)):
        z = norm.ppf(x)
        slope, value = math.exp(-mu * z - mu**2 / 2), norm.cdf(z + mu)
        for start in range(1, guesses + 1):
            right = np.where(i >= start, i, 0) / canaries
            wrong = np.where(i >= start - 1, guesses - i, 0) / canaries
            rows.append(right - slope * wrong)
            limits.append(value - slope * x)
    found = linprog(
        -(i >= correct).astype(float), A_ub=np.array(rows), b_ub=limits,
        A_eq=np.ones((1, guesses + 1)), b_eq=[1.0],
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize(("canaries", "guesses", "correct"), [(4, 4, 3), (12, 6, 5)])
def test_the_test_decides_as_the_linear_programme(canaries, guesses, correct):
    for mu in (0.3, 1.0):
        tail = largest_tail(mu, canaries, guesses, correct)
        tested = [
            refutes_gaussian(np.array([mu]), canaries, guesses, correct, tail * factor)[0]
            for factor in (1.02, 0.98)
        ]
        assert tested == [True, False]


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_a_true_gaussian_mechanism_is_refuted_no_more_often_than_stated(mu):
    """Independent sums, each moved by a canary or not; the surest quarter is guessed at."""
    canaries, guesses, repeats = 400, 100, 1000
    rng = np.random.default_rng(0)
    coins = rng.random((repeats, canaries)) < 0.5
    scores = rng.standard_normal((repeats, canaries)) + mu * (coins - 0.5)
    surest = np.argsort(-np.abs(scores), axis=1)[:, :guesses]
    right = np.take_along_axis((scores > 0) == coins, surest, axis=1).sum(axis=1)
    numbers, which = np.unique(right, return_inverse=True)
    refuted = [
        refutes_gaussian(np.array([mu]), canaries, guesses, int(v), 0.05)[0] for v in numbers
    ]
    assert np.mean(np.array(refuted)[which]) <= 0.05 + 3 * math.sqrt(0.05 / repeats)
    low, high = (
        one_run_mu_bound(canaries, guesses, int(np.quantile(right, q))) for q in (0.1, 0.9)
    )
    assert 0 < high < 1.3 * mu
    assert low < high


def test_chance_and_no_guess_refute_nothing():
    assert one_run_mu_bound(1000, 1000, 510) == 0.0
    assert one_run_mu_bound(10, 0, 0) == 0.0


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="must be counts"):
        one_run_mu_bound(10, 5, 6)
