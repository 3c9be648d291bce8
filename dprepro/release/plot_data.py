"""What fits hand to pictures: plain values, so that drawing them loads nothing that trains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, repr=False)
class Explained:
    """What one model says of each row.

    Attributes
    ----------
    title
        The model, in words.
    predicted
        The label it predicts, one a row.
    vectors
        Float (rows, panels, D): filters, or attributions, of the predicted class.
    captions
        One for each of `vectors`: weights of filters, or names of attributions.
    """

    title: str
    predicted: tuple[str, ...]
    vectors: np.ndarray
    captions: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, repr=False)
class Explanations:
    """Rows of a table, what models say of them, and what the columns are called.

    `inputs` is float (rows, D) as the models see them, `names` (D,) the columns, `labels` the true
    label of each row.
    """

    inputs: np.ndarray
    names: tuple[str, ...]
    labels: tuple[str, ...]
    models: tuple[Explained, ...]


@dataclass(frozen=True)
class BoostingRuns:
    """Exact diagnostics of several fits: they read the training rows and are not private.

    Attributes
    ----------
    title
        The model, in words.
    edges : float64 (fits, rounds)
        The advantage of each round over guessing, on its own weights.
    margins : float64 (fits, n)
        The mean vote times the label of each training row.
    """

    title: str
    edges: np.ndarray
    margins: np.ndarray
