"""Worker processes on this machine, each in a loky pool of its own.

A worker takes two seconds to import libraries and methods and to load kernels, and a plan takes as
long. So the first one does both while the run is planned. It learns nothing of the data. What goes
wrong in it is left to the run, which comes to the same point and says so.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any

from dprepro.experiment.environment import keep_working_directory_out
from dprepro.experiment.executors import (
    Call,
    CallQueue,
    Executor,
    MachineFaultError,
    Slot,
    TimeLimitError,
    WorkerDiedError,
)
from dprepro.experiment.machine_errors import is_stopped, machine_fault, told_fault, was_killed
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.threads import THREAD_VARIABLES, granted, settle_threads

_KERNELS = "DPREPRO_KERNELS"
_ahead: list[tuple[Any, str | None]] = []
"""The pool that was started ahead, with the folder of kernels that its process was told."""


def new_pool(idle_limit: float | None = None) -> Any:
    """Return a pool whose only process starts with its first call. May raise OSError."""
    from loky.backend.resource_tracker import ensure_running
    from loky.process_executor import ProcessPoolExecutor

    keep_working_directory_out()
    ensure_running()  # else, where it cannot start, semaphores stay that it was to delete
    return ProcessPoolExecutor(
        max_workers=1,
        timeout=idle_limit,
        initializer=_prepare_worker,
        initargs=(os.getpid(),),
        env=dict.fromkeys(THREAD_VARIABLES, "1"),
    )


def start_ahead(config: str, methods: Sequence[str] = ()) -> None:
    """Start a worker that gets ready for a config, or for those of its methods that are named.

    Does nothing where the machine refuses. `take_ahead` hands it over, and `end_ahead` ends it.
    """
    try:
        with _interrupts_blocked():
            pool = new_pool()
            try:
                pool.submit(_get_ready, config, tuple(methods))
                _ahead.append((pool, os.environ.get(_KERNELS)))
            except BaseException:
                shut_down(pool, kill=True)
                raise
    except (ImportError, MemoryError, OSError, RuntimeError):
        # Then the run starts one, or says why not.
        return


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Keep Ctrl-C from this thread and, as processes inherit it, from those that it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_ahead() -> Any:
    """Return the pool that was started ahead; None where there is none that fits."""
    try:
        pool, kernels = _ahead.pop()
    except IndexError:
        return None
    if kernels == os.environ.get(_KERNELS):
        return pool
    shut_down(pool, kill=True)
    return None


def end_ahead() -> None:
    """End the worker that was started ahead, unless somebody took it."""
    while _ahead:
        shut_down(_ahead.pop()[0], kill=True)


def shut_down(pool: Any, kill: bool) -> None:
    """End the process of a pool, after its calls unless it is to be killed."""
    processes = list(pool._processes.values())
    try:
        pool.shutdown(wait=True, kill_workers=kill)
    except RuntimeError:  # the thread of the pool has not started, which would end them
        for process in processes:
            process.terminate()
            process.join()


def _get_ready(config: str, methods: Sequence[str]) -> None:
    from dprepro.experiment.worker import get_ready

    get_ready(config, methods)


def _prepare_worker(parent: int) -> None:
    settle_threads()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """End this process when the runner is gone, however it went; loky's workers would linger."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


# Seconds between two looks at a call that runs.
_LOOK = 0.5
# What is refused for want of a place or of permission will be refused again.
_NEVER = {errno.EACCES, errno.ENOENT, errno.ENOSYS, errno.EPERM, errno.EROFS}
# Seconds to wait before a worker is started again that the machine refused.
_PAUSES = (0.5, 2.0)


class LocalExecutor(Executor):
    """Worker processes on this machine, each in a loky pool of its own.

    A pool breaks as a whole when one of its processes dies. Pools of one confine that: a call
    that kills its worker, or is killed at its time limit, never touches its neighbours, and it is
    always known which call it was. A call whose worker was killed from outside runs again.

    Parameters
    ----------
    jobs
        Number of workers; each starts with its first call, unless the first was started ahead.
    processors
        How many there are to use. A call that starts when fewer calls are left may use as many
        threads as its share of them (`dprepro.runtime.threads.granted`); else it has one. None is
        `jobs`.
    time_limit
        Seconds that one call may take, or None. The start of the worker does not count, nor does
        time in which the worker or this process was stopped (SIGSTOP).
    warm_up
        Called once in every new worker before its first call.
    idle_limit
        Seconds without a call after which a worker gives its memory back, or None. It comes back
        with the next call, without `warm_up`.
    """

    def __init__(
        self,
        jobs: int,
        time_limit: float | None = None,
        warm_up: Callable[[], object] | None = None,
        idle_limit: float | None = None,
        processors: int | None = None,
    ) -> None:
        super().__init__()
        self.time_limit, self.idle_limit, self.warm_up = time_limit, idle_limit, warm_up
        self.processors = processors or jobs
        self._slots = [_LocalSlot(self._queue, self) for _ in range(jobs)]
        for slot in self._slots:
            slot.start()

    def _all_slots(self) -> list[_LocalSlot]:
        return self._slots

    def _leave(self) -> None:
        for slot in self._slots:
            slot.join()


class _LocalSlot(Slot):
    """Hands calls to one worker process, and replaces the worker when it is gone."""

    def __init__(self, queue: CallQueue, executor: LocalExecutor) -> None:
        super().__init__(queue)
        self._executor = executor
        self._pool: Any = None
        self._worker = 0
        self._lock = threading.Lock()

    def kill(self) -> None:
        """End the worker, whatever it does."""
        with self._lock:
            super().kill()
        self._end_worker(kill=True)

    def end(self) -> None:
        """End the idle worker."""
        self._end_worker(kill=False)

    def serve(self, call: Call) -> Any:
        """See `Slot.serve`."""
        from loky.process_executor import BrokenProcessPool

        pool = self._pool or self._start_worker()
        try:
            threads = max(1, self._executor.processors // self._queue.unfinished())
            inner = self._submitted(pool, call, threads)
            if not self._ends_in_time(inner):
                self._end_worker(kill=True)
                limit = self._executor.time_limit
                raise TimeLimitError(f"time limit of {limit:g} s exceeded")
            return inner.result()
        except MachineFaultError as error:
            self.try_again(call, str(error))
        except BrokenProcessPool as error:
            self._end_worker(kill=True)
            how, fault, is_killed = _loss(error)
            said = f"the worker process died{how}"
            if fault:
                self.try_again(call, fault)
            if is_killed:
                self.try_again(call, f"{said}; too little memory is the usual reason")
            raise WorkerDiedError(said) from None

    def _submitted(self, pool: Any, call: Call, threads: int) -> Future[Any]:
        try:
            future: Future[Any] = pool.submit(_with_threads, threads, call.fn, *call.args)
        except (MemoryError, OSError, RuntimeError) as error:
            if not (fault := machine_fault(error)):
                raise
            self._end_worker(kill=True)
            self.try_again(call, fault)
        return future

    def _ends_in_time(self, inner: Future[Any]) -> bool:
        """Wait for a call, and tell whether it ended within its limit.

        Time does not count in which the worker was stopped, or we were: a job that is suspended
        goes on afterwards.
        """
        limit = self._executor.time_limit
        left = math.inf if limit is None else limit
        while left > 0:
            step = min(left, _LOOK)
            if wait([inner], timeout=step).done:
                return True
            left -= 0.0 if is_stopped(self._worker) else step
        return False

    def _start_worker(self) -> Any:
        """Return a pool whose worker is there; try again where the machine refuses a process."""
        pauses = iter(_PAUSES)
        while True:
            try:
                return self._start_worker_once()
            except _LostAtStartError:
                if (pause := next(pauses, None)) is None:
                    raise
                time.sleep(pause)
            except (ImportError, OSError, RuntimeError) as error:
                if why := _no_semaphores():
                    raise DpreproError(
                        f"a worker process cannot start: this system gives no semaphores ({why}), "
                        "by which processes talk. On Linux they lie in /dev/shm: mount a tmpfs "
                        "there that you can write; then the same command goes on"
                    ) from error
                if not (fault := machine_fault(error)):
                    raise
                if (pause := next(pauses, None)) is None:
                    raise DpreproError(
                        f"a worker process cannot start: {fault}. Fewer --jobs need less; the same "
                        "command goes on"
                    ) from error
                time.sleep(pause)

    def _start_worker_once(self) -> Any:
        from loky.process_executor import BrokenProcessPool

        logging.getLogger("concurrent.futures").addFilter(_is_to_be_logged)
        pool = take_ahead() or new_pool(self._executor.idle_limit)
        with self._lock:
            self._pool = pool
            killed = self._killed
        try:
            if killed:
                raise WorkerDiedError("stopped")
            self._worker = pool.submit(_warmed_up, self._executor.warm_up).result()
        except BrokenProcessPool as error:
            self._end_worker(kill=True)
            how, fault, is_killed = _loss(error)
            lost = _LostAtStartError if fault or is_killed else DpreproError
            advice = f": {fault}" if fault else f"{how}; fewer need less memory"
            raise lost(f"a worker process cannot start{advice}") from error
        except BaseException:
            self._end_worker(kill=True)
            raise
        return pool

    def _end_worker(self, kill: bool) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            shut_down(pool, kill)


def _no_semaphores() -> str:
    """Return why no process here can have a semaphore; empty where it can, or could at times."""
    try:
        from loky.backend import get_context

        get_context("loky").Lock()
    except ImportError as error:
        return str(error)
    except OSError as error:
        return os.strerror(error.errno or 0) if error.errno in _NEVER else ""
    return ""


def _loss(error: BaseException) -> tuple[str, str, bool]:
    """Return how a pool was lost, as far as loky's error tells.

    Returns
    -------
    what ended the pool's own thread, or its worker, e.g. `` (SIGKILL(-9))``; which fault of the
    machine did (see `told_fault`); and whether somebody else ended the worker: the system for its
    memory, a user, a shutdown.
    """
    kind, fault = told_fault(str(error.__cause__ or ""))
    codes = re.search(r"\{([^}]*)\}", str(error))
    how = kind or (f" ({codes[1]})" if codes else "")
    return how, fault, codes is not None and was_killed(codes[1])


class _LostAtStartError(DpreproError):
    """A worker was lost before it was there, to a fault of the machine: another may be luckier."""


def _is_to_be_logged(record: logging.LogRecord) -> bool:
    """Whether a log line is another than loky's traceback of a pool's thread: that is answered."""
    return "executor manager thread" not in record.getMessage()


def _warmed_up(warm_up: Callable[[], object] | None) -> int:
    """Return the number of the worker's process."""
    if warm_up is not None:
        warm_up()
    return os.getpid()


def _with_threads(threads: int, fn: Callable[..., Any], *args: Any) -> Any:
    with granted(threads):
        return fn(*args)
