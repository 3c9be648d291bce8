"""What the steps of a function of few rows add up to, and what that says of the effects."""

import numpy as np
import pytest
from dprepro.methods.dp_ebm_plus.low_signal import AccumulatedSteps

COUNTS, SLOPES = np.array([30.0, 10.0, 5.0]), np.array([0.2, 0.25, 0.1])
MIX = np.array([[256, 80, 20], [0, 250, 75], [-10, 0, 240], [30, 0, 0]])
"""Four numbers of three bins."""
STEPS = ((0.05, 2.0), (0.02, 6.0), (0.08, 1.0))


OTHERS = np.array([[30.0, 10.0, 5.0], [5.0, 35.0, 5.0], [1e-6, 20.0, 60.0]])
"""Rows that may lie in the bins: as many as were released, and two other ways."""


def walk(effects, noise, counts=COUNTS):
    """Return a path along the sums that rows with these effects give, of linear functions."""
    path = AccumulatedSteps(COUNTS, MIX)
    for (gain, scale), error in zip(STEPS, noise, strict=True):
        sums = counts * SLOPES * (effects - path.trust() * path.values)
        sums = path.ways.T @ sums + scale * error
        path.go(gain, sums, scale, SLOPES)
    return path


def centred(values):
    """Return values, float64 (..., B), counted from their mean over the released counts."""
    return values - (values * COUNTS).sum(axis=-1, keepdims=True) / COUNTS.sum()


@pytest.mark.parametrize("counts", OTHERS)
def test_without_noise_a_path_gets_as_far_as_the_rows_take_it(counts):
    effects = centred(np.array([0.3, -0.6, 0.9]))
    path = walk(effects, np.zeros((3, 4)), counts)
    assert 0.4 < path.trust() < 0.9  # before each step, too, the function is not the whole path
    (reached,), _ = path.reach(counts[None])
    np.testing.assert_allclose(reached @ effects, path.values, rtol=1e-12)
    assert abs(centred(path.values) - path.values).max() < 1e-12
    assert np.abs(path.values - effects).max() > 0.3


@pytest.mark.parametrize("counts", OTHERS)
@pytest.mark.parametrize("trust", [1.0, 0.4])
def test_the_covariance_of_the_noise_is_that_of_paths_without_effects(counts, trust, monkeypatch):
    """Given how far the function was trusted, which noise decides, too."""
    monkeypatch.setattr(AccumulatedSteps, "trust", lambda _: trust)
    noise = np.random.default_rng(3).standard_normal((6000, 3, 4))
    # A path is linear in its noise.
    units = np.eye(12).reshape(12, 3, 4)
    ends = np.array([walk(np.zeros(3), unit, counts).values for unit in units])
    path = walk(np.zeros(3), noise[0], counts)
    np.testing.assert_allclose(noise[0].ravel() @ ends, path.values, atol=1e-12)
    _, (stated,) = path.reach(counts[None])
    np.testing.assert_allclose(stated, ends.T @ ends, atol=1e-12)
    drawn = np.cov((noise.reshape(6000, 12) @ ends).T)
    np.testing.assert_allclose(drawn, stated, atol=0.06 * np.diag(stated).max())


def test_each_step_counts_on_the_trust_there_was_before_it():
    noise = np.random.default_rng(8).standard_normal((3, 4))
    path, trusts, scaled = walk(np.zeros(3), noise), [], AccumulatedSteps(COUNTS, MIX)
    for (gain, scale), error in zip(STEPS, noise, strict=True):
        trusts.append(scaled.trust())
        sums = scaled.ways.T @ (-COUNTS * SLOPES * trusts[-1] * scaled.values) + scale * error
        scaled.go(gain, sums, scale, SLOPES)
    assert trusts[0] == 1
    assert len({round(trust, 3) for trust in trusts}) == 3
    expected, spread = np.zeros((3, 3)), centred(np.eye(3)).T @ path.ways
    for (gain, scale), trust in zip(STEPS, trusts, strict=True):
        step = gain * spread @ path.ways.T @ np.diag(COUNTS * SLOPES)
        kept = np.eye(3) - trust * step
        expected = kept @ expected @ kept.T + (gain * scale) ** 2 * spread @ spread.T
    np.testing.assert_allclose(path.reach(COUNTS[None])[1][0], expected, atol=1e-12)


def test_several_ways_at_once_give_what_each_gives_alone():
    path = walk(np.array([1.0, -2.0, 3.0]), np.random.default_rng(2).standard_normal((3, 4)))
    together = path.reach(OTHERS)
    alone = [path.reach(counts[None]) for counts in OTHERS]
    for number, found in enumerate(together):
        assert found.shape == (3, 3, 3)
        np.testing.assert_allclose(found, [each[number][0] for each in alone], rtol=1e-12)
    assert np.abs(together[0][0] - together[0][1]).max() > 0.1


def test_without_steps_nothing_is_reached():
    for found in AccumulatedSteps(COUNTS, MIX).reach(OTHERS):
        np.testing.assert_array_equal(found, np.zeros((3, 3, 3)))


def test_variances_are_those_of_steps_that_do_not_follow_each_other():
    path = walk(np.zeros(3), np.zeros((3, 4)))
    steps = sum((gain * scale) ** 2 for gain, scale in STEPS)
    np.testing.assert_allclose(path.variances, steps * (path.ways**2).sum(axis=1))


def test_a_way_is_the_mix_counted_from_its_mean_over_the_rows():
    path = AccumulatedSteps(COUNTS, MIX)
    np.testing.assert_allclose(path.centre, MIX @ COUNTS / COUNTS.sum(), atol=0.5)
    np.testing.assert_allclose(path.ways, (MIX - path.centre[:, None]).T / 256)
    shares = COUNTS / COUNTS.sum()
    curvatures = np.linalg.eigvalsh(path.ways.T * shares @ path.ways)
    assert path.steepest == pytest.approx(curvatures.sum())
    assert curvatures.max() <= path.steepest


def test_without_a_mix_each_bin_has_a_number_of_its_own():
    path, other = (
        AccumulatedSteps(COUNTS, None),
        AccumulatedSteps(COUNTS, 256 * np.eye(3, dtype=int)),
    )
    np.testing.assert_array_equal(path.ways, other.ways)
    np.testing.assert_array_equal(path.centre, [171, 57, 28])
    assert path.mix is None


def test_all_rows_in_one_bin_leave_a_step_its_length():
    assert AccumulatedSteps(np.array([1e9, 1e-9]), None).steepest == 1 / 256
