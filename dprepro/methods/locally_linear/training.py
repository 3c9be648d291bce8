"""Training by Adam on mean gradients: Algorithm 1 of the paper, and its non-private twin.

No row comes here: with privacy a gradient is a noisy answer, and Adam post-processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dprepro.runtime.kernels import kernel

if TYPE_CHECKING:
    from dprepro.methods.locally_linear.gradients import FitSettings

MeanGradient = Callable[[np.ndarray], np.ndarray]
"""Takes theta; returns the mean gradient of the next batch there. Both: float32 (M, K, D' + 1)."""


class Adam:
    """Adam (Kingma, Ba 2015) with its usual constants, in place on float32 arrays."""

    _MEAN, _SQUARE, _FLOOR = 0.9, 0.999, 1e-8

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._mean, self._square = np.zeros((2, *shape), dtype=np.float32)
        self._steps = 0

    def step(self, values: np.ndarray, gradient: np.ndarray, rate: float) -> None:
        """Move `values` against `gradient`."""
        self._steps += 1
        enlarged = 1 / math.sqrt(1 - self._SQUARE**self._steps)
        _move(
            values, np.ascontiguousarray(gradient), self._mean, self._square,
            np.float32(1 - self._MEAN), np.float32(1 - self._SQUARE), np.float32(enlarged),
            np.float32(self._FLOOR), np.float32(rate / (1 - self._MEAN**self._steps)),
        )  # fmt: skip


@kernel(
    "(float32[:, :, ::1], const(float32[:, :, ::1]), float32[:, :, ::1], float32[:, :, ::1], "
    "float32, float32, float32, float32, float32)",
    error_model="numpy",
)
def _move(values, gradient, mean, square, to_mean, to_square, enlarged, floor, rate):  # type: ignore[no-untyped-def]
    """Take a step of `Adam`; the arrays but `gradient` change in place."""
    m, s, v, g = mean.ravel(), square.ravel(), values.ravel(), gradient.ravel()
    for i in range(v.size):
        m[i] += to_mean * (g[i] - m[i])
        s[i] += to_square * (g[i] * g[i] - s[i])
        v[i] -= m[i] / (np.sqrt(s[i]) * enlarged + floor) * rate


def train(theta: np.ndarray, params: FitSettings, rows: int, mean_gradient: MeanGradient) -> None:
    """Train theta, float32 (M, K, D' + 1), the offset last, in place.

    Parameters
    ----------
    rows
        How many there are: it sets the number of steps.
    mean_gradient
        Is asked once a step.
    """
    per_epoch = params.steps_per_epoch(rows)
    for step in range(params.steps(rows)):
        epoch = step // per_epoch
        if step % (per_epoch * params.decay_every) == 0:
            adam = Adam(theta.shape)
        rate = params.learning_rate * params.decay ** (epoch // params.decay_every)
        adam.step(theta, mean_gradient(theta), rate)
