"""The new way to add noise, to the values of `standin`: whole numbers and the exact sampler."""

from __future__ import annotations

import math

from dprepro.privacy.sampling import Bits, ExactSampler
from tests.attacks.releases import LEARNING_RATE, Release, leaf_mean

GRID = 2.0**-20
"""The unit of leaf values."""


def count(present: bool, scale: float, seed: int) -> Release:
    """Return the noisy number of rows in the canary's category."""
    noise = ExactSampler(Bits(seed)).gaussian(scale, ())
    return Release(float(present + noise), scale)


def leaf(present: bool, scale: float, seed: int) -> Release:
    """Return the noisy value of the canary's leaf, times the learning rate."""
    noise = ExactSampler(Bits(seed)).laplace(scale / GRID, ())
    value = GRID * float(math.trunc(leaf_mean(present) / GRID) + noise)
    return Release(LEARNING_RATE * value, scale)
