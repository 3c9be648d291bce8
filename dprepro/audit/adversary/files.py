"""What files say without noise: words that all fits to one table share, and none to the other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORD = re.compile(r"[0-9A-Za-z_.+-]{2,}")


def words(content: bytes) -> frozenset[str]:
    """Return the words and numbers of a file."""
    return frozenset(_WORD.findall(content.decode("utf-8", "replace")))


@dataclass(frozen=True)
class Telling:
    """Words that tell two tables apart.

    Attributes
    ----------
    present, absent
        Those that are in all files of fits with the row, and in none without it; and the reverse.
        A hash of the rows is such a word, and so is an exact number of rows.
    """

    present: frozenset[str]
    absent: frozenset[str]

    @classmethod
    def of(cls, present: Iterable[bytes], absent: Iterable[bytes]) -> Telling:
        """Return those of some files of either kind, each of another fit."""
        with_row, without = [words(file) for file in present], [words(file) for file in absent]
        return cls(
            frozenset.intersection(*with_row) - frozenset.union(*without),
            frozenset.intersection(*without) - frozenset.union(*with_row),
        )

    def found(self, content: bytes) -> tuple[int, int]:
        """Return how many words of either kind are in a file."""
        there = words(content)
        return len(there & self.present), len(there & self.absent)
