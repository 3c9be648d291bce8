"""The most that can be shown, by probabilities: against brute force and known values."""

import math
from itertools import chain, combinations

import numpy as np
import pytest
from scipy.stats import laplace

from dprepro.audit.bounds import (
    exponential_choice,
    laplace_lead,
    largest_epsilon,
    largest_rho,
    permute_and_flip,
    two_outcomes,
)
from dprepro.privacy.lower_bounds import Guesses, rho_lower_bound


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
