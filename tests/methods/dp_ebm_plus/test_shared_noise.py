"""Noise that neighbouring sums share, against dense linear algebra and searches."""

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.smoothing import (
    CURVE,
    INDEPENDENT,
    JUMPS,
    LINEAR,
    NO_NOISE,
    WALK,
    Priors,
    expected_responses,
    lookup,
    priors,
    smooth,
)
from scipy.optimize import minimize

from tests.methods.dp_ebm_plus.test_smoothing import log_posterior, one_model, prior_precision

KINDS = pytest.mark.parametrize(
    "kind", [INDEPENDENT, WALK, CURVE], ids=["independent", "walk", "curve"]
)
SCALES = np.array([0.2, 1.0, 4.0])


def shared(rng, size):
    """Return a and c, float64 (2, B), of numbers that differ in size; the last of c is 0."""
    noise = np.exp(rng.normal(0, 1, (2, size)))
    noise[1, -1] = 0
    return noise


def covariance_of(variances, noise):
    """Return the covariance of N(0, v_b) + a_b e_b - c_b e_(b+1), float64 (B, B)."""
    root = np.diag(noise[0]) - np.diag(noise[1, :-1], 1)
    return np.diag(variances) + root @ root.T


def exact(t, covariance, counts, models):
    """Return the posterior mean and variance of f if t ~ N(n f, covariance), of all models."""
    means, squares, evidence, slope = [], [], [], np.diag(counts)
    for centre in models.centres:
        for kind in models.kinds:
            for square in models.squared_scales:
                prior = np.linalg.inv(prior_precision(t.size, np.sqrt(square), kind))
                total, gap = slope @ prior @ slope + covariance, t - counts * centre
                gain = prior @ slope @ np.linalg.inv(total)
                means.append(centre + gain @ gap)
                squares.append(np.diag(prior - gain @ slope @ prior) + means[-1] ** 2)
                logarithm = np.linalg.slogdet(total)[1]
                evidence.append(-0.5 * (logarithm + gap @ np.linalg.solve(total, gap)))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    return mean, weights @ np.array(squares) - mean**2


def asked(size, seed=0):
    """Return sums, their own variances, rows, what they share, and a start of the search."""
    rng = np.random.default_rng(100 * seed + size)
    counts, f, noise = rng.uniform(0.5, 3, size), rng.normal(size=size), shared(rng, size)
    variances = rng.uniform(0.01, 2, size)
    t = counts * f + rng.multivariate_normal(np.zeros(size), covariance_of(variances, noise))
    return t, variances, counts, noise, rng.normal(size=size)


@KINDS
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 17])
def test_of_a_line_and_one_prior_it_is_the_exact_posterior(size, scale, kind):
    t, variances, counts, noise, start = asked(size)
    model = one_model(scale, np.linspace(-1, 1, size), kind)
    found = smooth(t, variances, counts, LINEAR, model, start, noise)
    expected = exact(t, covariance_of(variances, noise), counts, model)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-8, atol=1e-9)


@KINDS
@pytest.mark.parametrize("shares", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("size", [1, 2, 3, 8, 17])
def test_a_mean_rises_with_the_sum_of_its_bin_as_the_gain_says(size, shares, kind):
    t, variances, counts, noise, start = asked(size)
    model = one_model(1.0, np.zeros(size), kind)
    noise = noise if shares else NO_NOISE
    found = smooth(t, variances, counts, LINEAR, model, start, noise).rise
    for b in range(size):
        ends = []
        for step in (-0.5, 0.5):
            sums = t + step * (np.arange(size) == b)
            ends.append(smooth(sums, variances, counts, LINEAR, model, start, noise)[0][b])
        assert found[b] == pytest.approx(ends[1] - ends[0], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1, 2, 3, 8, 17])
def test_priors_are_weighed_by_how_well_they_explain_the_sums(size, seed):
    t, variances, counts, noise, start = asked(size, seed)
    centres = np.stack([np.zeros(size), np.linspace(-1, 1, size)])
    models = Priors(SCALES**2, np.array([INDEPENDENT, WALK, CURVE]), centres)
    found = smooth(t, variances, counts, LINEAR, models, start, noise)
    expected = exact(t, covariance_of(variances, noise), counts, models)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-8, atol=1e-9)
    # It would be another one if the noise were as large, but each bin's own.
    own = exact(t, np.diag(np.diag(covariance_of(variances, noise))), counts, models)
    assert size == 1 or np.abs(own[0] - expected[0]).max() > 1e-3


@pytest.mark.parametrize("size", [1, 2, 3, 9])
@pytest.mark.parametrize("linear", [True, False])
def test_noise_that_no_bin_shares_is_a_variance(size, linear):
    """The search ends where a step hardly gains: so of log odds not to the last digit."""
    t, variances, counts, noise, _ = asked(size)
    noise[1], zeros = 0, np.zeros(size)
    table = LINEAR if linear else expected_responses(-1.0, 0.5)
    models = priors(SCALES, np.zeros((1, size)), ordered=True)
    if linear:
        models = Priors(models.squared_scales, models.kinds[models.kinds != JUMPS], models.centres)
    else:
        counts, t = 100 * counts, 40 * counts + t
    found = smooth(t, variances, counts, table, models, zeros, noise)
    expected = smooth(t, variances + noise[0] ** 2, counts, table, models, zeros)
    within = {"rtol": 1e-8, "atol": 1e-9} if linear else {"rtol": 0.02, "atol": 0.01}
    np.testing.assert_allclose(found, expected, **within)


def test_noise_of_zeros_is_none():
    t, variances, counts, _, start = asked(9)
    models = priors(SCALES, np.zeros((1, 9)), ordered=True)
    found = smooth(t, variances, counts, LINEAR, models, start, np.zeros((2, 9)))
    expected = smooth(t, variances, counts, LINEAR, models, start)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", [INDEPENDENT, WALK, JUMPS, CURVE])
@pytest.mark.parametrize("seed", range(3))
def test_of_log_odds_no_point_is_likelier_than_the_mode(seed, kind):
    """The likelihood with e integrated out has its mode in f where that of f and e has it."""
    rng = np.random.default_rng(seed)
    size = 5
    table = expected_responses(rng.uniform(-3, 1), 0.5)
    counts, truth = np.exp(rng.uniform(5, 8, size)), rng.normal(0, 0.7, size)
    rates, slopes = lookup(table, truth)
    variances, noise = counts * slopes, 10 * shared(rng, size)
    covariance = covariance_of(variances, noise)
    t = rng.multivariate_normal(counts * rates, covariance)
    model = one_model(1.0, np.zeros(size), kind)
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))

    def misfit(f):
        expected = counts * lookup(table, f)[0]
        prior = log_posterior(f[None], expected, np.ones(size), counts, table, model)[0]
        return 0.5 * ((whitening @ (t - expected)) ** 2).sum() - prior

    mode, *_ = smooth(t, variances, counts, table, model, np.zeros(size), noise)
    starts = (mode, truth, np.zeros(size))
    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-5, "fatol": 1e-7}
    best = min(minimize(misfit, f, method="Nelder-Mead", options=options).fun for f in starts)
    assert misfit(mode) < best + 0.02


def test_a_slow_function_gains_from_noise_that_cancels_between_neighbours():
    """Noise moves from bin to bin: what a dozen of them add up to hardly has any."""
    truth, ones = np.sin(np.linspace(0, 3, 40)), np.ones(40)
    noise = np.stack([ones, np.append(ones[1:], 0.0)])
    covariance = covariance_of(0.01 * ones, noise)
    models, errors = priors(SCALES, np.zeros((1, 40)), ordered=True), np.zeros(2)
    for seed in range(20):
        t = truth + np.random.default_rng(seed).multivariate_normal(np.zeros(40), covariance)
        known = smooth(t, 0.01 * ones, ones, LINEAR, models, np.zeros(40), noise)[0]
        own = smooth(t, np.diag(covariance).copy(), ones, LINEAR, models, np.zeros(40))[0]
        errors += [((found - truth) ** 2).mean() for found in (known, own)]
    assert errors[0] < 0.5 * errors[1]
