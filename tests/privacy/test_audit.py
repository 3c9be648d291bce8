"""Lower bounds on epsilon: against closed forms, brute force and coverage."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dprepro.privacy.audit import (
    FORMS,
    Guesses,
    epsilon_lower_bound,
    mu_lower_bound,
    one_run_lower_bound,
    one_run_p_value,
    upper_rate,
)

MANY = 10_000_000


@pytest.mark.parametrize(("events", "trials"), [(0, 20), (3, 50), (49, 50)])
def test_at_the_upper_rate_so_few_events_are_just_as_unlikely_as_stated(events, trials):
    rate = upper_rate(events, trials, 0.95)
    assert binom.cdf(events, trials, rate) == pytest.approx(0.05)


def test_all_events_or_no_trials_leave_the_rate_open():
    np.testing.assert_array_equal(upper_rate([5, 0], [5, 0], 0.95), [1.0, 1.0])


def guesses_at(false_positive, false_negative, trials=MANY):
    return Guesses(round(false_positive * trials), trials, round(false_negative * trials), trials)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("form", FORMS)
def test_with_many_trials_the_gaussian_bound_finds_mu(mu, form):
    at_the_middle = guesses_at(norm.cdf(-mu / 2), norm.cdf(-mu / 2))
    assert mu_lower_bound(at_the_middle, form) == pytest.approx(mu, abs=0.01)
    assert mu_lower_bound(at_the_middle, form) < mu


def test_only_the_rates_find_mu_at_a_threshold_off_the_middle():
    mu = 1.5
    tail = guesses_at(norm.sf(2.5), norm.cdf(2.5 - mu))
    assert mu_lower_bound(tail, "rates") == pytest.approx(mu, abs=0.01)
    assert mu_lower_bound(tail, "accuracy") < mu - 0.5


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("form", FORMS)
def test_randomised_response_shows_its_epsilon(epsilon, delta, form):
    """With probability delta the secret is told, else it is answered at random."""
    wrong = (1 - delta) / (1 + math.exp(epsilon))
    bound = epsilon_lower_bound(guesses_at(wrong, wrong), delta, form)
    assert bound == pytest.approx(epsilon, abs=0.01)
    assert bound < epsilon


def test_the_rates_work_in_both_directions():
    tail = guesses_at(0.001, 0.5)
    mirrored = guesses_at(0.5, 0.001)
    bounds = [float(epsilon_lower_bound(g, 0.0, "rates")) for g in (tail, mirrored)]
    assert bounds[0] == pytest.approx(bounds[1])
    assert bounds[0] == pytest.approx(math.log(500), abs=0.1)


def test_blind_guesses_prove_nothing():
    blind = guesses_at(0.5, 0.5, trials=500)
    for form in FORMS:
        assert mu_lower_bound(blind, form) < 0
        assert epsilon_lower_bound(blind, 0.0, form) < 0
    assert mu_lower_bound(guesses_at(1.0, 0.0, trials=10), "rates") == -np.inf


def test_arrays_of_thresholds_are_judged_at_once():
    guesses = Guesses(np.array([1, 5]), 50, np.array([9, 5]), 50)
    both = mu_lower_bound(guesses, "rates")
    assert both.shape == (2,)
    assert both[1] == mu_lower_bound(Guesses(5, 50, 5, 50), "rates")


@pytest.mark.parametrize("form", FORMS)
def test_bounds_are_wrong_no_more_often_than_stated(form):
    """Fair coins, a mechanism that is exactly mu-GDP, the best threshold: 95 % coverage."""
    mu, trials, repeats = 1.0, 200, 2000
    rng = np.random.default_rng(0)
    present = rng.binomial(trials, 0.5, repeats)
    wrong = norm.cdf(-mu / 2)
    guesses = Guesses(
        rng.binomial(trials - present, wrong), trials - present,
        rng.binomial(present, wrong), present,
    )  # fmt: skip
    assert np.mean(mu_lower_bound(guesses, form) > mu) <= 0.05 + 3 * math.sqrt(0.05 / repeats)


# --- one run -------------------------------------------------------------------------------------


def test_without_delta_the_p_value_is_a_binomial_tail():
    rate = math.exp(1.0) / (1 + math.exp(1.0))
    assert one_run_p_value(100, 50, 45, 1.0, 0.0) == pytest.approx(binom.sf(44, 50, rate))


def test_the_delta_term_is_the_formula_written_out():
    m, r, v, epsilon, delta = 40, 30, 26, 0.7, 1e-3
    w = binom(r, 1 / (1 + math.exp(-epsilon)))
    steepest = max(sum(w.pmf(j) for j in range(v - i, v)) / i for i in range(1, v + 1))
    expected = w.sf(v - 1) + 2 * m * delta * steepest
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(expected)


def test_more_delta_or_epsilon_makes_correct_guesses_likelier():
    by_delta = [one_run_p_value(100, 100, 80, 0.5, d) for d in (0.0, 1e-4, 1e-2)]
    by_epsilon = [one_run_p_value(100, 100, 80, e, 1e-4) for e in (0.1, 0.5, 1.0, 1.3)]
    assert by_delta == sorted(set(by_delta))
    assert by_epsilon == sorted(set(by_epsilon))
    assert one_run_p_value(100, 100, 0, 1.0, 0.5) == 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_lower_bound_inverts_the_p_value(delta):
    bound = one_run_lower_bound(1000, 1000, 800, delta)
    assert one_run_p_value(1000, 1000, 800, bound, delta) == pytest.approx(0.05, abs=1e-6)
    assert bound < math.log(800 / 200)


def test_the_published_example_of_all_guesses_correct():
    """v = r = m: P[W >= v] = q^m, so epsilon = logit(0.05^(1/m))."""
    rate = 0.05 ** (1 / 100)
    assert one_run_lower_bound(100, 100, 100, 0.0) == pytest.approx(math.log(rate / (1 - rate)))


def test_chance_refutes_nothing():
    assert one_run_lower_bound(1000, 1000, 510, 0.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_on_every_canary_is_covered(epsilon):
    """The extreme case of the theorem: bounds above the truth are as rare as stated."""
    rng = np.random.default_rng(1)
    correct = rng.binomial(300, 1 / (1 + math.exp(-epsilon)), 400)
    bounds = np.array([one_run_lower_bound(300, 300, int(v), 0.0) for v in correct])
    assert np.mean(bounds > epsilon) <= 0.05 + 3 * math.sqrt(0.05 / 400)
    assert np.median(bounds) > 0.5 * epsilon


@pytest.mark.parametrize("arguments", [(10, 11, 5, 1.0, 0.0), (10, 5, 6, 1.0, 0.0),
                                       (10, 5, -1, 1.0, 0.0), (10, 5, 5, -1.0, 0.0),
                                       (10, 5, 5, 1.0, 2.0)])  # fmt: skip
def test_impossible_counts_are_refused(arguments):
    with pytest.raises(ValueError, match="must be"):
        one_run_p_value(*arguments)
