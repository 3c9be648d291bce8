"""Algorithm 1: rounds of exact learners, whose curator knows what they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from dprepro.methods.lazybb.queries import Literals
from dprepro.methods.lazybb.sensitivity import TOTAL
from dprepro.methods.lazybb.weights import Weighing
from tests.methods.lazybb.lab import exact

RNG = np.random.default_rng(0)
X = RNG.integers(0, 2, (400, 10))
SIGNS = np.where(X[:, :5].sum(axis=1) + RNG.normal(0, 0.5, 400) > 2.5, 1, -1)


def test_edges_are_one_half_less_the_weighted_error() -> None:
    weighing = Weighing(0.5, 0.5)
    hypotheses, made = exact(X, SIGNS, weighing, 7)
    margins = np.zeros(400, np.int64)
    for turn, (hypothesis, edge) in enumerate(zip(hypotheses, made.diagnose().edges, strict=True)):
        outputs = hypothesis.outputs(Literals(X))
        error = weighing.weights(margins, turn)[outputs != SIGNS].sum() / TOTAL
        assert edge == pytest.approx(0.5 - error)
        margins += SIGNS * outputs
    np.testing.assert_array_equal(made.diagnose().margins, margins / 7)


def test_boosting_beats_its_best_rule() -> None:
    hypotheses, _ = exact(X, SIGNS, Weighing(0.3, 0.3), 25)
    outputs = np.array([h.outputs(Literals(X)) for h in hypotheses])
    best = np.mean(outputs == SIGNS, axis=1).max()
    assert np.mean(np.sign(outputs.sum(axis=0)) == SIGNS) > best + 0.05
