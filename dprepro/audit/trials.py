"""Run a case many times: in pairs to learn from, then in worlds drawn by fair coins to judge by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from loky import get_reusable_executor
from loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from dprepro.audit.case import Case
from dprepro.audit.kept import KeptRuns
from dprepro.errors import DpreproError
from dprepro.methods.registry import all_methods

Part = Literal["training", "held-out"]
PARTS: tuple[Part, ...] = ("training", "held-out")

_BATCHES = 100
_SMALLEST_BATCH, _LARGEST_BATCH = 10, 1000
_IDLE_SECONDS = 60

Advance = Callable[[int], None]
"""Is told how many more runs are done."""


@dataclass(frozen=True)
class Trials:
    """What was observed, float64 (N, d), and in which world, bool (N,)."""

    outputs: np.ndarray
    present: np.ndarray

    def first(self, runs: int) -> Trials:
        """Return the first so many runs."""
        return Trials(self.outputs[:runs], self.present[:runs])

    @classmethod
    def joined(cls, parts: Sequence[Trials]) -> Trials:
        """Return all runs, in order."""
        return cls(
            np.concatenate([part.outputs for part in parts]),
            np.concatenate([part.present for part in parts]),
        )


class Batch(NamedTuple):
    """Runs that one process makes one after the other; they are kept together or not at all."""

    part: Part
    number: int
    size: int

    def draw(self, seed: int | None) -> tuple[np.ndarray, list[int | None]]:
        """Return in which world each run is, bool (size,), and its seed.

        Training runs come in pairs: the same seed, and so the same noise, without the canary and
        with it. What the canary moves then shows in few runs.
        """
        of_batch = None if seed is None else [seed, PARTS.index(self.part), self.number]
        generator = np.random.default_rng(of_batch)
        if self.part == "training":
            seeds = np.repeat(generator.integers(2**32, size=self.size // 2), 2)
            return np.arange(self.size) % 2 == 1, [*map(int, seeds)]
        present = generator.random(self.size) < 0.5
        if seed is None:
            return present, [None] * self.size
        return present, generator.integers(2**32, size=self.size).tolist()


def batches(part: Part, runs: int, planned: int) -> list[Batch]:
    """Divide runs into batches, whose size follows from how many runs are planned in all."""
    size = 2 * (int(np.clip(planned // _BATCHES, _SMALLEST_BATCH, _LARGEST_BATCH)) // 2)
    starts = range(0, runs, size)
    return [Batch(part, k, min(size, runs - start)) for k, start in enumerate(starts)]


class TrialRunner:
    """Makes the runs of a case, in worker processes or here, each batch once.

    Parameters
    ----------
    jobs
        Worker processes; with 1 the runs happen here. The next runner gets the same processes: to
        start one takes seconds.
    seed
        None leaves coins and noise to the operating system, as a release would; training runs get
        seeds from there. With an integer every batch has coins and seeds of its own, which follow
        from it, and the audit is repeatable.
    kept
        Holds the batches of an audit that was interrupted, and gets the others.
    advance
        See `Advance`.

    Raises
    ------
    DpreproError
        From `run`: on observations that are not finite, or if a worker dies.
    """

    def __init__(
        self,
        case: Case,
        *,
        jobs: int = 1,
        seed: int | None = None,
        kept: KeptRuns | None = None,
        advance: Advance | None = None,
    ) -> None:
        self._case, self._seed, self._jobs = case, seed, jobs
        self._kept = kept
        self._advance = advance or (lambda runs: None)

    def __enter__(self) -> TrialRunner:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._jobs > 1:
            self._workers().shutdown(kill_workers=True)

    def run(self, batches: Sequence[Batch]) -> Trials:
        """Return the runs of all batches, in their order, with what the case looks at of each."""
        done: dict[Batch, Trials] = {}
        for batch in batches:
            known = None if self._kept is None else self._kept.find(batch.part, batch.number)
            if known is not None:
                done[batch] = Trials(*known)
                self._advance(batch.size)
        for batch, runs in self._made([batch for batch in batches if batch not in done]):
            if not np.isfinite(runs.outputs).all():
                raise DpreproError(
                    f"audit of {self._case.subject}: some observations are not finite; "
                    "let the case's `observe` return finite numbers"
                )
            if self._kept is not None:
                self._kept.keep(batch.part, batch.number, runs.present, runs.outputs)
            done[batch] = runs
            self._advance(batch.size)
        whole = Trials.joined([done[batch] for batch in batches])
        if self._case.columns is None:
            return whole
        return Trials(whole.outputs[:, list(self._case.columns)], whole.present)

    def _made(self, batches: Sequence[Batch]) -> Iterator[tuple[Batch, Trials]]:
        if self._jobs == 1:
            # Libraries are looked for twice, as the first batch may load some: that takes as long
            # as a small batch.
            for some in (batches[:1], batches[1:]):
                with threadpool_limits(1):
                    for batch in some:
                        yield batch, _run_batch(self._case, batch, self._seed)
            return
        workers = self._workers()
        try:
            futures: dict[Any, Batch] = {
                workers.submit(_run_batch_on_one_thread, self._case, batch, self._seed): batch
                for batch in batches
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise DpreproError(
                f"audit of {self._case.subject}: a worker process died; try fewer --jobs"
            ) from error

    def _workers(self) -> Any:
        # A case of a user's own lies in a module that a worker has once the methods are loaded.
        return get_reusable_executor(
            max_workers=self._jobs, timeout=_IDLE_SECONDS, initializer=all_methods
        )


def run_trials(case: Case, trials: int, *, jobs: int = 1, seed: int | None = None) -> Trials:
    """Return so many runs of a case, each in a world drawn by a fair coin.

    Parameters and errors are those of `TrialRunner`.
    """
    with TrialRunner(case, jobs=jobs, seed=seed) as runner:
        return runner.run(batches("held-out", trials, trials))


def _run_batch_on_one_thread(case: Case, batch: Batch, seed: int | None) -> Trials:
    # Threads cost tiny fits more than they bring, and get in each other's way.
    with threadpool_limits(1):
        return _run_batch(case, batch, seed)


def _run_batch(case: Case, batch: Batch, seed: int | None) -> Trials:
    present, seeds = batch.draw(seed)
    outcomes = (case.fit(bool(p), s) for p, s in zip(present, seeds, strict=True))
    outputs = np.array([case.observe(outcome) for outcome in outcomes], dtype=np.float64)
    return Trials(outputs, present)
