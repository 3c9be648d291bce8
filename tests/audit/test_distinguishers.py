"""Rules learnt on one half of the runs; and the most that can be shown, by probabilities, against
brute force and known values."""

import math
from itertools import chain, combinations

import numpy as np
import pytest
from scipy.stats import laplace, norm

from dprepro.audit.distinguishers import (
    exponential_choice,
    judge,
    laplace_lead,
    largest_epsilon,
    largest_rho,
    learn,
    permute_and_flip,
    two_outcomes,
)
from dprepro.privacy.lower_bounds import (
    Guesses,
    epsilon_lower_bound,
    mu_lower_bound,
    rho_lower_bound,
)


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
def test_no_event_shows_more_than_the_largest_epsilon_and_one_shows_it(delta):
    rng = np.random.default_rng(1)
    one, other = rng.dirichlet(np.ones(5), 2)
    events = [
        list(event) for event in chain.from_iterable(combinations(range(5), k) for k in range(1, 5))
    ]
    shown = [
        math.log(max(p[event].sum() - delta, 1e-300) / q[event].sum())
        for p, q in ((one, other), (other, one))
        for event in events
    ]
    assert largest_epsilon(one, other, delta) == pytest.approx(max(*shown, 0.0), abs=1e-6)


def test_randomised_response_shows_its_epsilon_and_equal_worlds_nothing():
    told = math.e / (1 + math.e)
    assert two_outcomes(told, 1 - told, 0.0) == pytest.approx(1.0)
    assert two_outcomes(0.3, 0.3, 0.0) == 0.0
    assert two_outcomes(0.1, 0.0, 0.0) == two_outcomes(0.1, 0.0, 1e-6) == math.inf


def test_the_smaller_value_wins_as_often_as_by_integration():
    points, width = np.linspace(-60, 60, 400_001, retstep=True)
    for lead in (0.0, 1.0, 4.0):
        by_integration = np.sum(laplace.pdf(points, scale=2) * laplace.sf(points + lead, scale=2))
        assert laplace_lead(lead, 2.0) == pytest.approx(by_integration * width, rel=1e-4)


def test_choices_have_the_probabilities_that_are_drawn():
    utilities, scale, draws = np.array([3, 1, 2]), 1.5, 20_000
    expected = exponential_choice(utilities.astype(float), scale)
    assert expected == pytest.approx(np.exp(utilities / scale) / np.exp(utilities / scale).sum())
    rng = np.random.default_rng(0)
    taken = np.zeros(3)
    for order in (rng.permutation(3) for _ in range(draws)):
        flips = rng.random(3) < np.exp((utilities - 3) / scale)
        taken[next(c for c in order if flips[c])] += 1
    assert permute_and_flip(utilities.astype(float), scale) == pytest.approx(
        taken / draws, abs=4 * 0.5 / math.sqrt(draws)
    )


def test_the_best_guesses_show_the_largest_rho_and_it_is_less_than_the_divergences():
    rng = np.random.default_rng(2)
    one, other = rng.dirichlet(np.ones(6), 2)
    present, absent = 1e9 * one, 1e9 * other
    is_guessed = one > other
    guesses = Guesses(absent[is_guessed].sum(), 1e9, present[~is_guessed].sum(), 1e9)
    shown = float(rho_lower_bound(guesses))
    assert largest_rho(one, other) == pytest.approx(shown, rel=1e-3)
    assert shown < min(np.sum(p * np.log(p / q)) for p, q in ((one, other), (other, one)))
    assert largest_rho(one, one) == 0.0
    assert float(rho_lower_bound(Guesses(60, 100, 60, 100))) < 0.0


def gaussian_worlds(shift, runs=4000, seed=0, covariance=None):
    """Outputs N(shift * present, covariance)."""
    rng = np.random.default_rng(seed)
    shift = np.atleast_1d(shift)
    present = rng.random(runs) < 0.5
    covariance = np.eye(shift.size) if covariance is None else covariance
    noise = rng.multivariate_normal(np.zeros(shift.size), covariance, runs)
    return noise + np.outer(present, shift), present


def gaussian(guesses, form):
    return mu_lower_bound(guesses, form, confidence=0.999)


def pure(guesses, form):
    return epsilon_lower_bound(guesses, 0.0, form)


def error_rate(rule, outputs, present):
    guesses = judge(rule, outputs, present)
    return (guesses.false_positives + guesses.false_negatives) / present.size


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_direction_of_one_number_is_learnt(sign):
    rule = learn(*gaussian_worlds(sign * 2.0), gaussian)
    fresh = gaussian_worlds(sign * 2.0, seed=1)
    assert 1.75 < mu_lower_bound(judge(rule, *fresh), rule.form) < 2.0
    assert error_rate(rule, *fresh) < norm.cdf(-1.0) + 0.03


def test_correlated_noise_is_subtracted():
    """Both coordinates carry nearly the same noise; only their difference tells the worlds."""
    covariance = np.array([[1.0, 0.99], [0.99, 1.0]])
    shift = np.array([0.3, 0.0])
    mahalanobis = np.sqrt(shift @ np.linalg.solve(covariance, shift))
    rule = learn(*gaussian_worlds(shift, covariance=covariance), gaussian)
    fresh = gaussian_worlds(shift, covariance=covariance, seed=1)
    assert error_rate(rule, *fresh) == pytest.approx(norm.cdf(-mahalanobis / 2), abs=0.02)


def test_a_coordinate_without_noise_decides_alone():
    outputs, present = gaussian_worlds([0.0, 0.0])
    outputs[:, 1] = 1000.0 + present
    rule = learn(outputs, present, gaussian)
    assert error_rate(rule, outputs, present) == 0.0


def test_two_constants_are_told_apart_and_one_is_not():
    present = np.arange(100) % 3 == 0
    rule = learn(np.where(present, 2.0, 5.0)[:, None], present, pure)
    assert error_rate(rule, np.where(present, 2.0, 5.0)[:, None], present) == 0.0
    blind = learn(np.full((100, 1), 7.0), present, pure)
    guesses = judge(blind, np.full((100, 1), 7.0), present)
    assert {guesses.false_positives, guesses.false_negatives} in ({0, 34}, {0, 66})


def test_a_few_wild_runs_do_not_drown_the_rest():
    outputs, present = gaussian_worlds(2.0)
    outputs[::100] *= 1e12
    rule = learn(outputs, present, gaussian)
    assert error_rate(rule, *gaussian_worlds(2.0, seed=1)) < norm.cdf(-1.0) + 0.02


def test_rare_events_are_bounded_by_rates():
    """An output that one world never makes says more than its share of wrong guesses."""
    rng = np.random.default_rng(0)
    present = rng.random(4000) < 0.5
    outputs = ((rng.random(4000) < 0.1) & present).astype(float)[:, None]
    rule = learn(outputs, present, pure)
    assert rule.form == "present"
    assert pure(judge(rule, outputs, present), rule.form) > 3.0
    assert pure(judge(rule, outputs, present), "accuracy") < 0.5


def test_equal_worlds_prove_nothing_to_fresh_runs():
    bounds = []
    for seed in range(20):
        rule = learn(*gaussian_worlds([0.0, 0.0], 400, seed), gaussian)
        fresh = gaussian_worlds([0.0, 0.0], 400, seed + 100)
        bounds.append(float(mu_lower_bound(judge(rule, *fresh), rule.form)))
    assert np.mean(np.array(bounds) > 0) <= 0.15
