"""Steps learn: functions, levels, bounds, and what is expected where hardly any row lies."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from dprepro.methods.dp_ebm_plus import algorithm
from dprepro.methods.dp_ebm_plus import booster as booster_module
from dprepro.methods.dp_ebm_plus.booster import Function, contamination_prior
from dprepro.methods.dp_ebm_plus.clipping import MAGNITUDES, likely_residual_scales
from dprepro.methods.dp_ebm_plus.losses import LOGISTIC, SQUARED
from tests.methods.dp_ebm_plus.stub import ask_for_bound, booster, gaussian, learn
from tests.methods.dp_ebm_plus.test_booster import BOTH, COUNTS


def test_it_learns_an_additive_function():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 3000))
    f, g = np.array([-0.1, 0.0, 0.1]), np.array([0.1, -0.05, -0.05])
    targets = f[codes[0]] + g[codes[1]] + 0.02
    learner = booster(codes, targets, SQUARED, noise=gaussian(1e-3))
    learn(learner, 16)
    fitted = learner.intercept.values[0] + sum(
        function.values[code] for function, code in zip(learner.functions, codes, strict=True)
    )
    assert np.abs(fitted - targets).max() < 0.01


def test_rows_are_taken_to_be_half_a_deviation_more_than_their_count_says():
    rng = np.random.default_rng(0)
    codes = np.repeat([[0, 1, 2]], 200, axis=1).reshape(1, -1)
    targets = 0.2 * (codes[0] - 1.0) + rng.normal(0, 0.05, 600)
    found = []
    for count, uncertainty in ((200.0, 80.0), (240.0, 0.0), (200.0, 0.0)):
        learner = booster(
            codes,
            targets,
            SQUARED,
            counts=np.full(3, count),
            noise=lambda shape: np.full(shape, 1e-3),
        )
        learner.rows = 600.0
        learner.functions[0].uncertainty[:] = uncertainty
        learn(learner, 1)
        found.append(learner.functions[0].values)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)
    assert np.abs(found[0] - found[2]).max() > 0.01


@BOTH
def test_functions_of_labels_go_as_far_as_the_pace_and_others_beyond_what_is_inferred(
    loss, monkeypatch
):
    inferred, values, paces = [], [], []
    smooth, move = booster_module.smooth, Function.move

    def inferring(*told):
        found = smooth(*told)
        if found[0].size > 1:
            inferred.append(found[0] - found[0].mean())
        return found

    def moving(function, new):
        if new.size > 1:
            values.append(new)
            paces.append(learner.damping.value)
        return move(function, new)

    monkeypatch.setattr(booster_module, "smooth", inferring)
    monkeypatch.setattr(Function, "move", moving)
    codes = np.stack([np.repeat([0, 1, 2], 200), np.arange(600) % 3])
    targets = np.tile([0.0, 0.0, 1.0, 0.0, 1.0, 1.0], 100)
    learner = booster(codes, targets - (loss is SQUARED) * 0.5, loss, noise=gaussian(3))
    learn(learner, 3)
    # Noise is far below what these rows say.
    assert learner.clearness == 1
    strides = paces if loss is LOGISTIC else np.repeat([1.0, 1.8, 1.8], 2)
    assert strides[0] == pytest.approx(1 / np.sqrt(2) if loss is LOGISTIC else 1)
    before = [np.zeros(3), np.zeros(3), *values]
    for old, new, goal, stride in zip(before, values, inferred, strides, strict=False):
        assert np.abs(goal - old).max() > 1e-4
        np.testing.assert_allclose(new, old + stride * (goal - old), atol=1e-6)


def test_what_all_bins_share_is_left_to_the_intercept():
    """Bins of few rows would shrink it more than others, and then differ from them."""
    codes = np.repeat([[0, 1, 2]], COUNTS.astype(int), axis=1)
    learner = booster(codes, np.full(codes.size, 0.2), SQUARED, deviation=3.0)
    (function,) = learner.functions
    algorithm.step(learner.curator, learner, function, 0.5, 0)
    np.testing.assert_allclose(function.values, 0, atol=1e-3)


@pytest.mark.parametrize(("alike", "epochs", "within"), [(0.0, 16, 0.12), (0.6, 24, 0.25)])
def test_it_learns_log_odds(alike, epochs, within):
    """Also of features that go together, which takes more epochs: early answers are off."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (2, 40_000))
    codes[1] = np.where(rng.random(40_000) < alike, codes[0], codes[1])
    f, g = np.array([-1.5, 0.0, 1.5]), np.array([1.0, -1.0, 0.0])
    odds = f[codes[0]] + g[codes[1]] - 1
    targets = (rng.random(40_000) < expit(odds)).astype(float)
    learner = booster(codes, targets, LOGISTIC, noise=gaussian(1e-3))
    learn(learner, epochs)
    for function, truth in zip(learner.functions, (f, g), strict=True):
        np.testing.assert_allclose(function.values, truth - truth.mean(), atol=within)
    assert learner.intercept.values[0] == pytest.approx(-1, abs=0.1)


def test_the_intercept_of_two_peaks_is_their_mean_though_residuals_are_clipped():
    targets = np.repeat([-0.2, 0.25], [3500, 1500])
    learner = booster(np.zeros((1, 5000), int), targets, SQUARED, deviation=400.0)
    learn(learner, 16)
    assert learner.bound < 0.2
    assert learner.intercept.values[0] == pytest.approx(targets.mean(), abs=0.005)


def test_little_noise_clips_little_and_much_noise_clips_much():
    rng = np.random.default_rng(0)
    codes, targets = rng.integers(0, 3, (1, 5000)), np.clip(rng.normal(0, 0.05, 5000), -0.5, 0.5)
    bounds = []
    for deviation in (1e-3, 1e2, 1e3):
        learner = booster(codes, targets, SQUARED, deviation=deviation)
        ask_for_bound(learner)
        bounds.append(learner.bound)
    assert 0.5 >= bounds[0] > bounds[1] > bounds[2]
    assert bounds[0] > 0.12


def test_counts_that_are_lost_in_noise_leave_what_the_targets_make_likely():
    cells = np.where(np.arange(MAGNITUDES) == 8, 1000.0, 0.0)
    sizes, square = likely_residual_scales(cells, 1e-6, 1000.0, 0.2)
    np.testing.assert_allclose(sizes, cells, atol=1e-3)
    assert square == pytest.approx(2.0**-8.5, rel=1e-3)
    sizes, square = likely_residual_scales(cells, 1e9, 1000.0, 0.2)
    assert sizes.sum() == pytest.approx(1000)
    assert square == pytest.approx(0.2**2, rel=0.05)
    assert sizes[:5].sum() == pytest.approx(2000 * ndtr(-(2**-2.5) / 0.2))


# --- what is expected where hardly any row lies ---------------------------------------------------


def strays(start, counts, extents=(0.1, 0.1, 0.8)):
    learner = booster(np.zeros((1, 1), int), np.zeros(1), LOGISTIC, start=start)
    learner.rows = counts.sum()
    function = learner.functions[0]
    function.counts, function.extents = counts, np.array(extents)
    return contamination_prior(function, learner.rows, float(learner.intercept.values[0]))


def test_labels_that_are_as_likely_as_not_are_so_everywhere():
    np.testing.assert_allclose(strays(0.0, COUNTS), 0, atol=1e-12)


@pytest.mark.parametrize("start", [-9.0, -5.0, -2.0])
@pytest.mark.parametrize("counts", [COUNTS, 1000 * COUNTS[::-1]])
def test_where_few_rows_lie_the_rarer_label_is_likelier(start, counts):
    rare, common = strays(start, counts), strays(-start, counts)
    np.testing.assert_allclose(common, -rare, atol=1e-9)
    emptiest = np.argmin(counts / [0.1, 0.1, 0.8])
    assert rare.argmax() == emptiest
    assert rare[emptiest] > 0.05
    assert rare[counts.argmax()] < 0
    assert rare @ counts == pytest.approx(0, abs=1e-9 * counts.sum())
    assert (rare + start < 0.5).all()


def test_a_bin_without_extent_is_no_stranger_for_its_few_rows():
    """Missing values have none: nothing lies astray there."""
    centre = strays(-5.0, COUNTS, extents=(0.5, 0.5, 0.0))
    assert centre[2] < centre[0] < centre[1]
