"""Exact sums of clipped gradients, batch after batch: private wherever the rows are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dprepro.llm.maps import clipped_sum, squared_norms
from dprepro.llm.rows import NumericRows
from dprepro.llm.settings import FitSettings
from dprepro.privacy.subsampling import poisson_sample

_NO_ROWS = np.empty(0, dtype=np.int64)


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
