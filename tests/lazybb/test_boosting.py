"""Algorithm 1: the weights of each round, and what the two scales of margins mean."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.lazybb.boosting import Boosting
from dprepro.lazybb.literals import Literals
from dprepro.lazybb.one_rule import OneRuleLearner
from dprepro.privacy.weighted import WeightedExponential

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (400, 10))
SIGNS = np.where(X[:, :5].sum(axis=1) + RNG.normal(0, 0.5, 400) > 2.5, 1.0, -1.0)
LEARNER = OneRuleLearner(WeightedExponential())


def test_the_first_weights_are_equal() -> None:
    for margin in ("signed", "agreements"):
        weights = Boosting(3, 0.5, 0.3, margin).weights(np.zeros(8), 0)
        np.testing.assert_allclose(weights, 1 / 8)


def test_weights_fall_with_the_margin_and_are_capped() -> None:
    margins = np.arange(-2.0, 11.0, 2.0)
    weights = Boosting(10, 0.7, 0.4).weights(margins, 10)
    assert (np.diff(weights) <= 0).all()
    assert weights[0] == pytest.approx(1 / (0.4 * 7))
    free = weights[weights < weights[0] - 1e-12]
    np.testing.assert_allclose(np.diff(np.log(free)), -0.7 * 2)


def test_counting_agreements_halves_the_learning_rate() -> None:
    margins = RNG.choice(np.arange(-5.0, 6.0, 2.0), 50, p=[0.05, 0.1, 0.15, 0.2, 0.2, 0.3])
    counted = Boosting(9, 0.8, 0.3, "agreements").weights(margins, 5)
    halved = Boosting(9, 0.4, 0.3, "signed").weights(margins, 5)
    np.testing.assert_allclose(counted, halved)


def test_edges_are_one_half_less_the_weighted_error() -> None:
    boosting = Boosting(7, 0.5, 0.5)
    hypotheses, edges = boosting.run(Literals(X), SIGNS, LEARNER)
    margins = np.zeros(400)
    for turn, (hypothesis, edge) in enumerate(zip(hypotheses, edges, strict=True)):
        outputs = hypothesis.outputs(Literals(X))
        error = boosting.weights(margins, turn)[outputs != SIGNS].sum()
        assert edge == pytest.approx(0.5 - error)
        margins += SIGNS * outputs


def test_boosting_beats_its_best_rule() -> None:
    literals = Literals(X)
    hypotheses, _ = Boosting(25, 0.3, 0.3).run(literals, SIGNS, LEARNER)
    outputs = np.array([h.outputs(literals) for h in hypotheses])
    best = np.mean(outputs == SIGNS, axis=1).max()
    assert np.mean(np.sign(outputs.sum(axis=0)) == SIGNS) > best + 0.05
