"""Figures drawn by this process and others: each by one of them, which keeps matplotlib loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from loky import cpu_count
from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from dprepro.errors import DpreproError
from dprepro.experiment.safe_path import keep_working_directory_out
from dprepro.memory import THREAD_VARIABLES

T = TypeVar("T")

# A process starts in about the time that five figures take.
_FEWEST = 10
_MOST_PROCESSES = 8


def in_processes(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Return what the jobs return, in their order; few jobs, or one processor, need no process.

    Jobs and what they return are pickled. This process begins with the first job, the others with
    the last: let it be the longest. A bar on the terminal says how many are done and how long the
    rest will take. An error of a job is raised here.

    Raises
    ------
    DpreproError
        If a process ends before its job does, such as for want of memory.
    """
    workers = min(cpu_count(), _MOST_PROCESSES) - 1
    if workers == 0 or len(jobs) < _FEWEST:
        return [job() for job in _shown(jobs)]
    keep_working_directory_out()
    pool = ProcessPoolExecutor(max_workers=workers, env=dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        given = [(pool.submit(job), job) for job in reversed(jobs)]
        return [
            job() if future.cancel() else future.result() for future, job in _shown(given[::-1])
        ]
    except (BrokenProcessPool, OSError) as error:
        raise DpreproError(
            "a process that draws figures did not start or ended early, maybe for want of memory; "
            "with LOKY_MAX_CPU_COUNT=1 in the environment a single process draws them all"
        ) from error
    finally:
        pool.shutdown(kill_workers=True)


def _shown(items: Sequence[T]) -> Iterator[T]:
    from dprepro.inspect.showing import shown_steps  # not in the other processes

    return shown_steps("drawing", items, lambda _: "figures")
