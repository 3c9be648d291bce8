"""The weights of each round, and what the two scales of margins mean."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.lazybb.weighing import Weighing


def test_the_first_weights_are_equal() -> None:
    for margin in ("signed", "agreements"):
        weights = Weighing(0.5, 0.3, margin).weights(np.zeros(8), 0)
        np.testing.assert_allclose(weights, 1 / 8)


def test_weights_fall_with_the_margin_and_are_capped() -> None:
    margins = np.arange(-2.0, 11.0, 2.0)
    weights = Weighing(0.7, 0.4).weights(margins, 10)
    assert (np.diff(weights) <= 0).all()
    assert weights[0] == pytest.approx(1 / (0.4 * 7))
    free = weights[weights < weights[0] - 1e-12]
    np.testing.assert_allclose(np.diff(np.log(free)), -0.7 * 2)


def test_counting_agreements_halves_the_learning_rate() -> None:
    odds = [0.05, 0.1, 0.15, 0.2, 0.2, 0.3]
    margins = np.random.default_rng(0).choice(np.arange(-5.0, 6.0, 2.0), 50, p=odds)
    counted = Weighing(0.8, 0.3, "agreements").weights(margins, 5)
    halved = Weighing(0.4, 0.3, "signed").weights(margins, 5)
    np.testing.assert_allclose(counted, halved)
