"""Parts of rows are whole numbers near what the formulas say."""

import numpy as np
from scipy.special import expit

from dprepro.methods.s_bdt.losses import BITS, UNIT, LogLoss, SquaredLoss

SCORES = np.array([-40.0, -3.2, -1e-3, 0.0, 0.7, 15.9, 80.0])


def units(values):
    return np.rint(np.asarray(values) / UNIT).astype(np.int64)


def test_labels_have_residuals_and_curvatures_of_the_log_loss():
    for label in (0, 1):
        residual, curvature = LogLoss().parts(units(np.full(7, label)), units(SCORES))
        p = expit(np.clip(SCORES, -16, 16))
        np.testing.assert_allclose(residual * UNIT, label - p, atol=2**-13)
        np.testing.assert_allclose(curvature * UNIT, p * (1 - p), atol=2**-13)
        assert residual.dtype == curvature.dtype == np.int64


def test_numbers_count_one_each():
    residual, curvature = SquaredLoss().parts(units([0.5, -1]), units([0.25, 0.25]))
    assert (residual * UNIT).tolist() == [0.25, -1.25]
    assert curvature.tolist() == [1 << BITS] * 2


def test_a_part_does_not_depend_on_the_other_rows():
    loss = LogLoss()
    scores = units(np.linspace(-5, 5, 101))
    together = loss.parts(np.zeros(101, np.int64), scores)
    alone = [loss.parts(np.zeros(1, np.int64), scores[i : i + 1]) for i in range(101)]
    assert together[0].tolist() == [int(residual[0]) for residual, _ in alone]
