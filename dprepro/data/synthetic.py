"""A synthetic stand-in for private data: only the shape is that of the real data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import logit, ndtri

from dprepro.data.card_parts import Synthetic


def stand_in(shape: Synthetic, target: str, labels: Sequence[str]) -> pd.DataFrame:
    """Return a table with features x1, x2, ... and a target, all drawn from the shape's seed.

    Numeric features are standard normal numbers with two decimals, half of them skewed; binary
    ones are 0 or 1, the latter in 5 to 50 % of the rows. Each row has a score: the sum of one
    linear or U-shaped effect of every feature, and logistic noise. The rows with the highest scores
    are the positives.

    Parameters
    ----------
    target
        Name of the target's column.
    labels
        The negative and the positive label.

    Notes
    -----
    The table is the same on every machine: only uniform numbers are drawn, whose stream NumPy does
    not change from release to release, and values are rounded.
    """
    rng = np.random.default_rng(shape.seed)
    normal = ndtri(_uniform(rng, shape.rows, shape.numeric))
    skewed = np.arange(shape.numeric) % 2 == 1
    numeric = np.round(np.where(skewed, np.exp(normal), normal), 2)
    rates = 0.05 + 0.45 * rng.random(shape.binary)
    binary = (_uniform(rng, shape.rows, shape.binary) < rates).astype(float)
    effects = np.column_stack([_effects(normal), binary - rates])
    weights = rng.random(effects.shape[1]) - 0.25
    odds = effects @ weights + logit(_uniform(rng, shape.rows, 1)[:, 0])
    is_positive = np.zeros(shape.rows, dtype=int)
    is_positive[np.argsort(-odds, kind="stable")[: shape.positives]] = 1
    names = [f"x{k + 1}" for k in range(shape.numeric + shape.binary)]
    table = pd.DataFrame(np.column_stack([numeric, binary]), columns=names)
    table[target] = np.asarray(labels, dtype=object)[is_positive]
    return table


def _uniform(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw from the open interval (0, 1); NumPy's own includes 0."""
    return np.maximum(rng.random((rows, columns)), 2.0**-53)


def _effects(normal: np.ndarray) -> np.ndarray:
    is_u_shaped = np.arange(normal.shape[1]) % 3 == 2
    return np.where(is_u_shaped, (normal**2 - 1) / np.sqrt(2), normal)
