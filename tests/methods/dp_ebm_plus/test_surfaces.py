"""Functions of two features, inferred from noisy sums: held against dense linear algebra."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from dprepro.methods.dp_ebm_plus import pairs
from dprepro.methods.dp_ebm_plus.pairs import smooth_bivariate

SCALES = np.array([0.1, 0.5, 2.0])
SHAPES = pytest.mark.parametrize("shape", [(2, 2), (4, 3), (3, 5), (2, 7)])
ORDERED = pytest.mark.parametrize("ordered", [(True, True), (True, False), (False, False)])


def differences(size, ordered):
    """The precision of a walk along one side, without its pull to zero: sum of squared steps."""
    steps = np.diff(np.eye(size), axis=0) if ordered else np.zeros((1, size))
    return steps.T @ steps


def dense(z, weights, ordered):
    """Return mean, variance and log evidence ratio by inverting matrices."""
    rows, columns = z.shape
    sides = [differences(size, side) for size, side in zip(z.shape, ordered, strict=True)]
    ties = np.kron(sides[0], np.eye(columns)) + np.kron(np.eye(rows), sides[1])
    noise = np.diag(1 / weights.ravel())
    means, variances, evidence = [], [], []
    for pull, tie in pairs._KINDS:
        for scale in SCALES:
            prior = np.linalg.inv((pull * np.eye(z.size) + tie * ties) / scale**2)
            gain = prior @ np.linalg.inv(prior + noise)
            means.append(gain @ z.ravel())
            variances.append(np.diag(prior - gain @ prior))
            likely = multivariate_normal(cov=prior + noise).logpdf(z.ravel())
            evidence.append(likely - multivariate_normal(cov=noise).logpdf(z.ravel()))
    shares = np.exp(evidence - logsumexp(evidence))
    mean = shares @ np.array(means)
    variance = shares @ (np.array(variances) + np.array(means) ** 2) - mean**2
    return mean, variance, logsumexp(evidence) - np.log(len(evidence))


def problem(shape, seed=0):
    rng = np.random.default_rng(seed)
    masses, variances = rng.uniform(1, 30, shape), rng.uniform(1, 9, shape)
    return masses * rng.normal(0, 0.5, shape) + rng.normal(0, 2, shape), masses, variances


@SHAPES
@ORDERED
def test_the_posterior_is_that_of_dense_matrices(shape, ordered):
    sums, masses, variances = problem(shape)
    weights = masses**2 / variances
    found = smooth_bivariate(sums, masses, variances, SCALES, ordered)
    apart = pairs._beside_sides(sums / masses, weights)
    mean, variance, evidence = dense(apart, weights, ordered)
    np.testing.assert_allclose(found.mean.ravel(), mean, atol=1e-9)
    np.testing.assert_allclose(found.variance.ravel(), variance, atol=1e-9)
    assert found.evidence == pytest.approx(evidence, abs=1e-8)


def test_what_depends_on_one_side_is_no_evidence_and_moves_nothing():
    rng = np.random.default_rng(1)
    _, masses, variances = problem((6, 5))
    sums, *_ = problem((6, 5))
    more = sums + masses * np.add.outer(rng.normal(0, 9, 6), rng.normal(0, 9, 5))
    found = [smooth_bivariate(t, masses, variances, SCALES, (True, True)) for t in (sums, more)]
    np.testing.assert_allclose(found[0].mean, found[1].mean, atol=1e-6)
    assert found[0].evidence == pytest.approx(found[1].evidence, abs=1e-5)


def test_the_best_sum_of_two_functions_is_that_of_least_squares():
    rng = np.random.default_rng(2)
    z, weights = rng.normal(size=(5, 4)), rng.uniform(1, 3, (5, 4))
    design = np.array([[*np.eye(5)[g], *np.eye(4)[h]] for g in range(5) for h in range(4)])
    roots = np.sqrt(weights).ravel()
    solved = np.linalg.lstsq(design * roots[:, None], z.ravel() * roots, rcond=None)[0]
    rest = pairs._beside_sides(z, weights)
    np.testing.assert_allclose(rest.ravel(), z.ravel() - design @ solved, atol=1e-9)


def test_noise_alone_is_seldom_taken_for_a_function():
    rng = np.random.default_rng(3)
    evidence = []
    for _ in range(400):
        masses = rng.uniform(10, 90, (8, 8))
        sums = rng.normal(0, 30, (8, 8))
        variances = np.full((8, 8), 900.0)
        found = smooth_bivariate(sums, masses, variances, SCALES, (True, True))
        evidence.append(found.evidence)
    assert np.mean(np.array(evidence) > 2.0) < 0.02


def test_an_effect_that_stands_out_is_found_and_shrunk_little():
    rng = np.random.default_rng(4)
    x = np.linspace(-1, 1, 8)
    truth = np.outer(x, x)
    masses, variances = np.full((8, 8), 100.0), np.full((8, 8), 400.0)
    sums = masses * truth + rng.normal(0, 20, (8, 8))
    found = smooth_bivariate(sums, masses, variances, SCALES, (True, True))
    assert found.evidence > 50
    assert np.sqrt(np.mean((found.mean - truth) ** 2)) < 0.15
    inside = np.abs(found.mean - truth) < 2 * np.sqrt(found.variance)
    assert inside.mean() > 0.85
