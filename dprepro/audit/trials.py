"""Run a case many times, each time in a world drawn by a fair coin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from loky import ProcessPoolExecutor
from loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from dprepro.audit.case import Case
from dprepro.errors import DpreproError

MIN_TRIALS = 40

_BATCHES_PER_JOB = 8


@dataclass(frozen=True)
class Trials:
    """What was observed, float64 (N, d), and in which world, bool (N,)."""

    outputs: np.ndarray
    present: np.ndarray

    def halves(self) -> tuple[Trials, Trials]:
        """Return the first half and the second."""
        middle = len(self.present) // 2
        first, second = slice(None, middle), slice(middle, None)
        return (
            Trials(self.outputs[first], self.present[first]),
            Trials(self.outputs[second], self.present[second]),
        )


def run_trials(case: Case, trials: int, *, jobs: int = 1, seed: int | None = None) -> Trials:
    """Return `trials` runs of a case.

    Parameters
    ----------
    jobs
        Worker processes; with 1 the runs happen here.
    seed
        None leaves coins and noise to the operating system, as a release would. With an integer
        every run gets a seed of its own, and the audit is repeatable.

    Raises
    ------
    DpreproError
        On fewer than `MIN_TRIALS` trials, or observations that are not finite.
    """
    if trials < MIN_TRIALS:
        raise DpreproError(f"an audit needs at least {MIN_TRIALS} trials, got {trials}")
    generator = np.random.default_rng(seed)
    present = generator.random(trials) < 0.5
    seeds: list[int | None] = [None] * trials
    if seed is not None:
        seeds = generator.integers(2**32, size=trials).tolist()
    if jobs == 1:
        outputs = _run_batch(case, present, seeds)
    else:
        outputs = _run_parallel(case, present, seeds, jobs)
    if not np.isfinite(outputs).all():
        raise DpreproError(
            f"audit of {case.subject}: some observations are not finite; "
            "let the case's `observe` return finite numbers"
        )
    return Trials(outputs, present)


def _run_parallel(
    case: Case, present: np.ndarray, seeds: list[int | None], jobs: int
) -> np.ndarray:
    batches = np.array_split(np.arange(present.size), _BATCHES_PER_JOB * jobs)
    executor = ProcessPoolExecutor(max_workers=jobs)
    try:
        futures = [
            executor.submit(_run_batch, case, present[batch], [seeds[i] for i in batch])
            for batch in batches
            if batch.size
        ]
        return np.concatenate([future.result() for future in futures])
    except BrokenProcessPool as error:
        raise DpreproError(
            f"audit of {case.subject}: a worker process died; try fewer --jobs"
        ) from error
    finally:
        executor.shutdown(kill_workers=True)


def _run_batch(case: Case, present: np.ndarray, seeds: list[int | None]) -> np.ndarray:
    # Threads cost tiny fits more than they bring, and get in each other's way.
    with threadpool_limits(1):
        outcomes = (case.fit(bool(p), seed) for p, seed in zip(present, seeds, strict=True))
        return np.array([case.observe(outcome) for outcome in outcomes], dtype=np.float64)
