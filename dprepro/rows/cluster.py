"""The rows of a fit on the workers of a Dask cluster: who holds them here, and what runs there.

A question is one round: it goes to every worker, with the instructions since the last one, and
every worker sends one sum of whole numbers back. What a partition adds is a function of its rows
and of the instructions. So a partition whose worker is lost is read again elsewhere, follows all
instructions from the start, and gives the same answer.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dprepro
from dprepro.privacy.query import Instruction, ScaledInteger
from dprepro.rows.backends import total
from dprepro.rows.chunked import LEAST_ROWS, TOO_FEW_ROWS, CollectionRows
from dprepro.rows.ingest import cell_type
from dprepro.rows.partition import MemoryColumns, Partition, SortedRows
from dprepro.runtime.errors import DpreproError, publishable
from dprepro.runtime.extras import needs_extra
from dprepro.runtime.threads import Threads

LOOK_INTERVAL = 1.0
"""Seconds between two looks at whether workers are still there."""

WORKERLESS_LIMIT = 60.0
"""Seconds without any worker, before a fit gives up."""

MOST_LOSSES = 10
"""How often partitions may be lost before one question is answered."""

_LOST_WHILE_READING = (
    "workers of the Dask cluster were lost again and again while they read the rows: look at their "
    "logs. Give them more memory, or make partitions smaller"
)


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


@dataclass(frozen=True, eq=False, repr=False)
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
        rows = replace(found, cells=cells)
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
                MemoryColumns(part.rows),
                part.rows.counts,
                self._moves,
            )
            for part in parts
            if isinstance(part, SortedPart)
        ]

    def seen(self) -> list[Seen | Fault]:
        """Return what is known of each partition."""
        return self._seen

    def answer(
        self, question: Any, start: int, instructions: Sequence[Any]
    ) -> ScaledInteger | Fault:
        """Return the exact answer of all partitions together: private.

        Raises RuntimeError if this actor has not followed as many instructions: it is no use any
        more.

        Parameters
        ----------
        question
            What a partition answers.
        start
            How many instructions came before.
        instructions
            Those to follow first.
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


class ClusterError(DpreproError):
    """The cluster cannot hold the rows of a fit. The message quotes no value and no sum."""


@dataclass(eq=False)
class _Held:
    """Partitions on one worker, and how many instructions they have followed."""

    numbers: list[int]
    future: Any
    actor: Any
    followed: int = 0


class ClusterBackend:
    """Rows on the workers of a Dask cluster: an actor on each of them has its partitions.

    It needs a client of Dask in this process. The workers' threads share their partitions.

    Raises ClusterError if there is no client, or no worker, or the rows cannot be read. Raises
    ValueError on rows that a fit refuses.

    Parameters
    ----------
    rows
        Where the rows are.
    sort
        Makes whole numbers of a partition's rows.
    make
        Returns the partition of columns, the rows in each cell of each feature, and moves.
    """

    def __init__(
        self,
        rows: CollectionRows[Any],
        sort: Callable[[Any], SortedRows],
        make: Callable[[MemoryColumns, Sequence[np.ndarray], list[Instruction]], Partition],
    ) -> None:
        self._client = _client()  # which says so where Dask is missing
        from dask import delayed

        self._whole = rows.whole
        self._instructions: list[Instruction] = []
        self._seen: dict[int, Seen] = {}
        self._held: list[_Held] = []
        self._begun: list[Any] = []
        self._job = Job(rows.reading, sort, make, dprepro.__version__)
        part, shared = delayed(sort_part, pure=False), delayed(self._job, traverse=False)
        self._parts = [part(X, y, shared) for X, y in rows.partitions]
        with self._closing_on_errors():
            self._hold(range(len(self._parts)))
            self.n_rows = sum(seen.n_rows for seen in self._seen.values())
            if self.n_rows < LEAST_ROWS:
                raise ValueError(TOO_FEW_ROWS)

    def answer(self, question: Any) -> ScaledInteger:
        """Return the exact answer: private.

        Raises ClusterError if partitions were lost, and cannot be read again.
        """
        with self._closing_on_errors():
            return self._answer(question)

    def _answer(self, question: Any) -> ScaledInteger:
        answers: list[ScaledInteger] = []
        losses, waiting = 0, list(self._held)
        while waiting:
            # All of them compute while the first one is waited for.
            replies = [self._ask(held, question) for held in waiting]
            lost = []
            for held, reply in zip(waiting, replies, strict=True):
                answer = self._wait_for_reply(held, reply)
                if answer is None:
                    lost.append(held)
                else:
                    answers = [total([*answers, answer])]
            losses += bool(lost)
            if losses > MOST_LOSSES:
                raise ClusterError(
                    "workers of the Dask cluster were lost again and again before they answered: "
                    "look at their logs. Give them more memory, or make partitions smaller"
                )
            self._held = [held for held in self._held if held not in lost]
            waiting = self._hold([number for held in lost for number in held.numbers])
        return answers[0]

    def follow(self, instruction: Instruction) -> None:
        """Do what an instruction says: it travels with the next question."""
        self._instructions.append(instruction)

    def close(self, finished: bool = True) -> None:
        """Let the workers forget the rows."""
        futures = [*self._begun, *(held.future for held in self._held)]
        self._begun, self._held = [], []
        if self._client.status == "running":
            self._client.cancel(futures, force=True)

    @contextmanager
    def _closing_on_errors(self) -> Iterator[None]:
        """Let the workers forget the rows when a fit fails, though its error is still looked at."""
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self.close()
            raise

    def _ask(self, held: _Held, question: Any) -> Any:
        """Return the reply to come, or None if the worker is known to be lost."""
        start, held.followed = held.followed, len(self._instructions)
        try:
            return held.actor.answer(question, start, self._instructions[start:])
        except RuntimeError as error:  # Dask's way to say that the worker is lost
            _forget_frames(error)
            return None

    def _wait_for_reply(self, held: _Held, reply: Any) -> Any:
        """Return a reply once it is there, or None if the worker is lost."""
        while reply is not None:
            try:
                answer = reply.result(timeout=LOOK_INTERVAL)
            except Exception as error:
                _forget_frames(error)
                if not reply.done() and held.future.status == "finished":
                    self._check_connection()
                    continue
                break
            if isinstance(answer, Fault):
                raise ClusterError(f"a worker of the Dask cluster could not answer: {answer.text}")
            return answer
        self._check_connection()
        return None

    def _hold(self, numbers: Iterable[int]) -> list[_Held]:
        """Read partitions on the workers, and return what holds them there."""
        made: list[_Held] = []
        missing = list(numbers)
        for _ in range(MOST_LOSSES):
            if not missing:
                return made
            found = self._read(missing)
            made += found
            self._held += found
            missing = sorted({*missing} - {k for held in found for k in held.numbers})
        raise ClusterError(_LOST_WHILE_READING)

    def _read(self, numbers: list[int]) -> list[_Held]:
        """Read partitions once; those whose worker is lost meanwhile are left out."""
        self._begun = computed = self._client.compute([self._parts[k] for k in numbers])
        self._wait_for(computed)
        parts = dict(zip(numbers, computed, strict=True))
        for number, part in parts.items():
            if part.status in ("error", "cancelled"):
                raise self._cannot_be_read(number, part)
        # Where the partitions are; if that worker is lost by now, Dask reads them elsewhere.
        asked = [
            (here, self._client.submit(
                HeldParts, [parts[k] for k in here], self._job, actor=True,
                workers=worker, allow_other_workers=worker is not None,
            ))
            for worker, here in self._places(parts).items()
        ]  # fmt: skip
        self._begun = [*computed, *(future for _, future in asked)]
        self._wait_for(self._begun)
        found = []
        for here, future in asked:
            try:
                held = _Held(here, future, future.result())
                seen = self._wait_for_reply(held, held.actor.seen())
            except Exception as error:  # of Dask: the worker is lost
                _forget_frames(error)
                self._check_connection()
                continue
            if seen is not None:
                self._recognise(here, seen)
                found.append(held)
        self._begun = []
        return found

    def _places(self, parts: Mapping[int, Any]) -> dict[str | None, list[int]]:
        """Return the partitions on each worker."""
        workers = self._client.who_has(list(parts.values()))
        places = defaultdict(list)
        for number, part in parts.items():
            places[next(iter(workers.get(part.key, ())), None)].append(number)
        return places

    def _recognise(self, numbers: list[int], seen: Sequence[Seen | Fault]) -> None:
        for number, part in zip(numbers, seen, strict=True):
            if isinstance(part, Fault):
                raise ValueError(part.text)
            if self._seen.setdefault(number, part) != part:
                raise ClusterError(
                    f"partition {number} was lost, and holds other rows now that it is read again: "
                    "a fit needs rows that stay the same. Write them to files before the fit"
                )

    def _wait_for(self, futures: list[Any]) -> None:
        from distributed import TimeoutError, wait

        last_seen = time.monotonic()
        while True:
            try:
                wait(futures, timeout=LOOK_INTERVAL)
                return None
            except TimeoutError as error:
                _forget_frames(error)
                self._check_connection()
            except CancelledError as error:  # with the connection, or since data are gone
                _forget_frames(error)
                return self._check_connection()
            if self._client.nthreads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > WORKERLESS_LIMIT:
                raise ClusterError(
                    f"the Dask cluster has had no workers for {WORKERLESS_LIMIT:g} s: start some "
                    "with `dask worker`, and fit again"
                )

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise ClusterError(
                "the connection to the Dask scheduler was lost: connect again, and fit again"
            ) from None

    def _cannot_be_read(self, number: int, part: Any) -> ClusterError:
        """Return what is wrong with a partition, without the text of the error: it may quote."""
        self._check_connection()
        if part.status == "cancelled":
            return ClusterError(
                f"partition {number} was in the memory of a lost worker alone, and cannot be read "
                "again: let Dask read X from files, or give it to Dask without `scatter`"
            )
        kind = type(part.exception()).__name__
        if kind == "KilledWorker":
            return ClusterError(_LOST_WHILE_READING)
        again = " again after its worker was lost" if number in self._seen else ""
        if kind == "KeyError" and self._whole.startswith("X.partitions"):
            return ClusterError(
                f"partition {number} could not be read{again}: {kind}, as where it lacks a column "
                f"that is stated for all of X. Compare `{self._whole.format(k=number)}.columns` "
                "with `X.columns`"
            )
        return ClusterError(
            f"partition {number} could not be read{again}: {kind}. The text is withheld, as it can "
            f"quote rows; `{self._whole.format(k=number)}` shows it"
        )


def _forget_frames(error: BaseException | None) -> None:
    """Let go of what Dask's error keeps: frames that hold it, and the futures of a fit.

    Without this the workers would hold the rows of a fit until Python next looks for such circles.
    """
    while error is not None:
        error.with_traceback(None)
        error = error.__cause__ or error.__context__


def _client() -> Any:
    how = "from dask.distributed import Client; client = Client()"
    purpose = "rows of a Dask collection need Dask's cluster"
    with needs_extra("dask", purpose, f". Then start one with `{how}`", ClusterError):
        from distributed import get_client
    try:
        return get_client()
    except ValueError:
        raise ClusterError(
            "X is a Dask collection, but there is no client of a Dask cluster. Start one before "
            f"the fit: `{how}` uses this machine, Client('HOST:8786') a cluster that runs"
        ) from None
