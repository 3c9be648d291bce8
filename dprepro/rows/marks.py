"""How far a fit has come with each chunk, in a file: what a process that is killed leaves."""

from __future__ import annotations

import numpy as np

WORD = np.dtype(np.uint64)
_LOW = 2**32 - 1


class Marks:
    """Numbers below 2^32 - 1, of which each is written at once and is known to be whole.

    Parameters
    ----------
    words : uint64 (n,)
        Mapped from the file. A word holds the number and, above it, its complement.
    """

    def __init__(self, words: np.ndarray) -> None:
        self._words = words

    def __getitem__(self, place: int) -> int | None:
        """Return a number, or None if it was taken away, never set or is damaged."""
        word = int(self._words[place])
        return word & _LOW if word >> 32 == ~word & _LOW else None

    def __setitem__(self, place: int, number: int | None) -> None:
        self._words[place] = 0 if number is None else number | (~number & _LOW) << 32
