"""What fits of the shipped version release about one row, the canary, that is there or is not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier
from dprepro.methods.dpboost.estimator import DPBoostClassifier

EPSILON, DELTA = 1.0, 1e-6

RUNS = 3000
"""Releases with the canary, and as many without."""

FITS = 1000
"""Releases of fitted models, which take longer. Where the attacks succeed, so many show it."""


@dataclass(frozen=True)
class Release:
    """A released value, and what everybody knows of it.

    Attributes
    ----------
    value
        As it stands in the model.
    scale
        Of the noise, by the ledger, in the unit of the exact value.
    """

    value: float
    scale: float


ROWS = 1500
CANARY = "canary"
_CATEGORIES = ("a", "b", "c", CANARY)
_FEATURES = tuple(CategoricalFeature(f"x{k}", _CATEGORIES) for k in range(5))


@cache
def _counted_rows() -> tuple[pd.DataFrame, np.ndarray]:
    """Return the table: the canary, the last row, is alone in its categories."""
    codes = np.arange(ROWS)[:, None] // 3 ** np.arange(5) % 3
    codes[-1] = _CATEGORIES.index(CANARY)
    X = pd.DataFrame({
        feature.name: pd.Categorical.from_codes(column, _CATEGORIES)
        for feature, column in zip(_FEATURES, codes.T, strict=True)
    })  # fmt: skip
    return X, np.arange(ROWS) % 2


def counts(present: bool, seed: int) -> list[Release]:
    """Fit `dp-ebm-gdp`; return the counts of the canary's categories that have a bin of their own.

    Their exact values are 1 or 0. A category whose noisy count is small is merged with others.
    """
    X, y = _counted_rows()
    rows = ROWS - (not present)
    model = DPEBMClassifier(
        EPSILON, DELTA, composition="gdp", n_epochs=1, domain=Domain(_FEATURES, ("0", "1")),
        random_state=seed,
    ).fit(X[:rows], y[:rows])  # fmt: skip
    scale = model.ledger_.entries[0].scale
    return [
        Release(float(bin_counts[bins.labels.index(CANARY)]), scale)
        for bins, bin_counts in zip(model.bins_, model.bin_counts_, strict=True)
        if CANARY in bins.labels
    ]


LEARNING_RATE = 0.1
RIDGE = 0.1


def leaf_mean(present: bool) -> float:
    """Return the exact value of the canary's leaf: -S / (n + lambda), its gradient being -1."""
    return 1 / (1 + RIDGE) if present else 0.0


def leaf(present: bool, seed: int) -> Release:
    """Fit `dpboost-sound` with one tree and one cut; return the value of the canary's leaf.

    All other rows are in the other leaf.
    """
    X = pd.DataFrame({"x": [0.25] * 20 + [0.75] * present})
    y = np.array([0, 1] * 10 + [1] * present)
    model = DPBoostClassifier(
        EPSILON, variant="sound", n_trees=1, trees_per_ensemble=1, learning_rate=LEARNING_RATE,
        max_depth=1, reg_lambda=RIDGE, max_bins=2,
        domain=Domain((NumericFeature("x", 0.0, 1.0),), ("0", "1")), random_state=seed,
    ).fit(X, y)  # fmt: skip
    (tree,), entry = model.trees_, model.ledger_.entries[-1]
    # The entry is in units of the tree's sensitivity, that of one leaf's value.
    return Release(float(tree.value[tree.left[0] + 1]), entry.scale / (1 + RIDGE))
