"""What holds the rows of a fit for its curator: partitions, over which every query is summed.

Sums of whole numbers are exact. So the answers are the same for any partitions, wherever they lie,
and for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from dprepro.privacy.query import Instruction, ScaledInteger
from dprepro.rows.chunked import ChunkedRows
from dprepro.rows.folder import Folder
from dprepro.rows.ingest import ChunkStore, Source
from dprepro.rows.partition import Columns, Partition, SortedRows
from dprepro.rows.store import EncryptedStore, Store
from dprepro.runtime.threads import ALONE, Threads

Part = TypeVar("Part", bound=Partition)

LEAST_ROWS = 2**18
"""No thread has fewer rows, but for the only one. For each question a thread that sleeps is woken,
which takes 0.16 ms or more. With 113,922 rows each, two threads took longer than one."""


class MemoryBackend(Generic[Part]):
    """All rows, in the memory of this process: a partition for each thread that has enough rows.

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
        self.n_rows = n_rows
        parts = max(1, min(threads.number, n_rows // LEAST_ROWS))
        self.partitions: list[Part] = threads.map(make, even_parts(n_rows, parts))

    def answer(self, question: Any) -> ScaledInteger:
        """Return the exact answer: private."""
        return total(self._threads.map(lambda part: part.answer(question), self.partitions))

    def follow(self, instruction: Instruction) -> None:
        """Do what an instruction says."""
        # Scores follow with the next question: to wake a thread would take longer than to note it.
        threads = self._threads if instruction.tells_bins else ALONE
        threads.map(lambda part: part.follow(instruction), self.partitions)

    def close(self, finished: bool) -> None:
        """Nothing was kept outside of memory."""


class ChunkBackend(Generic[Part]):
    """Rows in a store on disk: a partition for each chunk.

    Parameters
    ----------
    store
        Where the rows are.
    make
        Returns the partition of a chunk: of its columns, the rows in each cell of each feature, and
        the moves that all partitions share.
    threads
        What runs the partitions.

    Attributes
    ----------
    answers
        Those that a fit which was interrupted has had.
    """

    def __init__(
        self,
        store: ChunkStore,
        make: Callable[[Columns, Sequence[np.ndarray], list[Instruction]], Part],
        threads: Threads,
    ) -> None:
        self._store, self._threads = store, threads
        self.answers = store.answers()
        self.n_rows = store.filled.n_rows
        self._moves: list[Instruction] = []
        # The counts of all chunks lie with the first one.
        none = [np.zeros_like(counts) for counts in store.filled.counts]
        self.partitions = [
            make(columns, none if k else store.filled.counts, self._moves)
            for k, columns in enumerate(store.columns())
        ]

    @classmethod
    def of(
        cls,
        rows: ChunkedRows[Any],
        sort: Callable[[Any], SortedRows],
        make: Callable[[Columns, Sequence[np.ndarray], list[Instruction]], Part],
        threads: Threads,
    ) -> ChunkBackend[Part]:
        """Return the holder of the rows of a table; `sort` makes whole numbers of a chunk.

        Raises ValueError on what the rows must not hold. Raises StoreError if the rows cannot be
        kept in the folder.
        """
        table = rows.table
        kind: type[Store | EncryptedStore] = EncryptedStore if table.encrypted else Store
        folder = Folder(table.store)
        try:
            source = Source(rows.identity, rows.chunks(), sort, table.known_rows)
            return cls(kind.open(folder, source), make, threads)
        except BaseException:
            if folder.is_temporary or folder.is_useless:
                folder.delete()
            else:
                folder.release()
            raise

    def answer(self, question: Any) -> ScaledInteger:
        """Return the exact answer: private."""
        return total(self._threads.map(lambda part: part.answer(question), self.partitions))

    def close(self, finished: bool) -> None:
        """Delete the store; unless the fit has not `finished`, and another can go on with it."""
        try:
            self.answers.close()
        finally:
            self._store.close(finished)

    def follow(self, instruction: Any) -> None:
        """Do what an instruction says: bins at once, scores with the next question."""
        if not instruction.tells_bins:
            self._moves.append(instruction)
            return
        self._threads.map(lambda part: part.merge(instruction), self.partitions)
        self._store.finish(instruction.feature)


def total(answers: Sequence[ScaledInteger]) -> ScaledInteger:
    """Return the sum of exact answers to one question: private."""
    if len(answers) == 1:
        return answers[0]
    return ScaledInteger(np.sum([answer.numbers for answer in answers], axis=0), answers[0].unit)


def even_parts(n_rows: int, parts: int) -> Iterator[slice]:
    """Yield slices of about equal size that together are all rows; as many as there are parts."""
    ends = np.linspace(0, n_rows, parts + 1).astype(int)
    return (slice(start, stop) for start, stop in pairwise(ends))
