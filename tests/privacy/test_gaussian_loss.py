"""Losses of Gaussian releases, for all cells at once, beside those of `dp_accounting`."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from dprepro.privacy.gaussian_loss import gaussian_loss


def cells(loss):
    """Return where the cells begin, their probabilities, and that of an infinite loss."""
    found = []
    for side in (loss._pmf_remove, loss._pmf_add):
        dense = side.to_dense_pmf()
        found.append((dense._lower_loss, np.array(dense._probs), dense._infinity_mass))
    return found


@pytest.mark.parametrize("rate", [1.0, 0.999, 0.5, 0.01, 1e-8])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.71, 400.0])
def test_every_cell_has_the_probability_that_the_library_gives_it(sigma, rate):
    grain = 1e-3 * max(1.0, 1 / sigma**2)
    expected = from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=grain
    )
    for ours, theirs in zip(cells(gaussian_loss(sigma, grain, rate)), cells(expected), strict=True):
        assert ours[0] == theirs[0]
        assert ours[1].size > 1
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9, atol=1e-15)
        assert ours[2] == pytest.approx(theirs[2], rel=1e-9)


def test_a_row_that_is_exchanged_is_left_to_the_library():
    ours = gaussian_loss(1.3, 1e-3, 0.1, exchanged=True)
    theirs = from_gaussian_mechanism(
        1.3,
        sampling_prob=0.1,
        value_discretization_interval=1e-3,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    epsilon = ours.get_epsilon_for_delta(1e-6)
    assert epsilon == theirs.get_epsilon_for_delta(1e-6)
    assert epsilon > gaussian_loss(1.3, 1e-3, 0.1).get_epsilon_for_delta(1e-6)
