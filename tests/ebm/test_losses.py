"""Losses: what is charged covers what is let through, or the gap is named."""

import math

import numpy as np
import pytest

from dprepro.data.domain import Domain, NumericFeature
from dprepro.ebm.losses import LogisticLoss, SquaredLoss

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


def test_targets_are_clipped_and_centred():
    np.testing.assert_array_equal(
        SquaredLoss.sound(RANGE).scaled(np.array([-math.inf, 12.0, 99.0])), [-0.5, 0.0, 0.5]
    )
    assert SquaredLoss.published(RANGE).scaled(np.array([10.0])).dtype == np.float32
