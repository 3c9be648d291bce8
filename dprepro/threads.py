"""Threads that share the work of one fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_GRANTED: ContextVar[int] = ContextVar("threads", default=1)


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
        How many: a positive number, -1 for one a processor, -2 for one less, and so on. None is 1,
        or what is `granted`.

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
        from joblib import effective_n_jobs

        if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int)):
            raise ValueError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0: give 1 or more, -1 for all processors, or None")
        self.number: int = _GRANTED.get() if n_jobs is None else effective_n_jobs(n_jobs)
        self._pool = ThreadPoolExecutor(self.number - 1) if self.number > 1 else None

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return ``function(item)`` of each item, in order; the caller's thread takes its share."""
        waiting = list(items)
        if self._pool is None or len(waiting) < 2:
            return [function(item) for item in waiting]
        results: dict[int, Result] = {}
        left = iter(enumerate(waiting))  # each item is taken once: `next` is atomic

        def work(_: int) -> None:
            for place, item in left:
                results[place] = function(item)

        self.together(work)
        return [results[place] for place in range(len(waiting))]

    def together(
        self, function: Callable[[int], Result], give_up: Callable[[], object] | None = None
    ) -> list[Result]:
        """Return ``function(thread)`` of every thread, from 0 on. All run at the same time.

        `give_up` is called if one of them cannot be started, before the error is raised: those that
        run may wait for it.
        """
        if self._pool is None:
            return [function(0)]
        try:
            others = [self._pool.submit(function, place) for place in range(1, self.number)]
        except BaseException:
            if give_up is not None:
                give_up()
            raise
        return [function(0), *(other.result() for other in others)]


ALONE = Threads(1)
"""The caller's thread, and no other."""
