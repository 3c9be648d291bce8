"""What files say without noise: words of many fits to one table, and of none to the other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
        Those that are in half of the files of fits with the row, or more, and in none without it;
        and the reverse. A hash of the rows is such a word, and so is an exact number of rows. An
        exact count of a bin is written in one of several units, which depend on noise.
    """

    present: frozenset[str]
    absent: frozenset[str]

    @classmethod
    def of(cls, present: Iterable[bytes], absent: Iterable[bytes]) -> Telling:
        """Return those of some files of either kind, each of another fit."""
        with_row, without = [words(file) for file in present], [words(file) for file in absent]
        return cls(
            _in_half(with_row) - frozenset.union(*without),
            _in_half(without) - frozenset.union(*with_row),
        )

    def found(self, content: bytes) -> tuple[int, int]:
        """Return how many words of either kind are in a file."""
        there = words(content)
        return len(there & self.present), len(there & self.absent)


def _in_half(files: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the words of at least half of the files."""
    found = Counter(word for file in files for word in file)
    return frozenset(word for word, count in found.items() if 2 * count >= len(files))
