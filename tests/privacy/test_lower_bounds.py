"""Lower bounds on epsilon: against closed forms, brute force and coverage."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, norm

from dprepro.privacy.lower_bounds import (
    FORMS,
    Guesses,
    epsilon_lower_bound,
    mu_lower_bound,
    one_run_lower_bound,
    one_run_p_value,
    rho_lower_bound,
    upper_rate,
)

MANY = 10_000_000
GAUSSIAN_FORMS = ("accuracy", "rates")


@pytest.mark.parametrize(("events", "trials"), [(0, 20), (3, 50), (49, 50)])
def test_at_the_upper_rate_so_few_events_are_just_as_unlikely_as_stated(events, trials):
    rate = upper_rate(events, trials, 0.95)
    assert binom.cdf(events, trials, rate) == pytest.approx(0.05)


def test_all_events_or_no_trials_leave_the_rate_open():
    np.testing.assert_array_equal(upper_rate([5, 0], [5, 0], 0.95), [1.0, 1.0])


def guesses_at(false_positive, false_negative, trials=MANY):
    return Guesses(round(false_positive * trials), trials, round(false_negative * trials), trials)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("form", GAUSSIAN_FORMS)
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


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_one_kind_of_guess_shows_more_of_a_rare_event_than_both_rates(delta):
    """e^1 as likely with the canary, and delta: what either form has proved holds, but for luck."""
    rare = Guesses(200, 10_000, 10_000 - round(200 * math.e + 10_000 * delta), 10_000)
    one, both = (epsilon_lower_bound(rare, delta, form) for form in ("present", "rates"))
    assert both + 0.05 < one < 1.0


def test_guesses_present_and_absent_mirror_each_other():
    guesses, mirrored = Guesses(3, 100, 80, 90), Guesses(80, 90, 3, 100)
    assert epsilon_lower_bound(guesses, 1e-4, "present") == pytest.approx(
        float(epsilon_lower_bound(mirrored, 1e-4, "absent"))
    )


@pytest.mark.parametrize("delta", [0.0, 0.005])
def test_a_right_guess_that_delta_covers_is_no_evidence(delta):
    """With probability delta alone the canary is told, and is the only reason for a guess."""
    rng = np.random.default_rng(3)
    present = rng.binomial(2000, 0.5, 1000)
    told = Guesses(0, 2000 - present, present - rng.binomial(present, delta), present)
    assert np.mean(epsilon_lower_bound(told, delta, "present") > 0) <= 0.05 + 3 * 0.007


def test_of_a_delta_that_covers_no_run_a_tenth_of_the_risk_is_spent():
    guesses = Guesses(3, 100, 30, 100)
    found = epsilon_lower_bound(guesses, 1e-12, "present", 0.95)
    assert found == epsilon_lower_bound(guesses, 0.0, "present", 0.955)


def test_one_kind_of_guess_says_nothing_of_a_curve():
    assert mu_lower_bound(Guesses(0, 100, 50, 100), "present") == -np.inf
    assert rho_lower_bound(Guesses(0, 100, 50, 100), "present") == -np.inf


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_rho_of_randomised_response_is_its_divergence(epsilon):
    wrong = 1 / (1 + math.exp(epsilon))
    bound = float(rho_lower_bound(guesses_at(wrong, wrong)))
    assert bound == pytest.approx((1 - 2 * wrong) * epsilon, rel=0.03)
    assert bound < (1 - 2 * wrong) * epsilon


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


def lower_bounds(canaries, correct, delta):
    """Return the bound of every number of correct guesses; each number is worked out once."""
    numbers, which = np.unique(correct, return_inverse=True)
    found = [one_run_lower_bound(canaries, canaries, int(v), delta) for v in numbers]
    return np.array(found)[which]


def test_without_delta_the_p_value_is_a_binomial_tail():
    rate = math.exp(1.0) / (1 + math.exp(1.0))
    assert one_run_p_value(100, 50, 45, 1.0, 0.0) == pytest.approx(binom.sf(44, 50, rate))


def worst_run(r, v, epsilon, delta):
    """Return the largest P[correct >= v] of r guesses about r coins, by a linear programme.

    Over all runs that are (epsilon, delta)-DP, one probability for each of the 2^r patterns of
    errors and one excess for each pattern and coin: nothing of the formula's symmetry but that
    coins themselves can be renamed.
    """
    patterns = np.arange(2**r)
    errors = np.array([int(z).bit_count() for z in patterns])
    n = len(patterns)
    goal = -np.concatenate([(r - errors >= v).astype(float), np.zeros(n * r)])
    chances, excesses = np.eye(n), np.eye(n * r).reshape(r, n, n * r)
    private, budget = [], []
    for coin in range(r):
        flipped = chances[patterns ^ (1 << coin)]
        private.append(np.hstack([chances - math.exp(epsilon) * flipped, -excesses[coin]]))
        budget.append(np.append(np.zeros(n), excesses[coin].sum(axis=0)))
    found = linprog(
        goal,
        A_ub=np.vstack([*private, *budget]), b_ub=np.append(np.zeros(n * r), np.full(r, delta)),
        A_eq=np.append(np.ones(n), np.zeros(n * r))[None], b_eq=[1.0],
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("r", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_the_p_value_is_what_the_worst_run_attains(r, epsilon, delta):
    for v in range(r + 1):
        assert one_run_p_value(r, r, v, epsilon, delta) == pytest.approx(
            worst_run(r, v, epsilon, delta), abs=1e-6
        )


def test_abstaining_spreads_delta_over_all_canaries():
    """Each coin is guessed in r of m runs, so that delta buys m / r as much in those."""
    assert one_run_p_value(40, 10, 9, 0.7, 1e-3) == one_run_p_value(10, 10, 9, 0.7, 4e-3)


@pytest.mark.parametrize("r", [5, 100, 2500])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05])
def test_the_published_formula_is_never_smaller_where_it_matters(r, epsilon, delta):
    """Far below the mean it is, but there both are nearly 1."""
    w = binom(r, 1 / (1 + math.exp(-epsilon)))
    for v in np.unique(np.linspace(1, r, 20).round().astype(int)):
        p = one_run_p_value(r, r, v, epsilon, delta)
        below = np.cumsum(w.pmf(np.arange(v - 1, -1, -1)))
        published = w.sf(v - 1) + 2 * r * delta * np.max(below / np.arange(1, v + 1))
        assert p <= published * (1 + 1e-9) or p > 0.9


def test_the_published_example_with_delta():
    """75 right of 100 guesses about 1000 canaries at delta 1e-4: 0.673 there, by a looser bound."""
    assert 0.673 < one_run_lower_bound(1000, 100, 75, 1e-4) < one_run_lower_bound(1000, 100, 75, 0)


@pytest.mark.parametrize("together", [True, False])
def test_bounds_cover_a_run_that_tells_the_coins_with_probability_delta(together):
    """All of them at once, or each by itself; else randomised response."""
    m, epsilon, delta, repeats = 100, 1.0, 0.02, 2000
    rng = np.random.default_rng(2)
    told = rng.random((repeats, 1 if together else m)) < delta
    right = told | (rng.random((repeats, m)) < 1 / (1 + math.exp(-epsilon)))
    bounds = lower_bounds(m, right.sum(axis=1), delta)
    assert np.mean(bounds > epsilon) <= 0.05 + 3 * math.sqrt(0.05 / repeats)
    assert bounds.max() > 0.5


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
    bounds = lower_bounds(300, correct, 0.0)
    assert np.mean(bounds > epsilon) <= 0.05 + 3 * math.sqrt(0.05 / 400)
    assert np.median(bounds) > 0.5 * epsilon


@pytest.mark.parametrize("arguments", [(10, 11, 5, 1.0, 0.0), (10, 5, 6, 1.0, 0.0),
                                       (10, 5, -1, 1.0, 0.0), (10, 5, 5, -1.0, 0.0),
                                       (10, 5, 5, 1.0, 2.0)])  # fmt: skip
def test_impossible_counts_are_refused(arguments):
    with pytest.raises(ValueError, match="must be"):
        one_run_p_value(*arguments)
