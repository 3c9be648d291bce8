"""Threads that share the work of one fit, and how many of them limited memory allows.

Limits on memory (`ulimit -v`) are settled before large libraries load. OpenBLAS takes a buffer for
each of its threads, and where the system refuses one it asks again without end. So there are no
more threads than fit, and the buffers are taken first.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from dprepro.runtime.arguments import Integer, OrNone
from dprepro.runtime.errors import DpreproError

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST = 64
"""Threads of one fit at most, or as many as there are processors: more would wait for each other,
and a system refuses thousands."""

_GRANTED: ContextVar[int] = ContextVar("threads", default=1)

LEAST = 10**9
"""Bytes of addresses that a command needs: its libraries take 750 MB."""

A_THREAD = 256 * 10**6
"""Bytes of addresses for one more thread of linear algebra: a buffer in NumPy's library and one in
SciPy's, a stack, and the arena of its small allocations."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""What libraries read, as they load, for how many threads they start."""


@contextmanager
def granted(threads: int) -> Iterator[None]:
    """Let fits with ``n_jobs=None`` use so many threads in this context; else they use one."""
    token = _GRANTED.set(threads)
    try:
        yield
    finally:
        _GRANTED.reset(token)


class Threads:
    """So many threads, the caller's among them; the others end with the ``with`` block.

    Parameters
    ----------
    n_jobs
        How many; 64, or one for each processor, at most. -1 means as many as there are processors,
        -2 one less, and so on. None means 1, or what is `granted`.

    Attributes
    ----------
    number : int
        How many there are.

    Raises
    ------
    ValueError
        If `n_jobs` is no such number.

    Examples
    --------
    >>> with Threads(2) as threads:
    ...     threads.map(str, [1, 2, 3])
    ['1', '2', '3']
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        n_jobs = OrNone(Integer())("n_jobs", n_jobs)
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0: give 1 or more, -1 for all processors, or None")
        number = _GRANTED.get() if n_jobs is None else n_jobs
        if n_jobs not in (None, 1):
            from joblib import effective_n_jobs  # with NumPy, which memory is settled before

            number = effective_n_jobs(n_jobs)
        self.number: int = min(number, max(_MOST, os.cpu_count() or 1))
        self._workers: list[_Worker] = []

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.jobs.put(None)
        for worker in self._workers:
            worker.join()
        self._workers = []

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return ``function(item)`` of each item, in order; the caller's thread takes its share.

        Items are taken one after the other, each when a thread is free for it. So while a generator
        makes the next one, other threads work.
        """
        if self.number == 1 or (isinstance(items, Sized) and len(items) < 2):
            return [function(item) for item in items]
        results: dict[int, Result] = {}
        left, taking = iter(enumerate(items)), threading.Lock()

        def work(_: int) -> None:
            while True:
                with taking:
                    taken = next(left, None)
                if taken is None:
                    return
                place, item = taken
                results[place] = function(item)

        self.together(work)
        return [results[place] for place in range(len(results))]

    def together(
        self, function: Callable[[int], Result], give_up: Callable[[], object] | None = None
    ) -> list[Result]:
        """Return ``function(thread)`` of every thread, from 0 on. All run at the same time.

        If one of them fails, or the caller is interrupted, `give_up` is called, since others may
        wait for it. When all have ended, the first error is raised.
        """
        self._start()
        found: list[Future[Result]] = [Future() for _ in range(self.number)]
        jobs = [partial(_run, future, function, k, give_up) for k, future in enumerate(found)]
        given: list[Future[Result]] = []
        interrupted: BaseException | None = None
        try:
            for worker, job, future in zip(self._workers, jobs[1:], found[1:], strict=True):
                worker.jobs.put(job)
                given.append(future)
            jobs[0]()
        except BaseException as error:
            interrupted = error
        while not all(future.done() for future in given):
            try:
                if interrupted is not None and give_up is not None:
                    give_up()
                for future in given:
                    future.exception()
            except BaseException as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted
        return [future.result() for future in found]

    def _start(self) -> None:
        """Start a thread for each job but the caller's. An executor may count on too few."""
        while len(self._workers) < self.number - 1:
            worker = _Worker()
            worker.start()
            self._workers.append(worker)


def _run(
    future: Future[Result],
    function: Callable[[int], Result],
    thread: int,
    give_up: Callable[[], object] | None,
) -> None:
    """Do what one thread is to do; the future holds what came of it."""
    try:
        future.set_result(function(thread))
    except BaseException as error:
        try:
            if give_up is not None:
                give_up()
        finally:
            future.set_exception(error)


class _Worker(threading.Thread):
    """A thread that runs its jobs, one after the other, until it gets None."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self) -> None:
        """See the class."""
        while (job := self.jobs.get()) is not None:
            job()


ALONE = Threads(1)
"""The caller's thread, and no other."""


def limit_of_memory() -> int | None:
    """Return how many bytes this process may map (``ulimit -v`` or ``-d``), or None if any."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((most for most in limits if most != resource.RLIM_INFINITY), default=None)


def require_memory() -> None:
    """Raise DpreproError where the limit leaves no room for the libraries."""
    most = limit_of_memory()
    if most is not None and most < LEAST:
        raise DpreproError(
            f"this process may use {most / 10**6:,.0f} MB of addresses (ulimit -v or -d), and "
            f"needs {LEAST / 10**6:,.0f} MB for its libraries alone: raise the limit, e.g. `ulimit "
            "-v unlimited`, or ask whoever set it, often a scheduler, for more memory"
        )


def settle_threads() -> None:
    """Choose threads by what fits, and take the buffers of linear algebra.

    Does nothing where there is no limit, or where NumPy has been imported already: it has read
    the variables by then.
    """
    most = limit_of_memory()
    if most is None or "numpy" in sys.modules:
        return
    room = 1 + max(0, most - LEAST) // A_THREAD
    for variable in THREAD_VARIABLES:
        given = os.environ.get(variable, "").partition(",")[0]  # OpenMP: one number a level
        if room < (int(given) if given.isdecimal() else os.cpu_count() or 1):
            os.environ[variable] = str(room)
    # Arrow's own reserves 1 GB of addresses, whatever is allocated.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if most >= LEAST:
        _take_buffers()


def _take_buffers() -> None:
    try:
        import numpy as np
        from scipy.linalg.blas import dgemm
    except ImportError:  # whoever needs them says so
        return
    square = np.ones((256, 256))  # smaller products take no buffer
    square @ square
    dgemm(1.0, square, square)
