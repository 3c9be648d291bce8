"""Empirical Bayes against dense linear algebra, integrals and searches on a grid."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.smoothing import (
    CURVE,
    INDEPENDENT,
    JUMPS,
    LINEAR,
    WALK,
    Priors,
    expected_responses,
    lookup,
    priors,
    smooth,
)

SCALES = 2.0 ** np.arange(-3, 3)


def without_jumps(models):
    return replace(models, kinds=models.kinds[models.kinds != JUMPS])


def prior_precision(size, scale, kind):
    if kind == INDEPENDENT:
        return np.eye(size) / scale**2
    steps = np.diff(np.eye(size), n=2 if kind == CURVE else 1, axis=0)
    weight = 0.05 * (size - 1) ** 3 if kind == CURVE else size - 1
    return (weight * steps.T @ steps + 0.3 * np.eye(size)) / scale**2


def dense(z, v, centres, ordered):
    """Mean and variance of the mixture of Gaussian posteriors, weighed by N(z; m, Q^-1 + V)."""
    means, squares, evidence = [], [], []
    kinds = (WALK, CURVE, INDEPENDENT) if ordered and z.size > 2 else (INDEPENDENT,)
    for centre, kind, scale in [(c, k, s) for c in centres for k in kinds for s in SCALES]:
        covariance = np.linalg.inv(prior_precision(z.size, scale, kind))
        total, gap = covariance + np.diag(v), z - centre
        gain = covariance @ np.linalg.inv(total)
        means.append(centre + gain @ gap)
        squares.append(np.diag(covariance - gain @ covariance) + means[-1] ** 2)
        evidence.append(-0.5 * (np.linalg.slogdet(total)[1] + gap @ np.linalg.solve(total, gap)))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    return mean, weights @ np.array(squares) - mean**2


@pytest.mark.parametrize("n_centres", [1, 2, 3])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 17])
def test_of_a_line_it_is_the_average_of_exact_posteriors(size, ordered, n_centres):
    rng = np.random.default_rng(size)
    counts, f = rng.uniform(1, 50, size), rng.normal(size=size)
    variances = rng.uniform(0.01, 2, size) * counts**2
    sums = counts * f + rng.normal(0, np.sqrt(variances))
    centres = np.concatenate([np.zeros((1, size)), rng.normal(size=(n_centres - 1, size))])
    models = without_jumps(priors(SCALES, centres, ordered=ordered))
    found = smooth(sums, variances, counts, LINEAR, models, rng.normal(size=size))
    expected = dense(sums / counts, variances / counts**2, centres, ordered)
    np.testing.assert_allclose(found[:2], expected, atol=1e-9)


def test_a_centre_that_the_sums_bear_out_draws_what_is_unsure():
    """The last bin says nothing. It follows the centre that the others agree with."""
    centre = np.array([3.0, -2.0, 2.5, 4.0])
    models = priors(SCALES, np.stack([np.zeros(4), centre]), ordered=False)
    variances, counts = np.array([0.01, 0.01, 0.01, 1e6]), np.ones(4)
    for near in (centre, np.zeros(4)):
        sums = near + np.array([0.05, -0.05, 0.05, 0.0])
        values, *_ = smooth(sums, variances, counts, LINEAR, models, np.zeros(4))
        np.testing.assert_allclose(values, near, atol=0.1)


def on_a_line(z, variance, *, ordered):
    models = priors(2.0 ** np.arange(-8, 4), np.zeros((1, z.size)), ordered=ordered)
    ones = np.ones(z.size)
    return smooth(z, variance * ones, ones, LINEAR, models, np.zeros(z.size))[0]


def test_what_is_certain_stays_and_what_is_noise_goes():
    z = np.array([1.0, -2.0, 0.5, 3.0])
    np.testing.assert_allclose(on_a_line(z, 1e-8, ordered=True), z, atol=1e-3)
    assert np.abs(on_a_line(z, 1e8, ordered=True)).max() < 1e-3


def test_a_smooth_function_gains_from_its_neighbours():
    rng = np.random.default_rng(0)
    truth = np.sin(np.linspace(0, 3, 60))
    z = truth + rng.normal(0, 0.5, 60)
    errors = [
        np.mean((on_a_line(z, 0.25, ordered=ordered) - truth) ** 2) for ordered in (True, False)
    ]
    assert errors[0] < errors[1] / 3
    assert errors[1] < 0.25


def test_curves_come_nearer_to_a_smooth_function_and_harm_no_rough_one():
    bins, seeds = np.linspace(0, 3, 40), range(40)
    models = priors(2.0 ** np.arange(-8, 4), np.zeros((1, 40)), ordered=True)
    without = replace(models, kinds=models.kinds[models.kinds != CURVE])
    errors = np.zeros((2, 2))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for k, truth in enumerate((np.sin(bins), np.where(bins < 1, -1.0, rng.normal(size=40)))):
            z = truth + rng.normal(0, 0.5, 40)
            for m, given in enumerate((models, without)):
                told = (z, np.full(40, 0.25), np.ones(40), LINEAR, given, np.zeros(40))
                errors[k, m] += np.mean((smooth(*told)[0] - truth) ** 2) / len(seeds)
    assert errors[0, 0] < 0.9 * errors[0, 1]
    assert errors[1, 0] < 1.02 * errors[1, 1]


# --- posteriors of log odds ---------------------------------------------------------------------


def one_model(scale, centre, kind=INDEPENDENT):
    return Priors(np.array([float(scale**2)]), np.array([kind]), np.array([centre], dtype=float))


def log_posterior(f, t, v, counts, table, model):
    """Return the log posterior of functions f (functions, B), up to a constant."""
    rates = lookup(table, f.ravel())[0].reshape(f.shape)
    gap = f - model.centres[0]
    size, scale, kind = t.size, math.sqrt(model.squared_scales[0]), model.kinds[0]
    if kind == JUMPS:
        steps = (size - 1) * np.diff(gap, axis=1) ** 2 / scale**2
        prior = 2 * np.log1p(steps).sum(axis=1) + 0.3 * (gap**2).sum(axis=1) / scale**2
    else:
        prior = np.einsum("ij,jk,ik->i", gap, prior_precision(size, scale, kind), gap)
    return -0.5 * (((t - counts * rates) ** 2 / v).sum(axis=1) + prior)


@pytest.mark.parametrize(
    ("intercept", "others", "rows", "noise", "scale", "centre", "truth"),
    [
        (-1, 0.5, 400, 8, 1, 0, 0.7),
        (-1, 0.5, 400, 8, 1, 1.5, 0.7),
        (0, 1, 200, 5, 0.5, 0, -0.6),
        (-2, 0, 1000, 15, 1, -1, 0.5),
        (-3, 0.5, 2000, 15, 2, 0, 1),
        (1, 1, 300, 6, 1, 0, 1),
    ],
)
def test_one_bin_has_the_posterior_of_the_integral(
    intercept, others, rows, noise, scale, centre, truth
):
    table, model = expected_responses(intercept, others), one_model(scale, [centre])
    rate, slope = lookup(table, np.array([float(truth)]))
    t, v, counts = rows * rate, noise**2 + rows * slope, np.array([float(rows)])
    grid = np.linspace(-12, 12, 24_001)
    density = np.exp(log_posterior(grid[:, None], t, v, counts, table, model))
    density /= density.sum()
    mean = density @ grid
    deviation = math.sqrt(density @ grid**2 - mean**2)
    values, spreads, _ = smooth(t, v, counts, table, model, np.zeros(1))
    assert values[0] == pytest.approx(mean, abs=0.2 * deviation)
    assert values[0] == pytest.approx(mean, rel=0.05)
    assert math.sqrt(spreads[0]) == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("size", [1, 2])
def test_no_point_of_a_grid_is_likelier_than_the_mode(size):
    rng = np.random.default_rng(0)
    axis = np.arange(-8, 8.001, 0.05)
    grid = np.stack([part.ravel() for part in np.meshgrid(*[axis] * size)], axis=1)
    for number in range(24):
        table = expected_responses(rng.uniform(-5, 2), rng.uniform(0, 1.5))
        centre, scale = rng.normal(size=size) * (number % 2), 3.0 ** rng.integers(-2, 2)
        model = one_model(scale, centre, kind=(INDEPENDENT, WALK, JUMPS)[number % 3])
        counts, truth = np.exp(rng.uniform(4, 8, size)), centre + rng.normal(0, 0.7, size)
        rates, slopes = lookup(table, truth)
        v = rng.uniform(4, 30) ** 2 + counts * slopes
        t = counts * rates + rng.normal(0, np.sqrt(v))
        mode, *_ = smooth(t, v, counts, table, model, np.zeros(size))
        mine = log_posterior(mode[None], t, v, counts, table, model)[0]
        best = log_posterior(grid, t, v, counts, table, model).max()
        assert mine > best - 0.02


def step_errors(height, noise, models):
    """Return the root mean square error over 40 bins, of which the last ten are higher."""
    truth = np.repeat([0.0, height], [30, 10])
    ones, found = np.ones(40), []
    for seed in range(20):
        z = truth + np.random.default_rng(seed).normal(0, noise, 40)
        values, *_ = smooth(z, noise**2 * ones, ones, LINEAR, models, np.zeros(40))
        found.append(np.mean((values - truth) ** 2))
    return math.sqrt(np.mean(found))


def test_a_function_that_jumps_once_is_told_from_one_that_drifts():
    models = priors(3.0 ** np.arange(-4, 3), np.zeros((1, 40)), ordered=True)
    with_jumps, without = (step_errors(3.0, 0.5, m) for m in (models, without_jumps(models)))
    assert with_jumps < 0.8 * without
    nothing, plain = (step_errors(0.0, 0.5, m) for m in (models, without_jumps(models)))
    assert nothing < 1.1 * plain


RARE = -6.0


def rare_bin(deviations):
    """Return f of one bin of 500 rows and 1.2 expected, so many deviations above that."""
    table = expected_responses(RARE, 0.0)
    counts, noise = np.array([500.0]), 8.0
    rate, slope = lookup(table, np.zeros(1))
    variance = noise**2 + counts * slope
    t = counts * rate + deviations * np.sqrt(variance)
    models = priors(3.0 ** np.arange(-4, 3), np.zeros((1, 1)), ordered=False)
    return smooth(t, variance, counts, table, models, np.zeros(1))[0][0], t[0] / 500


def test_of_a_rare_label_noise_moves_nothing_and_what_stands_out_moves_all_the_way():
    """0.9 deviations of t, taken as a step of Newton's, would be six log odds."""
    lost, share = rare_bin(0.9)
    assert 0 <= lost < 0.25 * (math.log(share / (1 - share)) - RARE)
    seen, share = rare_bin(5.0)
    assert seen == pytest.approx(math.log(share / (1 - share)) - RARE, abs=0.3)


def test_models_are_weighed_by_what_they_make_of_all_bins():
    """Two bins stand out by chance. Where twenty do by as much, it is an effect."""
    table = expected_responses(-2.0, 0.5)
    rates, slopes = lookup(table, np.zeros(1))

    def values(size):
        signs = np.where(np.arange(size) % 2, 1.0, -1.0)
        counts, v = np.full(size, 300.0), np.repeat(100 + 300 * slopes, size)
        models = priors(3.0 ** np.arange(-4, 3), np.zeros((1, size)), ordered=False)
        t = 300 * rates + 1.9 * signs * np.sqrt(v)
        return np.abs(smooth(t, v, counts, table, models, np.zeros(size))[0])

    assert values(20).mean() > 1.3 * values(2).mean()
