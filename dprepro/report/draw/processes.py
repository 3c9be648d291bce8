"""Figures drawn by several processes: each figure by one of them, which keeps matplotlib loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from loky import cpu_count
from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from dprepro.errors import DpreproError
from dprepro.experiment.safe_path import keep_working_directory_out
from dprepro.memory import THREAD_VARIABLES

T = TypeVar("T")

# A process starts in about the time that three figures take.
_FEWEST = 6
_MOST_WORKERS = 8


def in_processes(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Return what the jobs return, in their order; few jobs, or one processor, need no process.

    Jobs and what they return are pickled. The last job is begun first: let it be the longest.
    An error of a job is raised here.

    Raises
    ------
    DpreproError
        If a process ends before its job does, such as for want of memory.
    """
    workers = min(cpu_count(), _MOST_WORKERS)
    if workers == 1 or len(jobs) < _FEWEST:
        return [job() for job in jobs]
    keep_working_directory_out()
    pool = ProcessPoolExecutor(max_workers=workers, env=dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        futures = [pool.submit(job) for job in reversed(jobs)]
        return [future.result() for future in reversed(futures)]
    except (BrokenProcessPool, OSError) as error:
        raise DpreproError(
            "a process that draws figures did not start or ended early, maybe for want of memory; "
            "with LOKY_MAX_CPU_COUNT=1 in the environment a single process draws them all"
        ) from error
    finally:
        pool.shutdown(kill_workers=True)
