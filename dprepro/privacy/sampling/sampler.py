"""The samplers, for a scale that is any double: a double is a whole number times a power of two."""

from __future__ import annotations

import math

import numpy as np

from dprepro.privacy.sampling.bits import WORDS, Bits, fill
from dprepro.privacy.sampling.exact_noise import (
    LARGEST_SCALE,
    MANTISSA_BITS,
    SMALLEST_SCALE,
    exponential_choice,
    normal_words,
    permute_and_flip,
    rounded_gaussian,
    rounded_laplace,
    shuffle,
)

SAMPLING_DISTANCE = 2.0**-400
"""How far all draws of a fit are from the stated probabilities, in total variation, at most.

One draw is less than 2^-440 off, and a fit makes fewer than 2^40: that many take more than a day.
"""


class ExactSampler:
    """Draws whole numbers with exactly the stated probabilities.

    "Exactly" is up to a distance in total variation of less than 2^-440 a draw, and to ChaCha20
    being indistinguishable from chance. 512 bits of a number do not always decide how it compares
    or is rounded: rounding has the largest share of the distance, below 2^-458. Step 8 of
    `docs/evidence/exact.md` has the proof for each kind of draw.

    Parameters
    ----------
    bits
        Where randomness comes from.

    Examples
    --------
    >>> sampler = ExactSampler(Bits(seed=0))
    >>> noise = sampler.gaussian(1000.0, (2, 3))
    >>> noise.shape, noise.dtype
    ((2, 3), dtype('int64'))
    """

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    @property
    def state(self) -> np.ndarray:
        """See `Bits`: for kernels that sample, uint32 (33,). Secret."""
        return self._bits.state

    @property
    def has_drawn(self) -> bool:
        """Whether any bit has been drawn: words 12 and 13 count the blocks, from 0 on."""
        return bool(self.state[12:14].any())

    def gaussian(self, scale: float, shape: tuple[int, ...]) -> np.ndarray:
        """Return N(0, scale^2) rounded to whole numbers, int64 of the given shape.

        Raises ValueError unless `SMALLEST_SCALE` <= scale < `LARGEST_SCALE`.
        """
        out = np.empty(math.prod(shape), np.int64)
        rounded_gaussian(self.state, *dyadic(scale), out)
        return out.reshape(shape)

    def normals(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return standard normal numbers for a kernel that learns their scale as it goes.

        Returns
        -------
        uint64 (*shape, 2 + WORDS)
            Of each number N: k, the sign (1 is positive), and `bits.WORDS` words, where |N| = k + x
            and x in [0, 1) begins with these 512 bits. All 0 is the number 0.
            `dprepro.privacy.sampling.exact_noise.rounded_normal` gives round(s N) for any scale s
            of `gaussian`. It is exact but where 512 bits do not decide, as `gaussian` is. The words
            from the third on are of a stream of their own: numbers drawn in parts are those drawn
            at once.
        """
        out = np.empty((math.prod(shape), 2 + WORDS), np.uint64)
        normal_words(self.state, self._bits.later, out)
        return out.reshape(*shape, 2 + WORDS)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> np.ndarray:
        """Return Laplace(scale) noise rounded to whole numbers, int64 of the given shape.

        Raises as `gaussian`.
        """
        out = np.empty(math.prod(shape), np.int64)
        rounded_laplace(self.state, *dyadic(scale), out)
        return out.reshape(shape)

    def choice(self, utilities: np.ndarray, scale: float) -> int:
        """Return i with probability proportional to exp(utilities[i] / scale).

        Parameters
        ----------
        utilities : int64 (n,)
            Within 2^62 of each other.
        scale
            See `gaussian`.
        """
        return int(exponential_choice(self.state, *dyadic(scale), utilities))

    def permute_and_flip(self, utilities: np.ndarray, scale: float) -> np.ndarray:
        """Return one candidate of each row of `utilities`, int64 (choices,), by permute-and-flip.

        Candidates come in a random order. The first is chosen that passes a trial, which happens
        with probability exp(-d / scale), d the distance of its utility from the row's largest.

        Parameters
        ----------
        utilities : int64 (choices, candidates)
            At least one candidate; those of a row within 2^62 of each other.
        scale
            See `gaussian`.
        """
        out = np.empty(len(utilities), np.int64)
        permute_and_flip(self.state, *dyadic(scale), np.ascontiguousarray(utilities), out)
        return out

    def sample(self, size: int, rate: float) -> np.ndarray:
        """Return bool (size,): whether each place is in a secret Poisson sample.

        Each is with probability `rate`, in (0, 1], rounded down to a multiple of 2^-64,
        independently of all others.
        """
        if rate >= 1:
            return np.ones(size, dtype=bool)
        words = np.empty(size, np.uint64)
        fill(self.state, words)
        return words < np.uint64(int(rate * 2.0**64))

    def permutation(self, size: int) -> np.ndarray:
        """Return 0 .. `size` - 1 in a secret order, int64 (size,); all are equally likely."""
        items = np.arange(size)
        shuffle(self.state, items)
        return items


def dyadic(scale: float) -> tuple[np.uint64, int]:
    """Return the whole number m < 2^53 and the power p with scale = m 2^-p, as kernels take them.

    Raises ValueError unless `SMALLEST_SCALE` <= scale < `LARGEST_SCALE`.
    """
    if not SMALLEST_SCALE <= scale < LARGEST_SCALE:
        raise ValueError(
            f"noise of scale {scale:g}, in steps of its grid, cannot be drawn: choose a grid on "
            f"which it is at least {SMALLEST_SCALE:g} and below {LARGEST_SCALE:g}, or a less "
            "extreme epsilon"
        )
    mantissa, exponent = math.frexp(scale)
    return np.uint64(int(mantissa * 2**MANTISSA_BITS)), MANTISSA_BITS - exponent
