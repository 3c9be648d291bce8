"""What claims prove is no more than what is true."""

import math

import numpy as np
import pytest

from tests.attacks.evidence import Claims


def test_no_claim_proves_nothing():
    nothing = Claims(0, 0, 1000)
    assert nothing.epsilon == nothing.delta(1.0) == nothing.advantage == nothing.error == 0.0


def test_claims_that_are_always_true_prove_much():
    found = Claims(3000, 0, 3000)
    # 0 of n excludes rates above -log(0.001) / n.
    assert found.epsilon == pytest.approx(math.log(3000 / -math.log(0.001)), rel=0.01)
    assert found.delta(1.0) == pytest.approx(1.0, abs=0.01)
    assert found.advantage == 1.0


def test_guesses_prove_nothing():
    found = Claims(1500, 1500, 3000)
    assert found.epsilon == found.delta(0.0) == found.advantage == 0.0
    assert found.error == pytest.approx(math.sqrt(0.5 / 3000))


def test_the_best_claims_of_an_honest_release_do_not_exceed_its_epsilon():
    """Randomised response at epsilon 1: the truth with probability e / (1 + e)."""
    rng = np.random.default_rng(0)
    truth = math.e / (1 + math.e)
    for _ in range(50):
        found = Claims(rng.binomial(3000, truth), rng.binomial(3000, 1 - truth), 3000)
        assert 0.7 < found.epsilon < 1.0
        assert found.delta(1.0) == 0.0


def test_claims_are_counted():
    found = Claims.of(lambda release: release > 2, [1, 2, 3, 4], [3, 0, 0, 0])
    assert (found.right, found.wrong, found.runs) == (2, 1, 4)
    assert found.advantage == 0.25
