"""The runs of an audit: how many, how long they take, made in batches, kept on disk.

They come in pairs to learn from, then in worlds drawn by fair coins to judge by. How runs and risk
are spent is settled before the first run. What was run before a kill is not run again.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from loky import get_reusable_executor
from loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from dprepro.audit.case import Case
from dprepro.methods.registry import all_methods
from dprepro.runtime.errors import DpreproError

MIN_TRIALS = 40

_LOOKS = ((0.1, 0.01), (1 / 3, 0.04), (1.0, 0.95))
"""Shares of the held-out runs after which the bound is looked at, each with its share of the risk.

A bound holds at one look but with the risk that is spent there. The shares add up to 1, so that all
looks hold together with the confidence that is asked for, whichever the audit ends at (Bonferroni;
nothing is assumed of how looks depend on each other).
"""
_FEWEST_FOR_LOOKS = 1000
"""With fewer held-out runs there is one look: it would be a waste to spend risk on earlier ones."""

_TRAINING, _LEAST_TRAINING = 8, 1000
"""An eighth of the runs train, of few runs more, of very few a half."""


class Look(NamedTuple):
    """When the bound is looked at: after so many held-out runs, with this share of the risk."""

    runs: int
    share: float

    def confidence(self, of_all: float) -> float:
        """Return that of this look's bound, where all looks together have `of_all`."""
        return 1 - self.share * (1 - of_all)


@dataclass(frozen=True)
class Schedule:
    """The runs that train, in pairs, and the looks at those held out."""

    training: int
    looks: Sequence[Look]

    @property
    def runs(self) -> int:
        """All runs, if the audit does not end early."""
        return self.training + self.looks[-1].runs


def check_trials(trials: int) -> None:
    """Raise DpreproError on fewer than `MIN_TRIALS` trials."""
    if trials < MIN_TRIALS:
        raise DpreproError(f"an audit needs at least {MIN_TRIALS} trials, got {trials}")


def schedule(trials: int, learns: bool) -> Schedule:
    """Divide the runs of an audit; `learns` says whether a distinguisher must be learnt.

    Raises DpreproError as `check_trials`.
    """
    check_trials(trials)
    training = min(trials // 2, max(trials // _TRAINING, _LEAST_TRAINING)) if learns else 0
    training -= training % 2
    held_out = trials - training
    if held_out < _FEWEST_FOR_LOOKS:
        return Schedule(training, [Look(held_out, 1.0)])
    return Schedule(training, [Look(round(part * held_out), share) for part, share in _LOOKS])


# --- how long they take ---------------------------------------------------------------------------

_TIMED = 5
"""Runs of which the middle one counts: another program may take the processor for a moment."""


def expected_seconds(cases: Iterable[tuple[Case, int]], jobs: int) -> float:
    """Return about how long audits take, at most: so many runs of each case.

    Cases that share their runs count once.

    The first run of a case in either world counts once: it compiles, encodes, or looks for the
    scale of its noise. All others are taken to last as long as some that follow. An audit that
    refutes its guarantee ends early.

    Parameters
    ----------
    jobs
        Worker processes; those beyond the processors gain nothing.
    """
    at_once = min(jobs, os.cpu_count() or 1)
    with threadpool_limits(1):  # as in an audit
        # Any of those that share runs will do.
        made = {(case.runs_of, case.task, runs): (case, runs) for case, runs in cases}
        return sum(_seconds(case, runs, at_once) for case, runs in made.values())


def _seconds(case: Case, runs: int, at_once: int) -> float:
    # The seeds are any: what these runs show is thrown away.
    first = sum(_timed(case, present, seed=0) for present in (False, True))
    later = [_timed(case, bool(seed % 2), seed) for seed in range(_TIMED)]
    return first + statistics.median(later) * runs / at_once


def _timed(case: Case, present: bool, seed: int) -> float:
    begun = time.perf_counter()
    case.observe(case.fit(present, seed))
    return time.perf_counter() - begun


# --- on disk --------------------------------------------------------------------------------------


class Checkpoint:
    """A file of finished batches, one JSON line each; the first line says of which audit.

    A line that a kill cut off is dropped, and its batch run again.

    Raises DpreproError if the file is of another audit.

    Parameters
    ----------
    path
        Is made, with its folder, if it is not there.
    facts
        JSON-able: what the audit is of. Runs of another audit are no evidence for this one.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self._path = path
        self._done: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.read_bytes() if path.exists() else b""
        lines = whole[: whole.rfind(b"\n") + 1].splitlines()
        if not lines:
            path.write_text(json.dumps(dict(facts)) + "\n", encoding="utf-8", newline="\n")
            return
        if json.loads(lines[0]) != dict(facts):
            raise DpreproError(
                f"{path} holds runs of an audit with other options, or of another version: repeat "
                "the options to continue it, or delete the file to start anew"
            )
        for line in map(json.loads, lines[1:]):
            self._done[line["part"], line["batch"]] = (
                np.array(line["outputs"], dtype=np.float64),
                np.array(line["present"], dtype=bool),
            )
        with path.open("r+b") as file:
            file.truncate(whole.rfind(b"\n") + 1)

    def find(self, part: str, batch: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return outputs, float64 (N, d), and worlds, bool (N,), of a batch; None if not run."""
        return self._done.get((part, batch))

    def keep(self, part: str, batch: int, present: np.ndarray, outputs: np.ndarray) -> None:
        """Append a finished batch."""
        line = {
            "part": part, "batch": batch,
            "present": present.astype(int).tolist(), "outputs": outputs.tolist(),
        }  # fmt: skip
        with self._path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(line) + "\n")
        self._done[part, batch] = outputs, present


# --- made in batches ------------------------------------------------------------------------------

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

    Raises DpreproError from `run`: on observations that are not finite, or if a worker dies.

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
    """

    def __init__(
        self,
        case: Case,
        *,
        jobs: int = 1,
        seed: int | None = None,
        kept: Checkpoint | None = None,
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
