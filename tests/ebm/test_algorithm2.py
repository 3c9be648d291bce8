"""Algorithm 2 as it is to be read: by hand, and against the kernel."""

import numpy as np
import pytest

from dprepro.ebm import algorithm2
from dprepro.ebm.losses import LogisticLoss, SquaredLoss
from tests.ebm.test_kernel import problem, run


def test_two_steps_by_hand():
    """Two bins with a row each, one leaf a bin; targets 1 and 3, learning rate 1/2, counts 2."""
    codes, cuts = np.array([[0, 1]], np.uint8), np.array([[1, 255]] * 2, np.uint8)
    noise = np.array([[0.5, 0.0], [0.0, -0.25]])
    shapes = algorithm2.boost(
        codes, np.array([1.0, 3.0]), cuts, noise, np.full((1, 2), 2.0), np.array([2]), 0.5,
        SquaredLoss(),
    )  # fmt: skip
    # Leaf 1: (0.5 + 0.5) / 2 = 0.5, then 0.5 * 0.5 / 2 = 0.125. Leaf 2: 1.5 / 2 = 0.75, then
    # (0.5 * 2.25 - 0.25) / 2 = 0.4375.
    np.testing.assert_allclose(shapes, [[0.625, 1.1875]], rtol=1e-15)


@pytest.mark.parametrize("n_features", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredLoss(clip=0.5), SquaredLoss()], ids=str)
def test_the_kernel_does_the_same(n_features, loss):
    """The last feature has a bin of missing values behind the others, which no row may be in.

    2e-5 is for float32 scores and residuals in multiples of 2^-20.
    """
    codes, *others = problem([7, 32, 2, 5, 9][:n_features], 3)
    codes[-1] = np.minimum(codes[-1], others[-1][-1] - 2)
    expected = algorithm2.boost(codes, *others, 0.3, loss)
    found, _ = run(codes, *others, logistic=loss.is_logistic, bound=loss.clip)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert np.abs(expected).max() > 0.005
