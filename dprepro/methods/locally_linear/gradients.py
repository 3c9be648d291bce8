"""Exact sums of clipped gradients, batch after batch: private wherever the rows are.

The rows of a fit: read and normalised.

How to train locally linear maps: constants, all of them public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from dprepro.estimators.inputs import checked
from dprepro.estimators.targets import classes_among
from dprepro.methods.locally_linear.maps import LARGEST_INPUT, clipped_sum, squared_norms
from dprepro.privacy.subsampling import poisson_sample

SAMPLINGS = ("poisson", "shuffle")

_NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class NumericRows:
    """The rows of a fit.

    Attributes
    ----------
    X
        Normalised inputs, float32 (n, D).
    labels
        Codes 0..K-1, int64 (n,).
    """

    X: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def numeric_rows(model: Any, X: Any, y: Any, known: Sequence[Any] | None = None) -> NumericRows:
    """Return the rows, normalised; set ``classes_``.

    Parameters
    ----------
    model
        Its `centre` and `spread` normalise the inputs.
    X, y
        Numbers (n, D) and labels (n,).
    known
        The labels of a domain; None takes those that occur in y.

    Raises
    ------
    ValueError
        On missing or infinite values, fewer than two classes, or labels other than those known.
    """
    X, y = checked(model, X, y, dtype=np.float32, ensure_min_samples=2)
    check_classification_targets(y)
    model.classes_ = classes_among(model, y, known)
    labels = np.searchsorted(model.classes_, y).astype(np.int64)
    return NumericRows(normalised(model, X), labels)


def normalised(model: Any, X: np.ndarray) -> np.ndarray:
    """Return (X - centre) / spread, cut off at +-LARGEST_INPUT, float32 (n, D)."""
    if not (model.centre == 0 and model.spread == 1):
        X = (X - np.float32(model.centre)) / np.float32(model.spread)
    # Longer rows would overflow float32 in their scores and norms.
    if X.min() >= -LARGEST_INPUT and X.max() <= LARGEST_INPUT:
        return X
    return np.clip(X, -LARGEST_INPUT, LARGEST_INPUT)


@dataclass(frozen=True)
class FitSettings:
    """How to train.

    `batch_size` is the expected one, L, and what private sums are divided by; `clip` may be
    infinite. The learning rate falls to `decay` times itself every `decay_every` epochs, and Adam
    starts anew with each fall, as in the authors' code.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    decay: float
    decay_every: int
    beta: float
    clip: float
    sampling: str

    @property
    def is_poisson(self) -> bool:
        """Whether rows join batches independently of each other."""
        return self.sampling == "poisson"

    def steps_per_epoch(self, rows: int) -> int:
        """Return the number of batches in an epoch."""
        return math.ceil(rows / self.batch_size)

    def steps(self, rows: int) -> int:
        """Return the number of all steps, T."""
        return self.epochs * self.steps_per_epoch(rows)

    def rate(self, rows: int) -> float:
        """Return the probability q = L / n with which Poisson sampling takes a row."""
        return min(1.0, self.batch_size / rows)


class ExactGradients:
    """Draws one batch after the other and sums its gradients, without noise.

    For a curator, and for a fit without privacy.

    Parameters
    ----------
    params
        Its sampling, batch size and epochs say what the batches are.
    generator
        Draws the batches, each when its sum is asked for.
    """

    def __init__(
        self, rows: NumericRows, params: FitSettings, generator: np.random.Generator
    ) -> None:
        self._rows, self._beta = rows, params.beta
        self._batches = batches(generator, len(rows), params)
        self.project(None)

    def project(self, projections: np.ndarray | None) -> None:
        """Take R, float32 (M, D', D), as the maps' projections; None projects nothing."""
        self._projections = projections
        self._norms: np.ndarray | None = None

    def next_sum(self, theta: np.ndarray, clip: float) -> tuple[np.ndarray, int]:
        """Return the sum over the next batch, and how many rows that has. Both are private.

        After the last batch there are no more rows: the sum is 0.

        Parameters
        ----------
        theta
            Where gradients are taken: float32 (M, K, D' + 1), the offset last. The sum has the same
            shape.
        clip
            Largest norm of a row's gradient; it may be infinite.
        """
        batch = next(self._batches, _NO_ROWS)
        total = clipped_sum(
            self._rows.X.take(batch, axis=0), self._rows.labels.take(batch),
            self._norms_of(batch, clip), theta, self._projections, self._beta, clip,
        )  # fmt: skip
        return total, batch.size

    def _norms_of(self, batch: np.ndarray, clip: float) -> np.ndarray:
        if math.isinf(clip):
            return np.zeros((batch.size, 1), dtype=np.float32)
        if self._norms is None:  # once for all batches: projecting every row takes long
            self._norms = squared_norms(self._rows.X, self._projections)
        return self._norms.take(batch, axis=0)


def batches(generator: np.random.Generator, rows: int, params: FitSettings) -> Iterator[np.ndarray]:
    """Yield the row numbers of each step, sorted.

    "poisson": every row joins each batch independently with probability q, so that batches differ
    in size and may be empty. "shuffle": each epoch deals all rows out once, to batches of L.
    """
    per_epoch = params.steps_per_epoch(rows)
    for _ in range(params.epochs):
        if not params.is_poisson:
            order = generator.permutation(rows)
            for start in range(0, rows, params.batch_size):
                yield np.sort(order[start : start + params.batch_size])
            continue
        for _ in range(per_epoch):
            yield poisson_sample(generator, rows, params.rate(rows))
