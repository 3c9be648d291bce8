"""A rule learnt on one half of the runs."""

import numpy as np
import pytest
from scipy.stats import norm

from dprepro.audit.bounds import judge, learn
from dprepro.privacy.lower_bounds import epsilon_lower_bound, mu_lower_bound


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
