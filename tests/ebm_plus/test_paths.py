"""What the steps of a function of few rows add up to, and what that says of the effects."""

import numpy as np
import pytest

from dprepro.ebm_plus.paths import Path

COUNTS, SLOPES = np.array([30.0, 10.0, 5.0]), np.array([0.2, 0.25, 0.1])
MIX = np.array([[256, 80, 20], [0, 250, 75], [-10, 0, 240], [30, 0, 0]])
"""Four numbers of three bins."""
STEPS = ((0.05, 2.0), (0.02, 6.0), (0.08, 1.0))


def walk(effects, noise):
    """Return a path along the sums that rows with these effects give, of linear functions."""
    path = Path(COUNTS, MIX)
    for (gain, scale), error in zip(STEPS, noise, strict=True):
        sums = COUNTS * SLOPES * (effects - path.values)
        sums = path.ways.T @ sums + scale * error
        path.go(gain, sums, scale, SLOPES)
    return path


def test_without_noise_a_path_is_the_effects_less_what_is_missing():
    effects = np.array([1.0, -2.0, 3.0])
    effects -= np.average(effects, weights=COUNTS)
    path = walk(effects, np.zeros((3, 4)))
    np.testing.assert_allclose(path.values, (np.eye(3) - path.missing) @ effects)
    assert abs(np.average(path.values, weights=COUNTS)) < 1e-12
    assert 0 < path.values[0] / effects[0] < 0.9


def test_the_covariance_of_the_noise_is_that_of_paths_without_effects():
    rng = np.random.default_rng(3)
    ends = np.array([walk(np.zeros(3), rng.standard_normal((3, 4))).values for _ in range(6000)])
    stated = walk(np.zeros(3), np.zeros((3, 4))).noise
    largest = np.diag(stated).max()
    np.testing.assert_allclose(np.cov(ends.T), stated, atol=0.06 * largest)


def test_variances_are_those_of_steps_that_do_not_follow_each_other():
    path = walk(np.zeros(3), np.zeros((3, 4)))
    steps = sum((gain * scale) ** 2 for gain, scale in STEPS)
    np.testing.assert_allclose(path.variances, steps * (path.ways**2).sum(axis=1))


def test_a_way_is_the_mix_counted_from_its_mean_over_the_rows():
    path = Path(COUNTS, MIX)
    np.testing.assert_allclose(path.centre, MIX @ COUNTS / COUNTS.sum(), atol=0.5)
    np.testing.assert_allclose(path.ways, (MIX - path.centre[:, None]).T / 256)
    shares = COUNTS / COUNTS.sum()
    curvatures = np.linalg.eigvalsh(path.ways.T * shares @ path.ways)
    assert path.steepest == pytest.approx(curvatures.sum())
    assert curvatures.max() <= path.steepest


def test_without_a_mix_each_bin_has_a_number_of_its_own():
    path, other = Path(COUNTS, None), Path(COUNTS, 256 * np.eye(3, dtype=int))
    np.testing.assert_array_equal(path.ways, other.ways)
    np.testing.assert_array_equal(path.centre, [171, 57, 28])
    assert path.mix is None


def test_all_rows_in_one_bin_leave_a_step_its_length():
    assert Path(np.array([1e9, 1e-9]), None).steepest == 1 / 256


def test_effects_are_known_as_well_as_stated():
    """Drawn from the prior, effects lie about as far from their means as the variances say."""
    rng, size, sampling = np.random.default_rng(5), 0.8, 1.0
    errors, stated = [], []
    for _ in range(3000):
        path = Path(COUNTS, MIX)
        effects = path.centring @ path.ways @ rng.normal(0, size, 4)
        sample = path.centring @ rng.normal(0, np.sqrt(sampling / (COUNTS * SLOPES)))
        path = walk(effects + sample, rng.standard_normal((3, 4)))
        mean, variance = path.effects(size, sampling)
        errors.append(mean - effects)
        stated.append(variance)
    np.testing.assert_allclose(np.mean(np.square(errors), 0), np.mean(stated, 0), rtol=0.08)
    assert np.all(np.mean(stated, 0) < size**2 * (path.ways**2).sum(axis=1))


def test_no_step_leaves_the_prior():
    path = Path(COUNTS, MIX)
    mean, variance = path.effects(2.0, 1.0)
    np.testing.assert_allclose(mean, 0)
    np.testing.assert_allclose(variance, 4 * ((path.centring @ path.ways) ** 2).sum(axis=1))
