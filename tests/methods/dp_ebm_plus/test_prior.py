"""Gaussian priors, their posteriors and how likely each is: against dense linear algebra."""

import numpy as np
import pytest
from scipy.stats import cauchy, multivariate_normal

from dprepro.methods.dp_ebm_plus.prior import (
    SIZES,
    Priors,
    curve,
    half_cauchy,
    independent,
    log_normal,
    mixture,
    ornstein_uhlenbeck,
    posteriors,
    with_missing,
)

RNG = np.random.default_rng(5)
APART = RNG.uniform(0.02, 0.3, 6)
PRECISIONS = {
    "independent": independent(7),
    "rough": ornstein_uhlenbeck(APART, 0.1),
    "slow": ornstein_uhlenbeck(APART, 1.0),
    "curve": curve(7),
    "missing": with_missing(curve(6)),
}


def dense(parts):
    """Return a precision as a matrix."""
    matrix = np.diag(parts[0]).astype(float)
    for k, part in enumerate(parts[1:], start=1):
        matrix += np.diag(part[:-k], k) + np.diag(part[:-k], -k)
    return matrix


def noise_of(shared):
    """Return the matrix that takes e to the noise a_b e_b - c_b e_(b+1)."""
    return np.diag(shared[0]) - np.diag(shared[1, :-1], 1)


def test_neighbours_of_an_ornstein_uhlenbeck_process_are_alike_by_their_distance():
    places = np.append(0.0, np.cumsum(APART))
    expected = np.exp(-np.abs(np.subtract.outer(places, places)) / 0.1)
    np.testing.assert_allclose(np.linalg.inv(dense(PRECISIONS["rough"])), expected, atol=1e-12)


def test_a_curve_sums_squares_of_second_differences():
    values = RNG.normal(size=7)
    bends = (np.diff(values, 2) ** 2).sum()
    energy = values @ dense(PRECISIONS["curve"]) @ values
    assert energy == pytest.approx(0.05 * 6**3 * bends + 0.3 * (values**2).sum())


OF_SIZES = half_cauchy(SIZES, 0.25)


@pytest.mark.parametrize("has_level", [False, True])
@pytest.mark.parametrize("kind", PRECISIONS)
def test_posteriors_and_evidence_are_those_of_normal_vectors(kind, has_level):
    """With a level its best value is known, and its evidence is that of a vast normal prior."""
    v, h, t = RNG.uniform(0.5, 2, 7), RNG.uniform(1, 9, 7), RNG.normal(size=7) * 5
    shared = RNG.uniform(0.2, 2, (2, 7))
    shared[1, -1] = 0.0
    unit = 1.7
    found = posteriors(t, v, shared, h, Priors.of([PRECISIONS[kind]], SIZES), unit, has_level)
    spread = noise_of(shared)
    noise = np.diag(v) + spread @ spread.T
    evidence = []
    for m, size in enumerate(SIZES):
        prior = (size * unit) ** 2 * np.linalg.inv(dense(PRECISIONS[kind]))
        both = noise + h[:, None] * prior * h
        gain = prior * h @ np.linalg.inv(both)
        weights = np.linalg.solve(both, h)
        level = has_level * (weights @ t) / (weights @ h)
        np.testing.assert_allclose(found.means[m], gain @ (t - h * level), rtol=1e-7, atol=1e-9)
        left = prior - gain @ (h[:, None] * prior)
        np.testing.assert_allclose(found.variances[m], np.diag(left), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(found.rises[m], np.diag(gain), rtol=1e-7, atol=1e-12)
        vast = has_level * 1e5 * np.outer(h, h)
        evidence.append(multivariate_normal(np.zeros(7), both + vast).logpdf(t))
    close = {"rtol": 1e-3, "atol": 1e-4} if has_level else {"rtol": 1e-8, "atol": 1e-9}
    np.testing.assert_allclose(np.diff(found.evidence), np.diff(evidence), **close)


def test_what_all_values_share_says_nothing_of_a_function_beside_a_level():
    one, noise = np.ones(7), RNG.uniform(0.2, 2, (2, 7))
    noise[1, -1] = 0.0
    priors = Priors.of([PRECISIONS["slow"], PRECISIONS["curve"]], SIZES)
    t = RNG.normal(size=7)
    near, far = (
        mixture(posteriors(t + up, one, noise, one, priors, 1.0, True), OF_SIZES) for up in (0, 1e3)
    )
    np.testing.assert_allclose(far.mean, near.mean, atol=1e-8)
    np.testing.assert_allclose(far.variance, near.variance, rtol=1e-8)


def test_sizes_are_half_cauchy_before_any_answer():
    """As the density of the absolute value of a Cauchy number, over the logarithm of the size."""
    density = cauchy(scale=0.5).pdf(SIZES) * SIZES
    np.testing.assert_allclose(half_cauchy(SIZES, 0.5), density / density.sum())


def test_a_mixture_has_the_mean_and_the_variance_of_its_parts():
    priors = Priors.of([PRECISIONS["slow"]], SIZES)
    one = np.ones(7)
    found = posteriors(3 * one, one, np.zeros((2, 7)), one, priors, 1.0)
    weights = np.exp(found.evidence) / np.exp(found.evidence).sum()
    mixed = mixture(found, np.full(SIZES.size, 1 / SIZES.size))
    mean = weights @ found.means
    np.testing.assert_allclose(mixed.mean, mean)
    square = weights @ (found.variances + (found.means - mean) ** 2)
    np.testing.assert_allclose(mixed.variance, square)


def test_sizes_that_are_likelier_before_count_more():
    one = np.ones(7)
    found = posteriors(0 * one, 1e9 * one, np.zeros((2, 7)), one, Priors.of([curve(7)], SIZES), 1.0)
    priors = log_normal(SIZES, 1.0, 3.0)
    assert priors.sum() == pytest.approx(1)
    assert priors[3] / priors[2] == pytest.approx(np.exp(0.5))
    variance = priors @ found.variances  # no answer tells which it is
    np.testing.assert_allclose(mixture(found, priors).variance, variance, rtol=1e-6)
    alike = np.full(SIZES.size, 1 / SIZES.size)
    assert (mixture(found, alike).variance > variance).all()


def test_what_is_certain_stays_and_what_is_noise_goes():
    z, none = np.array([1.0, -2.0, 0.5, 3.0]), np.zeros((2, 4))
    priors = Priors.of([ornstein_uhlenbeck(np.full(3, 1 / 3), 1.0), curve(4)], SIZES)
    for noise, kept in ((1e-8, z), (1e8, 0 * z)):
        found = mixture(posteriors(z, np.full(4, noise), none, np.ones(4), priors, 1.0), OF_SIZES)
        np.testing.assert_allclose(found.mean, kept, atol=1e-3)


def test_a_smooth_function_gains_from_its_neighbours():
    truth = np.sin(np.linspace(0, 3, 60))
    z = truth + np.random.default_rng(0).normal(0, 0.5, 60)
    known = (z, np.full(60, 0.25), np.zeros((2, 60)), np.ones(60))
    errors = []
    for precision in (curve(60), independent(60)):
        found = mixture(posteriors(*known, Priors.of([precision], SIZES), 1.0), OF_SIZES)
        errors.append(np.mean((found.mean - truth) ** 2))
    assert errors[0] < errors[1] / 3
    assert errors[1] < 0.25


def test_priors_are_weighed_by_what_they_make_of_all_bins():
    """Two bins stand out by chance. Where twenty do by as much, it is an effect."""

    def sizes(n):
        t, one = 1.9 * np.where(np.arange(n) % 2, 1.0, -1.0), np.ones(n)
        priors = Priors.of([independent(n)], SIZES)
        return np.abs(
            mixture(posteriors(t, one, np.zeros((2, n)), one, priors, 1.0), OF_SIZES).mean
        )

    assert sizes(20).mean() > 1.1 * sizes(2).mean()
