"""Low bits of Laplace noise: is the value of a leaf noise alone, or is the canary in the leaf?

`dpboost-sound` at epsilon 1. Half of that is for the leaf, so its value may tell both tables apart
with an advantage of 1 - exp(-1/4) = 0.22 by honest means, but rule out no epsilon above 1.
"""

import math

import numpy as np
import pytest

from tests.attacks import exactly, releases, standin
from tests.attacks.evidence import Claims
from tests.attacks.low_bits import can_be_leaf
from tests.attacks.releases import EPSILON, FITS, LEARNING_RATE, RUNS, leaf_mean

HONEST_ADVANTAGE = 1 - math.exp(-EPSILON / 4)
SENSITIVITY = leaf_mean(True)
SCALE = SENSITIVITY / (EPSILON / 2)


pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def shipped():
    return {
        present: [releases.leaf(present, seed) for seed in range(FITS)] for present in (False, True)
    }


def claims(leaves, present):
    """Return the claims that the canary is there, or is not: no noise gives the value otherwise."""
    return Claims.of(
        lambda leaf: not can_be_leaf(leaf, leaf_mean(not present)),
        leaves[present],
        leaves[not present],
    )


def released_by(arithmetic):
    return {
        present: [arithmetic.leaf(present, SCALE, seed) for seed in range(RUNS)]
        for present in (False, True)
    }


@pytest.mark.parametrize("present", [True, False])
def test_the_attack_succeeds_on_floating_point(present):
    found = claims(released_by(standin), present)
    assert found.wrong == 0
    assert found.right > 0.5 * RUNS
    assert found.epsilon > 5 * EPSILON


def check_failed(found):
    assert found.advantage <= HONEST_ADVANTAGE + 4 * found.error
    assert found.epsilon <= EPSILON


@pytest.mark.parametrize("present", [True, False])
def test_the_attack_fails_on_exact_noise(present):
    check_failed(claims(released_by(exactly), present))


@pytest.mark.audits
@pytest.mark.parametrize("present", [True, False])
def test_the_attack_fails_on_dpboost_sound(shipped, present):
    check_failed(claims(shipped, present))


@pytest.mark.audits
def test_the_attack_was_given_what_it_expects(shipped):
    values = {present: [leaf.value for leaf in shipped[present]] for present in shipped}
    noise = math.sqrt(2) * LEARNING_RATE * SCALE
    assert [leaf.scale for leaf in shipped[True]] == pytest.approx([SCALE] * FITS)
    assert np.std(values[False]) == pytest.approx(noise, rel=0.1)
    moved = np.mean(values[True]) - np.mean(values[False])
    assert moved == pytest.approx(LEARNING_RATE * SENSITIVITY, abs=4 * noise * math.sqrt(2 / FITS))
