"""What runs on the workers of a Dask cluster: they keep the partitions of a fit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dprepro
from dprepro.privacy.query import Instruction, Whole
from dprepro.rows.backends import total
from dprepro.rows.ingest import cell_type
from dprepro.rows.partition import MemoryColumns, Partition, SortedRows
from dprepro.runtime.errors import publishable
from dprepro.runtime.threads import Threads


@dataclass(frozen=True)
class Fault:
    """What is wrong with partitions, or went wrong with them: a text without values of rows."""

    text: str


@dataclass(frozen=True)
class Seen:
    """What is kept of a partition in the curator's process, to know it again. Private.

    Attributes
    ----------
    n_rows
        How many rows it has.
    digest
        Of their whole numbers.
    """

    n_rows: int
    digest: bytes


@dataclass(frozen=True, eq=False)
class SortedPart:
    """A partition in whole numbers, on a worker."""

    rows: SortedRows
    seen: Seen


@dataclass(frozen=True)
class Job:
    """What a worker needs to know of a fit: public things alone.

    Attributes
    ----------
    reading
        See `CollectionRows`.
    sort
        Makes `SortedRows` of rows.
    make
        Returns the partition of columns, the rows in each cell of each feature, and moves.
    version
        Of dprepro in the curator's process.
    """

    reading: Callable[[Any, Any], Any]
    sort: Callable[[Any], SortedRows]
    make: Callable[[MemoryColumns, Sequence[np.ndarray], list[Instruction]], Partition]
    version: str


def sort_part(X: Any, y: Any, job: Job) -> SortedPart | Fault:
    """Return a partition in whole numbers, or why this cannot be done.

    A fault is returned and not raised: Dask would write what is raised to the worker's log.
    """
    if job.version != dprepro.__version__:
        return Fault(
            f"a worker has dprepro {dprepro.__version__}, but this process has {job.version}: "
            "install the same version on every machine"
        )
    try:
        found = job.sort(job.reading(X, y))
        cells = {k: c.astype(cell_type(found.counts[k])) for k, c in found.cells.items()}
        rows = SortedRows(found.targets, cells, found.counts)
        return SortedPart(rows, Seen(rows.targets.size, _digest(rows)))
    except Exception as error:  # there may be too little memory for any of this
        return Fault(publishable(error))


def _digest(rows: SortedRows) -> bytes:
    digest = hashlib.blake2b(np.ascontiguousarray(rows.targets).data, digest_size=16)
    for k in sorted(rows.cells):
        digest.update(np.ascontiguousarray(rows.cells[k]).data)
    return digest.digest()


class HeldParts:
    """Partitions on one worker, as a Dask actor: their codes and scores stay in its memory.

    Parameters
    ----------
    parts
        The partitions. The actor has their arrays for itself.
    job
        See `Job`.
    """

    def __init__(self, parts: Sequence[SortedPart | Fault], job: Job) -> None:
        from distributed import get_worker

        self._seen = [part if isinstance(part, Fault) else part.seen for part in parts]
        self._moves: list[Instruction] = []
        self._followed = 0
        self._threads = Threads(get_worker().state.nthreads)
        self._partitions = [
            job.make(
                MemoryColumns(part.rows.targets, dict(part.rows.cells)),
                part.rows.counts,
                self._moves,
            )
            for part in parts
            if isinstance(part, SortedPart)
        ]

    def seen(self) -> list[Seen | Fault]:
        """Return what is known of each partition."""
        return self._seen

    def answer(self, question: Any, start: int, instructions: Sequence[Any]) -> Whole | Fault:
        """Return the exact answer of all partitions together: private.

        Parameters
        ----------
        question
            What a partition answers.
        start
            How many instructions came before.
        instructions
            Those to follow first.

        Raises
        ------
        RuntimeError
            If this actor has not followed as many instructions: it is no use any more.
        """
        if start != self._followed:
            raise RuntimeError("this actor has followed other instructions")
        try:
            self._follow(instructions)
            return total(self._threads.map(lambda part: part.answer(question), self._partitions))
        except Exception as error:
            return Fault(publishable(error))

    def _follow(self, instructions: Sequence[Any]) -> None:
        for instruction in instructions:
            if instruction.tells_bins:
                self._merge(instruction)
            else:
                self._moves.append(instruction)
            self._followed += 1

    def _merge(self, instruction: Any) -> None:
        self._threads.map(lambda part: part.merge(instruction), self._partitions)
