"""The noise that the authors' code adds to leaves: one public sequence, the same in every fit.

Anybody can compute it and take it off again, so that it protects no row. It is here because printed
results depend on it: the means of 25 splits share one draw of the noise.
"""

from __future__ import annotations

import numpy as np

from dprepro.privacy.mechanisms import Unit

SEED = 42
"""Of the Mersenne Twister (MT19937, 32 bits) that every model of the code starts anew."""


def laplace_sequence(n: int) -> np.ndarray:
    """Return the first n numbers of scale 1, float64 (n,), of float32 precision.

    Each is the difference of two exponential numbers -ln(1 - u), with u the next word of the
    generator over 2^32, rounded to float32.
    """
    words = np.random.RandomState(SEED)._bit_generator.random_raw(2 * n)
    below_one = np.nextafter(np.float32(1), np.float32(0))
    uniform = np.minimum(words.astype(np.float32) / np.float32(2**32), below_one)
    exponential = -np.log1p(-uniform)
    return (exponential[0::2] - exponential[1::2]).astype(np.float64)


class ConstantNoise:
    """Hands out the sequence in its order, at most `n` numbers of it."""

    def __init__(self, n: int) -> None:
        self._rest = laplace_sequence(n)

    def add_laplace(self, exact: np.ndarray, scale: float, unit: Unit = 1.0) -> np.ndarray:
        """Return `exact`, int64 (m,) in units of `unit`, with the next m numbers times `scale`."""
        noise, self._rest = np.split(self._rest, [exact.size])
        return exact * unit + scale * noise


def leaf_numbers(feature: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return the number that LightGBM gives to each leaf, int64 (leaves,), in the order of nodes.

    A split leaves its number to its left child; its right child gets the next one. `feature` and
    `left` are those of `Tree`, whose nodes are split in the order of their left children.
    """
    numbers = np.zeros(feature.size, np.int64)
    inner = np.flatnonzero(feature >= 0)
    for made, node in enumerate(inner[np.argsort(left[inner])], start=1):
        numbers[left[node]], numbers[left[node] + 1] = numbers[node], made
    return numbers[feature < 0]
