"""What files say without noise: words of many fits to one table, and of none to the other."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"[0-9A-Za-z_.+-]{2,}")


def words(content: bytes) -> frozenset[str]:
    """Return the words and numbers of a file, and of JSON also what stands at which place.

    Noise makes an exact number elsewhere now and then, but rarely at the same place.
    """
    text = content.decode("utf-8", "replace")
    try:
        placed = [*_placed("", json.loads(text))]
    except ValueError:
        placed = []
    return frozenset([*_WORD.findall(text), *placed])


def _placed(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in pairs:
            yield from _placed(f"{path}/{key}", entry)
    else:
        yield f"{path}: {value!r}"


@dataclass(frozen=True)
class Telling:
    """Words that tell two tables apart.

    Attributes
    ----------
    present, absent
        Those that are in all files of fits with the row, and in none without it; and the reverse.
        A hash of the rows is such a word, and so is an exact number of rows. Where there is none,
        those that are in a third of the files or more, and in none of the others: an exact count
        of a bin is written in one of several units, which depend on noise.
    """

    present: frozenset[str]
    absent: frozenset[str]

    @classmethod
    def of(cls, present: Iterable[bytes], absent: Iterable[bytes]) -> Telling:
        """Return those of some files of either kind, each of another fit."""
        with_row, without = [words(file) for file in present], [words(file) for file in absent]
        return cls(_telling(with_row, without), _telling(without, with_row))

    def found(self, content: bytes) -> tuple[int, int]:
        """Return how many words of either kind are in a file."""
        there = words(content)
        return len(there & self.present), len(there & self.absent)


def _telling(files: Sequence[frozenset[str]], others: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the words of all files that no other has, or those of at least a third."""
    elsewhere = frozenset.union(*others)
    found = Counter(word for file in files for word in file - elsewhere)
    in_all = frozenset(word for word, count in found.items() if count == len(files))
    return in_all or frozenset(word for word, count in found.items() if 3 * count >= len(files))
