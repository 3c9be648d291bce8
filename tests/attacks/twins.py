"""In which leaves is one row? Fits of a table whose rows are all the same show it.

14 features of 1,000 categories, 2,000 rows, `dp-ebm-joint` at epsilon 0.5: noise lifts more than
256 categories of a feature over the size of a bin, though all rows are in one of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.privacy.curator_base import listening
from dprepro.privacy.gdp import epsilon_of
from dprepro.privacy.ledger import Ledger

EPSILON, DELTA = 0.5, 1e-6
ROWS, FEATURES, CATEGORIES = 2000, 14, 1000
CANARY = tuple(71 * k % CATEGORIES for k in range(FEATURES))
"""The row's category of each feature."""
OWN_BIN = ROWS / 32

_NAMES = tuple(map(str, range(CATEGORIES)))
_DOMAIN = Domain(
    tuple(CategoricalFeature(f"x{k}", _NAMES) for k in range(FEATURES)), ("0", "1")
)  # fmt: skip


class Answers:
    """Hears what a curator releases."""

    def __init__(self) -> None:
        self.releases: list[Any] = []

    def asked(self, query: Any, release: Any) -> None:
        self.releases.append(release)

    def told(self, instruction: Any) -> None:
        pass


def fit(steps_a_feature: int, seed: int) -> DPEBMClassifier:
    """Fit `dp-ebm-joint` to rows that are all the same, with the label 1."""
    X = pd.DataFrame({
        f"x{k}": pd.Categorical.from_codes(np.full(ROWS, category), _NAMES)
        for k, category in enumerate(CANARY)
    })  # fmt: skip
    return DPEBMClassifier(
        EPSILON, DELTA, composition="joint", n_epochs=steps_a_feature, domain=_DOMAIN,
        random_state=seed,
    ).fit(X, np.ones(ROWS, int))  # fmt: skip


def leaves(steps_a_feature: int, seed: int) -> tuple[np.ndarray, Ledger]:
    """Return how often a row is in each leaf of each step, int (T, leaves), and the ledger.

    The sums of 2,000 equal residuals are far larger than the noise. So the largest sum of a step
    is that of a leaf with all rows, and a sum above half of it is no noise.
    """
    answers = Answers()
    with listening(answers):
        model = fit(steps_a_feature, seed)
    sums = answers.releases[-1].value
    largest = np.abs(sums).max(axis=1, keepdims=True)
    return np.sign(sums).astype(int) * (np.abs(sums) > largest / 2), model.ledger_


def spent_epsilon(leaves: np.ndarray, ledger: Ledger) -> float:
    """Return what a row spends that is in these leaves, int (T, leaves), of each step.

    Each step is a release of the sensitivity of the ledger, times the norm of the row's leaves.
    """
    counts, steps = ledger.entries
    assert steps.uses == len(leaves)
    squares = counts.uses / counts.noise_multiplier**2
    squares += (leaves**2).sum() / steps.noise_multiplier**2
    return epsilon_of(math.sqrt(squares), ledger.delta)
