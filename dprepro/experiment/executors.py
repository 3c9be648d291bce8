"""Where tasks run. Executors share one interface, so that the runner does not care."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import Any, Protocol

from dprepro.errors import DpreproError

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class TimeLimitError(Exception):
    """The call took longer than its limit; its worker was killed."""


class WorkerDiedError(Exception):
    """The worker process ended while it ran the call."""


class Executor(Protocol):
    """Runs calls in other processes, each call once."""

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, affinity: Hashable = None
    ) -> Future[Any]:
        """Queue ``fn(*args)``; calls of one `affinity` go to one worker where that costs nothing.

        The future holds the result, or `TimeLimitError`, or `WorkerDiedError`, or what was raised.
        """
        ...

    def close(self) -> None:
        """Wait for what was submitted, then end the workers."""
        ...

    def kill(self) -> None:
        """End the workers now; unfinished futures are cancelled."""
        ...


class LocalExecutor:
    """Worker processes on this machine, each in a loky pool of its own.

    A pool breaks as a whole when one of its processes dies. Pools of one confine that: a call
    that kills its worker, or is killed at its time limit, never touches its neighbours, and it is
    always known which call it was.

    Parameters
    ----------
    jobs
        Number of workers; each starts with its first call.
    time_limit
        Seconds that one call may take, or None. The start of the worker does not count.
    warm_up
        Called once in every new worker before its first call.
    """

    def __init__(
        self,
        jobs: int,
        time_limit: float | None = None,
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        self._queue = _CallQueue()
        self._slots = [_Slot(self._queue, time_limit, warm_up) for _ in range(jobs)]
        for slot in self._slots:
            slot.start()

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, affinity: Hashable = None
    ) -> Future[Any]:
        """See `Executor.submit`."""
        call = _Call(fn, args, affinity)
        self._queue.put(call)
        return call.future

    def close(self) -> None:
        """See `Executor.close`."""
        self._queue.close()
        for slot in self._slots:
            slot.join()

    def kill(self) -> None:
        """See `Executor.kill`."""
        self._queue.cancel()
        for slot in self._slots:
            slot.kill()
        for slot in self._slots:
            slot.join()


class _Call:
    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], affinity: Hashable) -> None:
        self.fn = fn
        self.args = args
        self.affinity = affinity
        self.future: Future[Any] = Future()


class _CallQueue:
    """Calls in groups of equal affinity, each group preferably served by one slot."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, deque[_Call]] = {}
        self._serving: dict[object, Hashable] = {}
        self._closed = False
        self._changed = threading.Condition()

    def put(self, call: _Call) -> None:
        with self._changed:
            self._groups.setdefault(call.affinity, deque()).append(call)
            self._changed.notify()

    def take(self, slot: object) -> _Call | None:
        """Return the next call for `slot`, waiting for one; None once closed and empty."""
        with self._changed:
            while not self._groups and not self._closed:
                self._changed.wait()
            if not self._groups:
                return None
            affinity = self._choose(slot)
            self._serving[slot] = affinity
            group = self._groups[affinity]
            call = group.popleft()
            if not group:
                del self._groups[affinity]
            return call

    def _choose(self, slot: object) -> Hashable:
        """Stay with the group last served; else the first unserved one; else help the longest."""
        last = self._serving.get(slot, _NOTHING)
        if last in self._groups:
            return last
        served = {affinity for other, affinity in self._serving.items() if other is not slot}
        free = next((affinity for affinity in self._groups if affinity not in served), _NOTHING)
        if free is not _NOTHING:
            return free
        return max(self._groups, key=lambda affinity: len(self._groups[affinity]))

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def cancel(self) -> None:
        with self._changed:
            for group in self._groups.values():
                for call in group:
                    call.future.cancel()
            self._groups.clear()
        self.close()


_NOTHING = object()


class _Slot(threading.Thread):
    """A thread that hands calls to one worker process, and replaces the worker when it is gone."""

    def __init__(
        self,
        queue: _CallQueue,
        time_limit: float | None,
        warm_up: Callable[[], None] | None,
    ) -> None:
        super().__init__(daemon=True)
        self._queue = queue
        self._time_limit = time_limit
        self._warm_up = warm_up
        self._pool: Any = None
        self._lock = threading.Lock()
        self._killed = False

    def run(self) -> None:
        _block_interrupts()
        while (call := self._queue.take(self)) is not None:
            try:
                result = self._run(call)
            except BaseException as error:
                if not self._killed:
                    call.future.set_exception(error)
            else:
                if not self._killed:
                    call.future.set_result(result)
            if self._killed:
                call.future.cancel()
        self._end_worker(kill=False)

    def kill(self) -> None:
        with self._lock:
            self._killed = True
        self._end_worker(kill=True)

    def _run(self, call: _Call) -> Any:
        from loky.process_executor import BrokenProcessPool

        pool = self._pool or self._start_worker()
        try:
            inner = pool.submit(call.fn, *call.args)
            if not wait([inner], timeout=self._time_limit).done:
                self._end_worker(kill=True)
                raise TimeLimitError(f"time limit of {self._time_limit:g} s exceeded")
            return inner.result()
        except BrokenProcessPool as error:
            self._end_worker(kill=True)
            raise WorkerDiedError(f"the worker process died{_exit_code(error)}") from None

    def _start_worker(self) -> Any:
        from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

        pool = ProcessPoolExecutor(
            max_workers=1,
            timeout=None,
            initializer=_prepare_worker,
            initargs=(os.getpid(),),
            env=dict.fromkeys(_THREAD_VARIABLES, "1"),
        )
        with self._lock:
            self._pool = pool
            killed = self._killed
        try:
            if killed:
                raise WorkerDiedError("stopped")
            pool.submit(self._warm_up or _nothing).result()
        except BrokenProcessPool as error:
            self._end_worker(kill=True)
            raise DpreproError(
                f"a worker process cannot start{_exit_code(error)}: fewer --jobs need less memory"
            ) from error
        except BaseException:
            self._end_worker(kill=True)
            raise
        return pool

    def _end_worker(self, kill: bool) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=kill)


def _exit_code(error: BaseException) -> str:
    """Return how the worker ended, e.g. `` (SIGKILL(-9))``, as far as loky's error tells."""
    codes = re.search(r"\{([^}]*)\}", str(error))
    return f" ({codes[1]})" if codes else ""


def _nothing() -> None:
    pass


def _block_interrupts() -> None:
    """Let Ctrl-C reach the main thread only.

    Processes that this thread starts inherit the mask: the runner decides when workers end.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _prepare_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """End this process when the runner is gone, however it went; loky's workers would linger."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
