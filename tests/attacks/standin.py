"""The old way to add noise, in floating point: what the attacks are tried on to see that they work.

Each function releases what the fit of the same name in `releases` does, from the same exact value
with noise of the same scale. Only the arithmetic is another: NumPy's noise, added to doubles.
"""

from __future__ import annotations

import numpy as np

from dprepro.privacy.ledger import Ledger
from tests.attacks import twins
from tests.attacks.releases import LEARNING_RATE, Release, leaf_mean


def count(present: bool, scale: float, seed: int) -> Release:
    """Return the noisy number of rows in the canary's category."""
    noise = np.random.default_rng(seed).normal(0.0, scale)
    return Release(float(present) + noise, scale)


def leaf(present: bool, scale: float, seed: int) -> Release:
    """Return the noisy value of the canary's leaf, times the learning rate."""
    noise = np.random.default_rng(seed).laplace(0.0, scale)
    return Release(LEARNING_RATE * (leaf_mean(present) + noise), scale)


def leaves_of_twins(steps_a_feature: int, seed: int) -> tuple[np.ndarray, Ledger]:
    """Return what `twins.leaves` does, with bins that are numbered beyond 255 and codes that wrap.

    A category is a bin if its noisy count reaches the target, and two cuts are drawn for a step; as
    bytes both start again at 0 after 255.
    """
    ledger = twins.fit(steps_a_feature, seed).ledger_
    rng = np.random.default_rng(seed)
    steps = []
    for category in twins.CANARY:
        counts = np.zeros(twins.CATEGORIES)
        counts[category] = twins.ROWS
        kept = counts + rng.normal(0.0, ledger.entries[0].scale, counts.size) >= twins.OWN_BIN
        code = np.uint8(np.cumsum(kept)[category] - 1)
        for _ in range(steps_a_feature):
            cuts = np.sort(rng.choice(np.arange(1, kept.sum()), 2, replace=False))
            steps.append(_leaves(code, cuts.astype(np.uint8)))
    return np.array(steps), ledger


def _leaves(code: np.uint8, cuts: np.ndarray) -> np.ndarray:
    """Return how often a row is in each leaf.

    The sum of a leaf is that of all rows from its first bin on, less the same for the next leaf.
    """
    reached = np.array([1, *(code >= cuts), 0])
    return reached[:-1] - reached[1:]
