"""What holds the rows of a fit for its curator: partitions, over which every query is summed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from dprepro.privacy.query import Instruction, Query, Whole
from dprepro.rows.partition import Partition
from dprepro.threads import Threads

Part = TypeVar("Part", bound=Partition)


class ArrayHolder(Generic[Part]):
    """All rows, in the memory of this process: a partition for each thread.

    Sums of whole numbers are exact. So the answers are the same for any number of threads.

    Parameters
    ----------
    make
        Returns the partition of some of the rows.
    n_rows
        How many rows there are.
    threads
        What runs the partitions.
    """

    def __init__(self, make: Callable[[slice], Part], n_rows: int, threads: Threads) -> None:
        self._threads = threads
        self.partitions: list[Part] = threads.map(make, even_parts(n_rows, threads.number))

    def answer(self, query: Query) -> Whole:
        """Return the exact answer: private."""
        answers = self._threads.map(lambda part: part.answer(query), self.partitions)
        return Whole(np.sum([answer.numbers for answer in answers], axis=0), answers[0].unit)

    def follow(self, instruction: Instruction) -> None:
        """Do what an instruction says."""
        self._threads.map(lambda part: part.follow(instruction), self.partitions)


def even_parts(n_rows: int, parts: int) -> Iterator[slice]:
    """Yield slices of about equal size that together are all rows; as many as there are parts."""
    ends = np.linspace(0, n_rows, parts + 1).astype(int)
    return (slice(start, stop) for start, stop in pairwise(ends))
