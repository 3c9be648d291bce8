"""Layers of the two convolutional networks, and PyTorch, which is an optional extra."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dprepro.runtime.extras import needs_extra

LEAST_SIDE = 16
"""Of an image: below, no pixel is left behind the second pooling."""


def side_of(columns: int, what: str) -> int:
    """Return the side of square images with a column a pixel; ValueError names `what`."""
    side = math.isqrt(columns)
    if side**2 != columns or side < LEAST_SIDE:
        raise ValueError(
            f"{what} reads square images of {LEAST_SIDE} x {LEAST_SIDE} pixels "
            f"or more, one column a pixel, got {columns} columns"
        )
    return side


def images_of(X: np.ndarray, side: int, centre: float, spread: float) -> np.ndarray:
    """Return (X - centre) / spread of pixels (n, side * side), float32 (n, 1, side, side)."""
    pixels = (X - np.float32(centre)) / np.float32(spread)
    return pixels.reshape(-1, 1, side, side)


def large(torch: Any, side: int, classes: int) -> Any:
    """Return the network of section 4.1 of Harder et al. 2020, as PyTorch starts it.

    Two convolutions with filters of 5 x 5 and 20 and 50 channels, each followed by pooling, and 500
    hidden units: 431,080 parameters for 28 x 28 pixels and 10 classes.
    """
    nn = torch.nn
    left = ((side - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(50 * left**2, 500), nn.ReLU(), nn.Linear(500, classes),
    )  # fmt: skip


def small(torch: Any, side: int, classes: int) -> Any:
    """Return the network of TensorFlow Privacy's tutorial for MNIST, as Keras starts layers.

    16 filters of 8 x 8 and 32 of 4 x 4, each at every second pixel and followed by pooling at every
    pixel, and 32 hidden units: 26,010 parameters for 28 x 28 pixels and 10 classes. Rectified units
    and the starting values are assumed.
    """
    nn = torch.nn
    left = (side // 2 - 5) // 2
    network = nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(32 * left**2, 32), nn.ReLU(), nn.Linear(32, classes),
    )  # fmt: skip
    for layer in network:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return network


NETWORKS = {"large": large, "small": small}


def started(torch: Any, network: str, side: int, classes: int, seed: int) -> Any:
    """Return one of `NETWORKS`, starting values drawn from the seed and nothing else."""
    with torch.random.fork_rng(devices=[]):  # the generator of the process stays as it is
        torch.manual_seed(seed)
        return NETWORKS[network](torch, side, classes)


@contextmanager
def one_thread() -> Iterator[Any]:
    """Give PyTorch, which uses one thread meanwhile: sums then have one order."""
    with needs_extra("torch", "a convolutional network needs PyTorch"):
        import torch
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(threads)
