"""Training by minibatches and Adam: Algorithm 1 of the paper, and its non-private twin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dprepro.llm.maps import (
    NO_CLIP,
    filters_of,
    inner_gradient,
    score_gradients,
    scores_of,
    squared_norms,
)

SAMPLINGS = ("poisson", "shuffle")


@dataclass(frozen=True)
class Plan:
    """How to train.

    `batch_size` is the expected one, L, and what sums are divided by; `clip` may be infinite. The
    learning rate falls to `decay` times itself every `decay_every` epochs, and Adam starts anew
    with each fall, as in the authors' code.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    decay: float
    decay_every: int
    beta: float
    clip: float
    sampling: str

    def steps_per_epoch(self, rows: int) -> int:
        """Return the number of batches in an epoch."""
        return math.ceil(rows / self.batch_size)

    def steps(self, rows: int) -> int:
        """Return the number of all steps, T."""
        return self.epochs * self.steps_per_epoch(rows)

    def rate(self, rows: int) -> float:
        """Return the probability q = L / n with which Poisson sampling takes a row."""
        return min(1.0, self.batch_size / rows)


class Adam:
    """Adam (Kingma, Ba 2015) with its usual constants, in place on float32 arrays."""

    _MEAN, _SQUARE, _FLOOR = 0.9, 0.999, 1e-8

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._mean = np.zeros(shape, dtype=np.float32)
        self._square = np.zeros(shape, dtype=np.float32)
        self._steps = 0

    def step(self, values: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        """Move `values` against `gradient`."""
        self._steps += 1
        self._mean += np.float32(1 - self._MEAN) * (gradient - self._mean)
        self._square += np.float32(1 - self._SQUARE) * (gradient * gradient - self._square)
        root = np.sqrt(self._square)
        root *= np.float32(1 / math.sqrt(1 - self._SQUARE**self._steps))
        root += np.float32(self._FLOOR)
        np.divide(self._mean, root, out=root)
        root *= np.float32(rate / (1 - self._MEAN**self._steps))
        values -= root


def batches(generator: np.random.Generator, rows: int, plan: Plan) -> Iterator[np.ndarray]:
    """Yield the row numbers of each step, sorted.

    "poisson": every row joins each batch independently with probability q, so that batches differ
    in size and may be empty (a binomial size and then a uniform subset of that size are the same
    in distribution). "shuffle": each epoch deals all rows out once, to batches of L.
    """
    per_epoch = plan.steps_per_epoch(rows)
    for _ in range(plan.epochs):
        if plan.sampling == "shuffle":
            order = generator.permutation(rows)
            for start in range(0, rows, plan.batch_size):
                yield np.sort(order[start : start + plan.batch_size])
            continue
        for _ in range(per_epoch):
            size = generator.binomial(rows, plan.rate(rows))
            yield np.sort(generator.choice(rows, size, replace=False, shuffle=False))


def train(
    X: np.ndarray,
    labels: np.ndarray,
    theta: np.ndarray,
    projections: np.ndarray | None,
    plan: Plan,
    generator: np.random.Generator,
    noise: Iterator[np.ndarray] | None = None,
) -> None:
    """Train theta in place.

    Parameters
    ----------
    X
        Float32 (n, D).
    labels
        Codes 0..K-1, int64 (n,).
    theta
        Float32 (M, K, D' + 1), the offset last.
    projections
        R, float32 (M, D', D), or None where D' = D.
    generator
        Draws the batches, which stay secret.
    noise
        What is added to each step's sum of clipped gradients, shaped as theta; None adds nothing.
    """
    norms = np.zeros((len(X), 1), dtype=np.float32)
    if math.isfinite(plan.clip):
        norms = squared_norms(X, projections)
    per_epoch = plan.steps_per_epoch(len(X))
    for step, rows in enumerate(batches(generator, len(X), plan)):
        epoch = step // per_epoch
        if step % (per_epoch * plan.decay_every) == 0:
            adam = Adam(theta.shape)
        gradient = _gradient(X[rows], labels[rows], norms[rows], theta, projections, plan)
        if noise is not None:
            gradient += next(noise)
        # Poisson samples differ in size, which is secret: the divisor does not follow it.
        gradient /= np.float32(plan.batch_size if noise is not None else max(1, len(rows)))
        adam.step(theta, gradient, plan.learning_rate * plan.decay ** (epoch // plan.decay_every))


def _gradient(
    X: np.ndarray,
    labels: np.ndarray,
    norms: np.ndarray,
    theta: np.ndarray,
    projections: np.ndarray | None,
    plan: Plan,
) -> np.ndarray:
    """Return the sum of the rows' clipped gradients, float32 (M, K, D' + 1).

    Inputs are never projected: theta is carried to the features (w = theta R) and the gradient
    back, which costs M K D D' instead of M D D' for each row.
    """
    filters = filters_of(theta, projections)
    scores = scores_of(X, filters, theta[..., -1])
    score_gradients(scores, labels, plan.beta, norms, min(plan.clip, NO_CLIP))
    flat = scores.reshape(len(X), theta.shape[0] * theta.shape[1])  # a sample may be empty
    gradient = np.empty_like(theta)
    gradient[..., :-1] = inner_gradient((flat.T @ X).reshape(filters.shape), projections)
    gradient[..., -1] = flat.sum(axis=0).reshape(theta.shape[:2])
    return gradient
