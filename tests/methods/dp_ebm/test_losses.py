"""Losses: what is charged covers what is let through, or the gap is named."""

import math

import numpy as np
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods.dp_ebm.losses import LogisticLoss, SquaredLoss

RANGE = Domain((NumericFeature("x", 0, 1),), (10.0, 14.0))


@pytest.mark.parametrize(
    ("loss", "charged", "gap"),
    [
        (LogisticLoss(), 1.0, False),
        (SquaredLoss.sound(RANGE), 0.5, False),
        (SquaredLoss.published(RANGE), 1.0, True),
    ],
)
def test_a_loss_charges_for_its_largest_residual_or_names_the_gap(loss, charged, gap):
    assert loss.charged_sensitivity("zero-out").stated == charged
    assert loss.charged_sensitivity("replace-one").stated == 2 * charged
    assert (loss.gap is not None) == gap == (loss.residual_bound > charged)


@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredLoss.sound(RANGE)])
def test_residuals_stay_within_the_bound(loss):
    targets = loss.scaled(np.array([0.0, 1.0]))
    residuals = loss.residuals(targets, np.array([50.0, -50.0]))
    assert np.abs(residuals).max() == pytest.approx(loss.residual_bound)


@pytest.mark.parametrize(
    ("bounds", "bits"),
    [((10.0, 14.0), 24), ((0.0, 16.0), 24), ((99.0, 100.0), 23), ((-1e6, 1 - 1e6), 10)],
)
def test_targets_far_from_0_have_a_coarser_grid_that_holds_them(bounds, bits):
    loss = SquaredLoss.published(Domain(RANGE.features, bounds))
    assert loss.score_bits == bits
    whole = loss.whole(np.array([-math.inf, *bounds, math.inf]))
    assert whole.dtype == np.int32
    expected = np.array([bounds[0], *bounds, bounds[1]]) / (bounds[1] - bounds[0])
    np.testing.assert_allclose(whole / 2.0**bits, expected, atol=2.0**-bits)


@pytest.mark.parametrize("bounds", [(10.0, 14.0), (0.1, 0.4), (-1e9, 3e9), (1e6, 1e6 + 0.7)])
def test_targets_of_the_sound_regression_stay_within_the_bound_on_its_grid(bounds):
    loss = SquaredLoss.sound(Domain(RANGE.features, bounds))
    whole = loss.whole(np.array([-math.inf, *bounds, math.inf]))
    assert loss.whole_bound << 4 == 2**23 == whole[-1] == -whole[0]
    np.testing.assert_array_equal(whole[1:3], whole[[0, 3]])


def test_a_bound_between_two_whole_numbers_is_rounded_down():
    class Between(LogisticLoss):
        residual_bound = 1 / 3

    assert Between().whole_bound == 349525 < 2**20 / 3


def test_labels_are_0_or_1_whatever_is_given():
    np.testing.assert_array_equal(
        LogisticLoss().scaled(np.array([-3.0, 0.4, 9.0])), np.float32([0, 0.4, 1])
    )
    np.testing.assert_array_equal(
        LogisticLoss().whole(np.array([-math.inf, -3.0, 0.0, 0.4, 1.0, 1e9])), [0, 0, 0, 1, 1, 1]
    )
    assert LogisticLoss().whole_bound == 2**20


def test_a_loss_words_what_a_step_releases_and_says_which_rows_are_alike():
    plain, adaptive = LogisticLoss().released, LogisticLoss(adaptive=True).released
    assert plain == SquaredLoss.sound(RANGE).released
    assert adaptive == (
        f"{plain}. Noise and sensitivity are multiplied by the largest difference that any row can "
        "then have"
    )
    np.testing.assert_array_equal(LogisticLoss().strata(np.array([0.0, 1.0])), [0, 1])
    assert SquaredLoss().strata(np.array([0.0, 1.0])) is None


def test_targets_are_clipped_and_centred():
    np.testing.assert_array_equal(
        SquaredLoss.sound(RANGE).scaled(np.array([-math.inf, 12.0, 99.0])), [-0.5, 0.0, 0.5]
    )
    assert SquaredLoss.published(RANGE).scaled(np.array([10.0])).dtype == np.float32


def test_rows_of_one_label_lie_together_in_their_order():
    np.testing.assert_array_equal(
        LogisticLoss().row_order(np.array([1.0, 0.0, 1.0, 0.0])), [1, 3, 0, 2]
    )
    np.testing.assert_array_equal(SquaredLoss().row_order(np.array([3.0, 1.0])), [0, 1])
