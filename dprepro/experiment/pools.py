"""Worker processes, each in a loky pool of its own; the first of a run can start ahead of the plan.

A worker takes two seconds to import libraries and methods and to load kernels, and a plan takes as
long. So the first one does both while the run is planned. It learns nothing of the data. What goes
wrong in it is left to the run, which comes to the same point and says so.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dprepro.experiment.safe_path import keep_working_directory_out
from dprepro.memory import THREAD_VARIABLES, settle

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
    except (MemoryError, OSError, RuntimeError):  # then the run starts one, or says why not
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
    settle()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """End this process when the runner is gone, however it went; loky's workers would linger."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
